//! The matmuls whose pipelines are made ahead, and those by which a scheme is judged.

use smallvec::smallvec;

use crate::error::Result;
use crate::ir::epilogue::{Epilogue, Extra, Source, Step};
use crate::ir::matmul::{Matmul, MatrixOperand};
use crate::ir::op_code::OpCode;
use crate::ir::pipeline_key::PipelineKey;
use crate::ir::value::{Label, LabelName, Origin, ValueId, Values};
use crate::kernels::catalog::Catalog;
use crate::kernels::launch::pipelines_of;
use crate::shape::{DType, Shape};

/// What is done after an example.
#[derive(Clone, Copy)]
enum Then {
    Nothing,
    /// Takes many registers.
    Gelu,
    /// Two tensors are added: a bias, and one like the result.
    BiasAndResidual,
}

/// A matmul of two matrices.
#[derive(Clone, Copy)]
struct Example {
    m: u32,
    n: u32,
    k: u32,
    /// Whether each operand lies along k.
    k_contiguous: [bool; 2],
    dtype: DType,
    then: Then,
}

const fn example(m: u32, n: u32, k: u32) -> Example {
    Example { m, n, k, k_contiguous: [true, false], dtype: DType::F32, then: Then::Nothing }
}

const SQUARE: Example = example(1024, 1024, 256);
/// Of enough large tiles to keep a large GPU busy.
const LARGE: Example = example(4096, 4096, 256);
const COLUMN: Example = example(1024, 1, 1024);
const ROW: Example = example(1, 1024, 1024);
const FEW_ROWS: Example = example(4, 1024, 1024);
const FEW_COLUMNS: Example = example(1024, 10, 1024);

/// The pipelines that common matmuls use.
pub(crate) fn prewarm(catalog: &Catalog) -> Result<Vec<PipelineKey>> {
    keys(catalog, [SQUARE, COLUMN, ROW])
}

/// Those, and the ones for operands that lie otherwise, that are halves, whose rows are no whole groups of four, and with
/// epilogues.
pub(crate) fn inspected(catalog: &Catalog) -> Result<Vec<PipelineKey>> {
    let layouts =
        [[true, true], [false, true], [false, false]].map(|k_contiguous| Example { k_contiguous, ..SQUARE });
    let shapes = [SQUARE, LARGE, COLUMN, ROW, FEW_ROWS, FEW_COLUMNS];
    let of_f16 = shapes.map(|shape| Example { dtype: DType::F16, ..shape });
    let gelus = shapes.map(|shape| Example { then: Then::Gelu, ..shape });
    let tensors = shapes.map(|shape| Example { then: Then::BiasAndResidual, ..shape });
    // Parts of a sum get the epilogue when they are added up.
    let split = [Then::Nothing, Then::Gelu].map(|then| Example { then, ..example(64, 64, 4096) });
    let odd = [example(1023, 1023, 255), example(1023, 3, 1023), example(1, 1023, 1023)];
    let more = layouts.into_iter().chain(of_f16).chain(gelus).chain(tensors).chain(split).chain(odd);
    keys(catalog, shapes.into_iter().chain(more))
}

fn keys(catalog: &Catalog, examples: impl IntoIterator<Item = Example>) -> Result<Vec<PipelineKey>> {
    let (mut values, mut commands) = (Values::default(), Vec::new());
    for Example { m, n, k, k_contiguous, dtype, then } in examples {
        let mut value = |rows: u32, columns: u32, dtype| {
            values.add_value(Shape::from([rows as usize, columns as usize]), dtype, Origin::Produced)
        };
        let (lhs, rhs) = (value(m, k, dtype), value(k, n, dtype));
        let (bias, residual, output) =
            (value(1, n, DType::F32), value(m, n, DType::F32), value(m, n, DType::F32));
        let matrix = |value, k_contiguous| MatrixOperand { value, k_contiguous, batch: [0; 2] };
        let matmul = Matmul {
            m,
            n,
            k,
            batch: [1; 2],
            lhs: matrix(lhs, k_contiguous[0]),
            rhs: matrix(rhs, k_contiguous[1]),
            alpha: 1.0,
            epilogue: then.epilogue(n, bias, residual),
            output,
        };
        let label = Label { op: LabelName::Op("prewarm"), shape: Shape::default(), dtype };
        matmul.lower(&label, &mut values, catalog, &mut commands)?;
    }
    Ok(pipelines_of(commands))
}

impl Then {
    fn epilogue(self, n: u32, bias: ValueId, residual: ValueId) -> Epilogue {
        let step = |op, a, b| Step { op, operands: [a, b, a] };
        let extra = |value, row| Extra { value, batch: [0; 2], row, column: 1, is_f16: false };
        match self {
            Then::Nothing => Epilogue::default(),
            Then::Gelu => Epilogue {
                steps: smallvec![step(OpCode::GeluF32, Source::Accumulator, Source::Accumulator)],
                ..Epilogue::default()
            },
            Then::BiasAndResidual => Epilogue {
                steps: smallvec![
                    step(OpCode::AddF32, Source::Accumulator, Source::Extra(0)),
                    step(OpCode::AddF32, Source::Step(0), Source::Extra(1)),
                ],
                extras: smallvec![extra(bias, 0), extra(residual, n)],
                ..Epilogue::default()
            },
        }
    }
}
