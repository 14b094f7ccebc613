//! The example with a window in C++, on a display without a screen. It needs GLFW, Xvfb and ImageMagick, so it runs on
//! demand: `./dev test glfw --include-ignored`. The pictures are left in `target/tmp/glfw`, for people to look at.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

#[allow(dead_code, reason = "other tests use more of it")]
mod toolchain;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use toolchain::{compiler, crate_dir, folder, prefix, succeed};

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

fn program() -> PathBuf {
    let (program, lib) = (folder("glfw").join("embed_glfw"), prefix().join("lib"));
    let mut cc = compiler(&crate_dir().join("../examples/embed_glfw/main.cpp"));
    cc.arg("-I").arg(prefix().join("include")).arg("-L").arg(&lib);
    cc.arg(format!("-Wl,-rpath,{}", lib.display()));
    succeed(cc.args(["-fsanitize=address", "-ltidemill_c", "-lglfw", "-lvulkan", "-o"]).arg(&program));
    program
}

/// The example, under the validation layer, which writes what it has to say to the example's output.
fn example(program: &Path, display: &str, check: &str) -> Command {
    let settings = folder(&format!("glfw/{check}"));
    let text = format!(
        "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n\
         khronos_validation.log_filename = stdout\n\
         khronos_validation.report_flags = error,warn,perf\n\
         khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_{check}_EXT\n"
    );
    std::fs::write(settings.join("vk_layer_settings.txt"), text).unwrap();
    let mut command = Command::new("timeout");
    command
        .arg("120")
        .arg(program)
        .env("DISPLAY", display)
        .env_remove("WAYLAND_DISPLAY")
        .env("XDG_CACHE_HOME", folder("cache"))
        // The layer, the driver and the display's library leak by themselves.
        .env("ASAN_OPTIONS", "detect_leaks=0")
        .env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation")
        .env("VK_LAYER_SETTINGS_PATH", settings);
    command
}

/// The window's pixels as they are on the display now.
fn screenshot(display: &str, file: &Path) -> Vec<[u8; 3]> {
    let taken = Command::new("import").args(["-display", display, "-window", "root"]).arg(file).status();
    assert!(taken.expect("import, of Debian's package imagemagick").success());
    let raw = Command::new("convert").arg(file).args(["-depth", "8", "rgb:-"]).output();
    let raw = raw.expect("convert, of Debian's package imagemagick").stdout;
    assert_eq!(raw.len(), 3 * SCREEN * SCREEN);
    let rows = raw.chunks_exact(3 * SCREEN).take(WINDOW);
    rows.flat_map(|row| row[..3 * WINDOW].chunks_exact(3).map(|p| [p[0], p[1], p[2]])).collect()
}

/// What the window must show.
fn expected(slider: f64) -> Vec<[u8; 3]> {
    let at = |i: usize| (i as f64 + 0.5) / WINDOW as f64;
    let pixel = |i: usize| {
        let (x, y) = (at(i % WINDOW), at(i / WINDOW));
        if (x - slider).abs() < 0.02 && y > 0.95 {
            return [255; 3];
        }
        let phase = 40.0 * (x - 0.5).hypot(y - 0.5) - std::f64::consts::TAU * slider;
        let level = 0.5 + 0.5 * phase.sin();
        [(255.0 * level) as u8, (200.0 * (1.0 - level)) as u8, 96]
    };
    (0..WINDOW * WINDOW).map(pixel).collect()
}

#[test]
#[ignore = "needs GLFW, Xvfb and ImageMagick"]
fn the_window_shows_what_the_engine_computed() {
    let program = program();
    let (_server, display) = display();
    // It ends by itself, and no messages from the layer; though it can speak.
    let mut quiet = example(&program, &display, "SYNCHRONIZATION_VALIDATION");
    assert_eq!(succeed(quiet.args(["--frames", "10"])), "10 frames\n");
    let heard = succeed(example(&program, &display, "BEST_PRACTICES").args(["--frames", "1"]));
    assert!(heard.contains("BestPractices"), "the layer can't be heard: {heard}");

    for slider in [0.25, 0.75] {
        let mut shown = example(&program, &display, "SYNCHRONIZATION_VALIDATION");
        let shown = shown.args(["--slider", &slider.to_string()]).stdout(Stdio::null()).spawn().unwrap();
        let _shown = Started(shown);
        let (file, expected) = (folder("glfw").join(format!("{slider}.png")), expected(slider));
        let begun = Instant::now();
        loop {
            let shot = screenshot(&display, &file);
            // Off by more than a rounding; at the edges of the knob, x is a float of 32 bits.
            let wrong = |(a, b): &(&[u8; 3], &[u8; 3])| a.iter().zip(*b).any(|(a, b)| a.abs_diff(*b) > 2);
            let wrong = shot.iter().zip(&expected).filter(wrong).count();
            if wrong < 100 {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{wrong} pixels differ: {}", file.display());
            sleep(Duration::from_millis(300));
        }
    }
}
