//! The kernels in `tests/fixtures`, and memory to import.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    let r = gpu.begin_recording().unwrap();
    let mut x = r.fill([64], 0.0f32).unwrap();
    for _ in 0..10_000 {
        let run = Dispatch::new(&scale).input(x).output([64], DType::F32).push(&[1.0f32]);
        x = r.dispatch(run.specialize(0, 64u32).specialize(1, 1.0f32)).unwrap()[0];
    }
    let kept = r.keep(x).unwrap();
    let _ = r.end_recording().unwrap();
    kept
}

/// Memory of an application that begins with a page, and says when it is dropped.
#[repr(C, align(4096))]
#[allow(dead_code, reason = "only some test binaries import memory")]
pub struct Pages {
    bytes: [u8; Pages::BYTES],
    dropped: Arc<AtomicBool>,
}

#[allow(dead_code, reason = "as above")]
impl Pages {
    /// Two pages and a part of a third.
    pub const BYTES: usize = 2 * 4096 + 1000;

    /// The same number everywhere.
    pub fn of(number: f32, dropped: Arc<AtomicBool>) -> Pages {
        let mut bytes = [0; Pages::BYTES];
        bytes.chunks_exact_mut(4).for_each(|word| word.copy_from_slice(&number.to_ne_bytes()));
        Pages { bytes, dropped }
    }
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Release);
    }
}
