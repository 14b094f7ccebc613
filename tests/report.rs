//! The report in a real browser. It needs Chromium, so it runs on demand: `./dev test --test report -- --ignored`. The
//! pictures are left in `target/tmp/report`, for people to look at. And the picture in the documentation is current.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

use std::path::{Path, PathBuf};
use std::process::Command;

use tidemill::explain::Explanation;
use tidemill::profile::{Profiling, Run};
use tidemill::{Accelerator, Config, Prewarm};

fn run(gpu: &Accelerator, mode: Profiling) -> tidemill::Result<Run> {
    let n = 1 << 20;
    let host: Vec<f32> = (0..n).map(|i| 1.0 + (i % 7) as f32).collect();
    let small = gpu.upload(&[2.0f32; 4096], [4096])?;
    // Pipelines first: they are not what this is about.
    for warm in [true, false] {
        let session = if warm { None } else { Some(gpu.begin_profiling(&format!("chain, {mode}"), mode)?) };
        if let Some(session) = &session {
            session.graph("a <network>", network(gpu)?);
        }
        for _ in 0..3 {
            let a = gpu.upload(&host, [1024, 1024])?;
            let (result, _, _) = gpu.run(|r| {
                let sum = r.add(&a, &a)?;
                let product = r.mul(&a, &a)?;
                let both = r.div(sum, product)?;
                let turned = r.transpose(both)?;
                Ok((turned, r.copy(turned)?, r.sub(&small, &small)?))
            })?;
            assert_eq!(result.read::<f32>()?[0], 2.0);
        }
        if let Some(session) = session {
            let now = std::time::Instant::now();
            session.note("own code <b>&", "thinking", now - std::time::Duration::from_millis(1), now);
            return session.finish();
        }
    }
    unreachable!("the second round returns")
}

/// A small network and how sure it is, as it will run.
fn network(gpu: &Accelerator) -> tidemill::Result<Explanation> {
    let (x, w1) = (gpu.zeros::<f32>([64, 784])?, gpu.zeros::<f32>([784, 256])?);
    let (b1, w2) = (gpu.zeros::<f32>([256])?, gpu.zeros::<f32>([256, 10])?);
    let r = gpu.begin_recording()?;
    let h = r.matmul(&x, &w1)?;
    let h = r.add(h, &b1)?;
    let h = r.relu(h)?;
    let y = r.matmul(h, &w2)?;
    let p = r.softmax(y, -1)?;
    let log = r.log(p)?;
    let share = r.mul(p, log)?;
    let sum = r.sum(share, -1)?;
    let _kept = (r.keep(p)?, r.keep(sum)?);
    r.explain()
}

#[test]
fn the_picture_in_the_docs_is_current() {
    // What will run differs from device to device. This one is everywhere, with the variants of GPUs, which don't ask
    // how wide its vectors are.
    let variants =
        [("elementwise", "buffer-256x1"), ("reduce", "buffer-shared"), ("softmax", "buffer-shared")];
    let config = Config::new().device_name("llvmpipe").no_cache().prewarm(Prewarm::Off);
    let config = config.variant("matmul", "buffer-tile-32");
    let config = variants.into_iter().fold(config, |config, (family, name)| config.variant(family, name));
    let gpu = Accelerator::new(&config).expect("Mesa's software driver should be there: ./dev setup");
    let made = network(&gpu).unwrap().to_svg();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/graph.svg");
    if std::env::var_os("TIDEMILL_WRITE_PICTURE").is_some() {
        std::fs::write(&file, made).unwrap();
        return;
    }
    let is = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(is == made, "docs/graph.svg is not current: run ./dev picture\n{made}");
}

fn browser(page: &Path, folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("chromium");
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]).args([
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        "--window-size=1280,4200",
        "--virtual-time-budget=3000",
    ]);
    let profile = folder.join("profile");
    let _ = std::fs::remove_dir_all(&profile);
    command.arg(format!("--user-data-dir={}", profile.display())).args(arguments);
    command.arg(format!("file://{}", page.display()));
    let done = command.output().expect("Chromium should be there: Debian's package chromium");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Width and height of a PNG.
fn png_size(file: &PathBuf) -> (u32, u32) {
    let bytes = std::fs::read(file).unwrap();
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (word(16), word(20))
}

#[test]
#[ignore = "needs Chromium"]
fn the_report_opens_in_a_browser_and_shows_every_row() {
    let gpu = Accelerator::new(&Config::new().no_cache().prewarm(Prewarm::Off).fusion(false)).unwrap();
    let (timeline, isolated) =
        (run(&gpu, Profiling::Timeline).unwrap(), run(&gpu, Profiling::Isolated).unwrap());
    println!("{timeline}\n{isolated}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).unwrap();
    let page = folder.join("report.html");
    let text = tidemill::profile::html_report("Chains & <tails>", &[&timeline, &isolated]);
    for outside in ["http://", "https://", "src=", "href=", "@import", "url("] {
        let text = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!text.contains(outside), "the page reaches out: {outside}");
    }
    std::fs::write(&page, text).unwrap();
    std::fs::write(folder.join("trace.json"), isolated.trace_json()).unwrap();

    let dom = browser(&page, &folder, &["--dump-dom"]);
    assert!(dom.contains("data-ready=\"2\""), "the script did not come to its end");
    assert!(!dom.contains("data-error="), "the script failed");
    for row in timeline.rows().chain(isolated.rows()) {
        assert!(dom.contains(&row.label), "{} is missing", row.label);
    }
    assert!(
        dom.contains("Chains &amp; &lt;tails&gt;")
            && dom.contains("<canvas")
            && dom.contains("class=\"roof\"")
    );
    assert!(dom.contains("What ran: a &lt;network&gt;") && dom.contains("class=\"tidemill-graph\""));
    let steps = |class: &str| dom.matches(&format!("<rect class=\"{class}\"")).count();
    assert_eq!(steps("kept"), 2 * 2 * 2, "two kept values, recorded and run, in two runs");
    for (name, dark) in [("light.png", "0"), ("dark.png", "1")] {
        let picture = folder.join(name);
        let _ = std::fs::remove_file(&picture);
        let scheme = format!("--blink-settings=preferredColorScheme={}", if dark == "1" { 0 } else { 1 });
        browser(&page, &folder, &[&scheme, &format!("--screenshot={}", picture.display())]);
        assert_eq!(png_size(&picture), (1280, 4200));
    }
}
