//! The kernels in `tests/fixtures`.

use tidemill::{Accelerator, DType, Dispatch, Kernel, Tensor};

/// The SPIR-V of a fixture.
pub fn words(name: &str) -> Vec<u32> {
    let file = format!("{}/tests/fixtures/{name}.spv", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
    bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
}

/// A fixture as a kernel.
#[allow(unsafe_code, reason = "kernels of the tests' own")]
pub fn kernel(name: &str) -> Kernel {
    // SAFETY: the fixtures are valid and, dispatched as the tests do, stay inside their bindings.
    unsafe { Kernel::from_spirv(name, &words(name)) }.unwrap()
}

/// One recording of ten thousand dispatches that nothing can fuse, each adding 1 to the result of the one before.
#[allow(dead_code, reason = "only some test binaries run it")]
pub fn ten_thousand_steps(gpu: &Accelerator) -> Tensor {
    let scale = kernel("scale");
    let mut r = gpu.begin_recording().unwrap();
    let mut x = r.fill([64], 0.0f32).unwrap();
    for _ in 0..10_000 {
        let run = Dispatch::new(&scale).input(x).output([64], DType::F32).push(&[1.0f32]);
        x = r.dispatch(run.specialize(0, 64u32).specialize(1, 1.0f32)).unwrap()[0];
    }
    let kept = r.keep(x).unwrap();
    let _ = r.end_recording().unwrap();
    kept
}
