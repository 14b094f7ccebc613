//! The example on a display without a screen. It needs Xvfb and ImageMagick, so it runs on demand:
//! `cargo test -p embed_window -- --ignored`.
//! The pictures are left in `target/tmp/window`, for people to look at.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Width and height of the display, and of the window in its corner.
const SCREEN: usize = 640;
const WINDOW: usize = 480;

/// A process that ends with the test.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("window");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A display of the test's own, and its name.
fn display() -> (Started, String) {
    let screen = format!("{SCREEN}x{SCREEN}x24");
    let mut server = Command::new("Xvfb")
        .args(["-displayfd", "1", "-nolisten", "tcp", "-screen", "0", &screen])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("Xvfb, of Debian's package xvfb");
    let mut number = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
    (Started(server), format!(":{}", number.trim()))
}

/// The example, under the validation layer, which writes what it has to say to the example's output.
fn example(display: &str, name: &str, check: &str) -> Command {
    let settings = folder().join(name);
    std::fs::create_dir_all(&settings).unwrap();
    let text = format!(
        "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n\
         khronos_validation.log_filename = stdout\n\
         khronos_validation.report_flags = error,warn,perf\n\
         khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_{check}_EXT\n"
    );
    std::fs::write(settings.join("vk_layer_settings.txt"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_embed_window"));
    command
        .env("DISPLAY", display)
        .env_remove("WAYLAND_DISPLAY")
        .env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation")
        .env("VK_LAYER_SETTINGS_PATH", settings);
    command
}

/// Runs this many frames; gives what was written.
fn run(display: &str, name: &str, check: &str, frames: u32) -> String {
    let output = example(display, name, check).args(["--frames", &frames.to_string()]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    text.into_owned()
}

/// The window's pixels as they are on the display now.
fn screenshot(display: &str, name: &str) -> Vec<[u8; 3]> {
    let file = folder().join(name);
    let taken = Command::new("import").args(["-display", display, "-window", "root"]).arg(&file).status();
    assert!(taken.expect("import, of Debian's package imagemagick").success());
    let raw = Command::new("convert").arg(&file).args(["-depth", "8", "rgb:-"]).output();
    let raw = raw.expect("convert, of Debian's package imagemagick").stdout;
    assert_eq!(raw.len(), 3 * SCREEN * SCREEN);
    let rows = raw.chunks_exact(3 * SCREEN).take(WINDOW);
    rows.flat_map(|row| row[..3 * WINDOW].chunks_exact(3).map(|p| [p[0], p[1], p[2]])).collect()
}

#[test]
#[ignore = "needs Xvfb and ImageMagick"]
fn the_window_shows_a_simulation_that_moves() {
    let (_server, display) = display();
    // It ends by itself, has found that its picture moves, and no messages from the layer; though it can speak.
    let text = run(&display, "synchronization", "SYNCHRONIZATION_VALIDATION", 30);
    assert!(text.contains("30 frames, ") && text.contains("pixels have moved"), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
    let heard = run(&display, "practices", "BEST_PRACTICES", 1);
    assert!(heard.contains("BestPractices"), "the layer can't be heard: {heard}");

    // What a person would see.
    let program = example(&display, "synchronization", "SYNCHRONIZATION_VALIDATION")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut program = Started(program);
    let lit = |shot: &[[u8; 3]]| shot.iter().filter(|p| p[0] > 128).count();
    let begun = Instant::now();
    let mut first = screenshot(&display, "first.png");
    while lit(&first) < WINDOW * WINDOW / 100 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the window stays dark");
        sleep(Duration::from_millis(300));
        first = screenshot(&display, "first.png");
    }
    sleep(Duration::from_secs(2));
    let second = screenshot(&display, "second.png");
    assert!(program.0.try_wait().unwrap().is_none(), "it is still running");
    // More than the flicker of a last digit.
    let differs = |(a, b): &(&[u8; 3], &[u8; 3])| a.iter().zip(*b).any(|(a, b)| a.abs_diff(*b) > 16);
    let moved = first.iter().zip(&second).filter(differs).count();
    println!("{moved} of {} pixels differ", first.len());
    assert!(moved > first.len() / 100, "only {moved} pixels differ");
}
