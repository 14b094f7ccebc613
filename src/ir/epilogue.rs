//! What happens to a matmul on its way to memory: a short list of elementwise ops on the accumulators, in the same
//! dispatch. Data only, so that the graph can append to it what follows a matmul.

use smallvec::SmallVec;

use crate::ir::branches::branch;
use crate::ir::elementwise::OpCode;
use crate::ir::op_code::OpSet;
use crate::ir::value::ValueId;

/// Steps of one epilogue.
pub(crate) const MAX_STEPS: usize = 6;
/// Inputs of one epilogue, beside the matmul.
pub(crate) const MAX_EXTRAS: usize = 2;
/// Scalars of one epilogue.
pub(crate) const MAX_SCALARS: usize = 4;

/// An operand of a step; numbers as in `glsl/lib/epilogue.glsl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// One of the extra inputs.
    Extra(u8),
    /// One of the scalars.
    Scalar(u8),
    /// An earlier step's result.
    Step(u8),
    /// The matmul.
    Accumulator,
}

impl Source {
    fn code(self) -> u32 {
        match self {
            Source::Extra(i) => u32::from(i),
            Source::Scalar(i) => 32 + u32::from(i),
            Source::Step(i) => 64 + u32::from(i),
            Source::Accumulator => 96,
        }
    }
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) op: OpCode,
    /// Unused operands repeat the first.
    pub(crate) operands: [Source; 3],
}

impl Step {
    /// As the shader reads it.
    pub(crate) fn word(&self) -> u32 {
        let [a, b, c] = self.operands.map(Source::code);
        self.op as u32 | a << 8 | b << 16 | c << 24
    }
}

/// A tensor that takes part, and how the result's coordinates find its element. Strides in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extra {
    pub(crate) value: ValueId,
    pub(crate) batch: [u32; 2],
    pub(crate) row: u32,
    /// 0 or 1.
    pub(crate) column: u32,
    /// Whether it is f16.
    pub(crate) is_f16: bool,
}

impl Extra {
    /// As the shader numbers the ways of indexing. `aligned`: groups of four columns begin at multiples of four.
    pub(crate) fn mode(&self, aligned: bool) -> u32 {
        let aligned =
            aligned && [self.batch[0], self.batch[1], self.row].iter().all(|stride| stride % 4 == 0);
        let columns = match (self.column, aligned) {
            (0, _) => {
                branch!("epilogue: one for a row");
                1
            }
            (_, aligned) => 3 - u32::from(branch!("epilogue: aligned", aligned)),
        };
        let common = if branch!("epilogue: one for a column", self.row == 0) { 4 } else { 0 };
        let is_f16 = if branch!("epilogue: f16", self.is_f16) { 8 } else { 0 };
        columns | common | is_f16
    }
}

/// The elementwise op.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Epilogue {
    pub(crate) steps: SmallVec<[Step; 2]>,
    pub(crate) extras: SmallVec<[Extra; MAX_EXTRAS]>,
    pub(crate) scalars: SmallVec<[u32; 2]>,
}

/// The push constants of `glsl/lib/epilogue.glsl`, which follow a kernel's own: where the result lies, and the
/// elementwise op's scalars and strides.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct PushResult {
    pub(crate) m: u32,
    pub(crate) n: u32,
    pub(crate) first_row: u32,
    pub(crate) c_row: u32,
    pub(crate) c_base: u32,
    pub(crate) alpha: f32,
    pub(crate) scalars: [u32; MAX_SCALARS],
    pub(crate) extra_rows: [u32; MAX_EXTRAS],
    /// From here on for batches.
    pub(crate) first_batch: u32,
    pub(crate) batch_inner: u32,
    pub(crate) c_batch: u32,
    pub(crate) extra_batches: [[u32; 2]; MAX_EXTRAS],
}

impl PushResult {
    /// The result as it is, with the elementwise op's scalars and strides.
    pub(crate) fn with(mut self, epilogue: &Epilogue) -> PushResult {
        for (to, from) in self.scalars.iter_mut().zip(&epilogue.scalars) {
            *to = *from;
        }
        let strides = self.extra_rows.iter_mut().zip(&mut self.extra_batches);
        for ((row, batch), extra) in strides.zip(&epilogue.extras) {
            (*row, *batch) = (extra.row, extra.batch);
        }
        self
    }

    /// What modules for one batch take.
    pub(crate) fn of_one_batch(&self) -> &[u8] {
        &bytemuck::bytes_of(self)[..std::mem::offset_of!(PushResult, first_batch)]
    }
}

impl Epilogue {
    /// What the last step left: the operand of the next.
    pub(crate) fn last(&self) -> Source {
        match self.steps.len() {
            0 => Source::Accumulator,
            n => Source::Step((n - 1) as u8),
        }
    }

    /// Whether it fits into a dispatch.
    pub(crate) fn fits(&self) -> bool {
        self.steps.len() <= MAX_STEPS
            && self.extras.len() <= MAX_EXTRAS
            && self.scalars.len() <= MAX_SCALARS
            && branch!(
                "fuse epilogue: no rare step",
                self.steps.iter().all(|step| step.op.set() <= OpSet::All)
            )
    }

    /// Whether a module with the commonest operations holds it. A driver reads the whole module for each pipeline: on
    /// lavapipe the first matmul takes 55 ms with that one and 90 with the light set.
    pub(crate) fn is_plain(&self) -> bool {
        self.steps.iter().all(|step| step.op.set() <= OpSet::Plain)
    }

    /// The extra inputs' values; `spare` stands behind bindings that are not used.
    pub(crate) fn inputs(&self, spare: ValueId) -> [ValueId; MAX_EXTRAS] {
        [0, 1].map(|i| self.extras.get(i).map_or(spare, |extra| extra.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_read_four_at_a_time_only_where_they_are_aligned() {
        let extra =
            |batch, row, column| Extra { value: 0, batch: [0, batch], row, column, is_f16: false }.mode(true);
        assert_eq!((extra(0, 8, 1), extra(0, 7, 1), extra(6, 8, 1)), (2, 3, 3));
        assert_eq!((extra(0, 1, 0), extra(3, 0, 0)), (1, 4 | 1));
        assert_eq!((extra(0, 0, 1), extra(6, 0, 1)), (4 | 2, 4 | 3));
        assert_eq!(Extra { value: 0, batch: [0, 0], row: 8, column: 1, is_f16: true }.mode(false), 8 | 3);
    }

    #[test]
    fn operands_have_the_numbers_of_the_shader() {
        let step =
            Step { op: OpCode::AddF32, operands: [Source::Accumulator, Source::Extra(1), Source::Scalar(2)] };
        assert_eq!(step.word(), 1 | 96 << 8 | 1 << 16 | 34 << 24);
        let mut epilogue = Epilogue::default();
        assert_eq!(epilogue.last(), Source::Accumulator);
        epilogue.steps.push(step);
        assert_eq!(epilogue.last().code(), 64);
    }
}
