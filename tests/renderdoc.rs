//! Captures with the real RenderDoc. It hooks the whole process, so this is a program of its own; it needs
//! `renderdoccmd` and RenderDoc's python module, so it runs on demand: `./dev test --test renderdoc -- --ignored`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

use std::path::Path;
use std::process::Command;

use tidemill::{Accelerator, Config, Error, Prewarm, ProfileError};

const N: usize = 1000;

fn output(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{command:?}:\n{text}\n{}", String::from_utf8_lossy(&done.stderr));
    text
}

/// The values of all `<string name="...">` of a kind that belong to chunks of this name.
fn strings<'a>(xml: &'a str, chunk: &str, field: &str) -> Vec<&'a str> {
    let chunks = xml.split("<chunk ").filter(|text| text.contains(&format!("name=\"{chunk}\"")));
    let value = |text: &'a str| -> Option<&'a str> {
        let rest = text.split_once(&format!("<string name=\"{field}\""))?.1;
        rest.split_once('>')?.1.split_once('<').map(|(value, _)| value)
    };
    chunks.filter_map(value).collect()
}

#[test]
#[ignore = "needs RenderDoc"]
fn a_capture_holds_exactly_our_dispatches_with_our_labels_and_replays() {
    let gpu = Accelerator::new(
        &Config::new().renderdoc(true).fusion(false).no_cache().prewarm(Prewarm::Background),
    )
    .unwrap();
    let a: Vec<f32> = (0..N).map(|i| i as f32).collect();
    let (ta, tb) = (gpu.upload(&a, [N]).unwrap(), gpu.upload(&vec![0.5f32; N], [N]).unwrap());
    let before = gpu.run(|r| r.div(&ta, &tb)).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("renderdoc");
    let (result, file) = gpu
        .capture(folder.join("chain").to_str().unwrap(), || {
            gpu.run(|r| {
                let sum = r.add(&ta, &tb)?;
                let product = r.mul(sum, &ta)?;
                Ok((sum, product))
            })
        })
        .unwrap();
    assert_eq!(file, folder.join("chain.rdc"));
    let expected: Vec<f32> = a.iter().map(|x| (x + 0.5) * x).collect();
    assert_eq!(result.1.read::<f32>().unwrap(), expected);
    drop(before);

    let xml = folder.join("chain.xml");
    output(
        Command::new("renderdoccmd")
            .arg("convert")
            .arg("-f")
            .arg(&file)
            .arg("-o")
            .arg(&xml)
            .args(["-c", "xml"]),
    );
    let xml = std::fs::read_to_string(xml).unwrap();
    // Everything up to the frame is how the objects came to be; labels and dispatches are of the frame alone.
    let labels = strings(&xml, "vkCmdBeginDebugUtilsLabelEXT", "pLabelName");
    let dispatches = xml.matches("name=\"vkCmdDispatch\"").count();
    assert_eq!((dispatches, &labels[..]), (2, &["add 1000 f32", "mul 1000 f32"][..]));
    let names = strings(&xml, "vkSetDebugUtilsObjectNameEXT", "ObjectName");
    for part in ["tidemill block", "tidemill queue", "map.", "1000 f32"] {
        assert!(names.iter().any(|name| name.contains(part)), "{part} in {names:?}");
    }

    // What RenderDoc's own replay finds in the output of the last dispatch.
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/renderdoc_replay.py");
    let replayed = output(Command::new("/usr/bin/python3").arg(script).arg(&file).arg(N.to_string()));
    let mut lines = replayed.lines();
    let label = lines.next().unwrap();
    assert_eq!(Some(&label), labels.last(), "{replayed}");
    let outputs: Vec<Vec<f32>> =
        lines.map(|line| line.split(' ').map(|x| x.parse().unwrap()).collect()).collect();
    assert!(outputs.contains(&expected), "{replayed}");
}

#[test]
fn without_renderdoc_a_capture_says_what_is_missing() {
    // The other test loads it into this process, for good: so this one is a process of its own.
    if std::env::var_os("CHILD").is_none() {
        let this = std::env::current_exe().unwrap();
        let name = "without_renderdoc_a_capture_says_what_is_missing";
        output(Command::new(this).arg(name).env("CHILD", "1").env_remove("TIDEMILL_RENDERDOC"));
        return;
    }
    let gpu = Accelerator::new(&Config::new().no_cache().prewarm(Prewarm::Off)).unwrap();
    match gpu.capture("nothing", || -> tidemill::Result<()> { panic!("must not be called") }) {
        Err(Error::Profile(ProfileError::NoRenderDoc { missing })) => {
            assert!(missing.contains("Config::renderdoc(true)"), "{missing}");
        }
        other => panic!("{other:?}"),
    }
}
