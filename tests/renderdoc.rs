//! Captures with the real RenderDoc. It hooks the whole process, so this is a program of its own; it needs
//! `renderdoccmd` and RenderDoc's python module, so it runs on demand: `./dev test --test renderdoc -- --ignored`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use tidemill::error::ProfileError;
use tidemill::{Accelerator, Config, Error, Prewarm};

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

/// A process has one capture at a time.
static TURN: Mutex<()> = Mutex::new(());

#[test]
#[ignore = "needs RenderDoc"]
fn a_capture_holds_exactly_our_dispatches_with_our_labels_and_replays() {
    let _turn = TURN.lock().unwrap();
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
    for part in ["tidemill block", "tidemill queue", "elementwise.", "1000 f32"] {
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
#[ignore = "needs RenderDoc"]
fn a_capture_inside_a_capture_is_refused_and_one_that_panics_is_over() {
    let _turn = TURN.lock().unwrap();
    let config = Config::new().renderdoc(true).no_cache().prewarm(Prewarm::Off);
    let (gpu, other) = (Accelerator::new(&config).unwrap(), Accelerator::new(&config).unwrap());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("renderdoc-nested");
    let name = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let fill = |gpu: &Accelerator| gpu.run(|r| r.fill([4], 1.0f32));
    for round in 0..2 {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            gpu.capture(&name("panics"), || -> tidemill::Result<()> {
                fill(&gpu)?;
                panic!("in a capture")
            })
        }));
        assert!(panicked.is_err());
        let failed = gpu.capture(&name("fails"), || fill(&gpu).and(Err::<(), _>(Error::Closed)));
        assert!(matches!(failed, Err(Error::Closed)), "{failed:?}");
        let refused = |call: &str, result: tidemill::Result<()>| match result {
            Err(Error::Profile(ProfileError::Capturing { call: by })) => assert_eq!(by, call),
            other => panic!("{call}: {other:?}"),
        };
        let (_, file) = gpu
            .capture(&name(&format!("outer-{round}")), || {
                refused("capture", gpu.capture(&name("inner"), || fill(&gpu)).map(drop));
                refused("capture", other.capture(&name("inner"), || fill(&other)).map(drop));
                let all = tidemill::tune::TuneOptions::new();
                refused("tune", gpu.tune(&all, |_| std::ops::ControlFlow::Continue(())).map(drop));
                fill(&gpu)
            })
            .unwrap();
        assert!(file.is_file());
    }
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name.to_string_lossy().starts_with("outer")), "{left:?}");
    std::fs::remove_dir_all(folder).unwrap();
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
