//! A kernel of your own in GLSL, compiled while the program runs.
//!
//! cargo run --release --features shaderc --example custom_kernel
//! cargo run --release --features shaderc --example custom_kernel -- --watch
//!
//! With `--watch`, edit examples/custom_kernel.comp and see the result change; a mistake is told with its line.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use tidemill::{Accelerator, DType, Dispatch, Glsl, Kernel, Result};

/// Runs the kernel on 0, 1, 2, …
fn run(gpu: &Accelerator, kernel: &Kernel, n: usize) -> Result<Vec<f32>> {
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let x = gpu.upload(&x, [n])?;
    let run = Dispatch::new(kernel).input(&x).output([n], DType::F32).groups([n.div_ceil(64) as u32, 1, 1]);
    gpu.run(|r| r.dispatch(run))?[0].read()
}

/// Compiles and runs the file now and whenever it has changed, until somebody has seen enough.
pub(crate) fn watch(
    gpu: &Accelerator,
    glsl: &Glsl,
    file: &Path,
    mut seen: impl FnMut(Result<Vec<f32>>) -> ControlFlow<()>,
) {
    let mut last = None;
    loop {
        // An editor may have taken it away for a moment.
        let text = std::fs::read(file).ok();
        if text.is_some() && text != last {
            last = text;
            if seen(glsl.compile().and_then(|kernel| run(gpu, &kernel, 8))).is_break() {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[allow(dead_code, reason = "a test includes this file for what is above")]
fn main() -> Result<()> {
    let gpu = Accelerator::global()?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/custom_kernel.comp");
    let glsl = Glsl::file(&file).define("OFFSET", 1.0);
    if std::env::args().any(|argument| argument == "--watch") {
        println!("watching {}", file.display());
        watch(&gpu, &glsl, &file, |result| {
            match result {
                Ok(y) => println!("{y:?}"),
                Err(error) => println!("{error}"),
            }
            ControlFlow::Continue(())
        });
    }
    let y = run(&gpu, &glsl.compile()?, 1000)?;
    assert!(y.iter().enumerate().all(|(i, &y)| y == (i * i) as f32 + 1.0));
    println!("squares and one more: {:?} …", &y[..8]);
    Ok(())
}
