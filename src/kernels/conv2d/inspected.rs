//! The convolutions by whose pipelines a scheme is judged.

use smallvec::smallvec;

use super::Epilogue;
use crate::error::Result;
use crate::ir::conv2d::Convolution;
use crate::ir::epilogue::{Source, Step};
use crate::ir::op_code::OpCode;
use crate::ir::pipeline_key::PipelineKey;
use crate::ir::value::{Label, LabelName, Origin, Values};
use crate::kernels::catalog::Catalog;
use crate::kernels::launch::pipelines_of;
use crate::shape::{DType, Shape};

/// Square kernels on square images, with as much padding as keeps their size.
struct Example {
    images: u32,
    groups: u32,
    /// Of the input and of the result, in a group.
    channels: [u32; 2],
    size: u32,
    taps: u32,
    dtype: DType,
    epilogue: Epilogue,
}

/// The pipelines of common convolutions: kernels of 3 x 3 and 1 x 1 in few tiles and in many, small and large, of rows
/// that are no whole groups of four, depthwise ones, f16, and epilogues that take many registers.
pub(crate) fn inspected(catalog: &Catalog) -> Result<Vec<PipelineKey>> {
    let common = |images, taps| Example {
        images,
        groups: 1,
        channels: [64; 2],
        size: 56,
        taps,
        dtype: DType::F32,
        epilogue: Epilogue::default(),
    };
    let gelu = Step { op: OpCode::GeluF32, operands: [Source::Accumulator; 3] };
    let heavy = Epilogue { steps: smallvec![gelu], ..Epilogue::default() };
    let examples = [
        common(1, 3),
        common(8, 3),
        common(8, 1),
        Example { channels: [128; 2], ..common(4, 3) },
        Example { channels: [128; 2], ..common(8, 3) },
        Example { channels: [128; 2], ..common(8, 1) },
        Example { groups: 64, channels: [1; 2], ..common(8, 3) },
        Example { dtype: DType::F16, ..common(8, 3) },
        Example { dtype: DType::F16, channels: [128; 2], ..common(8, 3) },
        Example { size: 57, ..common(8, 3) },
        Example { epilogue: heavy.clone(), ..common(8, 3) },
        Example { epilogue: heavy.clone(), channels: [128; 2], ..common(8, 3) },
        Example { epilogue: heavy.clone(), size: 7, ..common(1, 3) },
        Example { epilogue: heavy, groups: 64, channels: [1; 2], ..common(8, 3) },
    ];
    let (mut values, mut commands) = (Values::default(), Vec::new());
    for Example { images, groups, channels, size, taps, dtype, epilogue } in examples {
        let [from, to] = channels;
        let mut value = |extents: [u32; 4], dtype| {
            values.add_value(Shape::from(extents.map(|extent| extent as usize)), dtype, Origin::Produced)
        };
        let input = value([images, groups * from, size, size], dtype);
        let weights = value([groups, from * taps, taps, to.next_multiple_of(4)], DType::F32);
        let output = value([images, groups * to, size, size], DType::F32);
        let convolution = Convolution {
            input,
            weights,
            images,
            groups,
            channels: from,
            rows: to,
            size: [size; 2],
            taps: [taps; 2],
            result: [size; 2],
            stride: [1; 2],
            dilation: [1; 2],
            padding: [taps / 2; 2],
            epilogue,
            output,
        };
        let label = Label { op: LabelName::Op(super::OP), shape: Shape::default(), dtype };
        convolution.lower(&label, &mut values, catalog, &mut commands)?;
    }
    Ok(pipelines_of(commands))
}
