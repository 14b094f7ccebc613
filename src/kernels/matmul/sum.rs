//! Parts of sums that were split among workgroups are added up, and get the epilogue: `glsl/matmul_sum.comp`.

use smallvec::smallvec;

use super::Push;
use crate::error::Result;
use crate::ir::command::Command;
use crate::ir::epilogue::{Epilogue, PushResult};
use crate::ir::value::{Access, ValueId, Values};
use crate::kernels::catalog::Load;
use crate::kernels::epilogue::set_constants;
use crate::kernels::launch::Launch;
use crate::kernels::modules::constants::Constants;
use crate::kernels::modules::matmul_sum;

/// Invocations of a workgroup.
const LOCAL_SIZE: u32 = 64;

/// Parts `[part][batch][row][pitch]` that become a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) value: ValueId,
    pub(crate) count: u32,
    pub(crate) batches: u32,
    pub(crate) rows: u32,
    /// Elements from one row to the next; a multiple of four.
    pub(crate) pitch: u32,
}

impl Parts {
    /// The dispatch that adds them up into `target`.
    pub(crate) fn sum(
        &self,
        launch: &Launch<'_>,
        values: &Values,
        result: PushResult,
        epilogue: &Epilogue,
        target: Access,
    ) -> Result<Command> {
        let vec4s = self.pitch / 4;
        let push = Push {
            k: self.count,
            tiles_m: self.rows,
            band: 1,
            batches: self.batches,
            a_row: vec4s,
            a_batch: [self.batches * self.rows * vec4s, self.rows * vec4s],
            result,
            ..Push::default()
        };
        let mut constants = Constants::<matmul_sum::File>::new(LOCAL_SIZE);
        set_constants(epilogue, (result.n.is_multiple_of(4), true), &mut constants);
        let kernel = constants.of(match (launch.load, epilogue.is_plain()) {
            (Load::Buffer, true) => matmul_sum::Module::BufferPlain,
            (Load::Buffer, false) => matmul_sum::Module::BufferAll,
            (Load::Texel, true) => matmul_sum::Module::TexelPlain,
            (Load::Texel, false) => matmul_sum::Module::TexelAll,
        });
        let [x0, x1] = epilogue.inputs(self.value).map(|value| values.whole(value, false));
        let accesses = smallvec![values.whole(self.value, false), x0, x1, target];
        let tiles = u64::from(self.rows) * u64::from(result.n.div_ceil(4 * LOCAL_SIZE));
        launch.command(values, kernel, bytemuck::bytes_of(&push), (tiles, self.batches), accesses)
    }
}
