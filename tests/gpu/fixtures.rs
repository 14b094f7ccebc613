//! The kernels in `tests/fixtures`.

use tidemill::Kernel;

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
