//! `relu(a * b + c) * d` fused by hand, through our own engine: `relu_abcd.comp`.

#![allow(
    unsafe_code,
    reason = "a kernel from outside is unsafe to make; its whole workgroups are checked here"
)]

use tidemill::{DType, Dispatch, Kernel, Recording, Tensor, Value};

use crate::bench::benchmark::Result;

static RELU_ABCD: &[u8] = include_bytes!("relu_abcd.spv");
/// Elements that one workgroup of it takes.
const PER_GROUP: usize = 64 * 8 * 4;

/// The kernel.
pub(crate) struct Fused {
    kernel: Kernel,
    elements: usize,
}

impl Fused {
    /// For operands of whole workgroups.
    pub(crate) fn new(elements: usize) -> Result<Fused> {
        if !elements.is_multiple_of(PER_GROUP) {
            return Err("the kernel takes whole workgroups only".into());
        }
        let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let words: Vec<u32> = RELU_ABCD.chunks_exact(4).map(word).collect();
        // SAFETY: the module is what shaderc made of relu_abcd.comp; with a multiple of a workgroup's elements and as
        // many workgroups it stays inside its bindings.
        let kernel = unsafe { Kernel::from_spirv("relu_abcd", &words) }?;
        Ok(Fused { kernel, elements })
    }

    /// Records it.
    pub(crate) fn record(&self, r: &Recording, operands: &[Tensor]) -> tidemill::Result<Value> {
        let run = operands.iter().fold(Dispatch::new(&self.kernel), |run, tensor| run.input(tensor));
        let groups = [(self.elements / PER_GROUP) as u32, 1, 1];
        Ok(r.dispatch(run.output([self.elements], DType::F32).groups(groups))?[0])
    }
}
