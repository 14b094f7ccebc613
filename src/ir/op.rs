//! The operations that can be recorded.

use crate::ir::attention::Attention;
use crate::ir::conv2d::{Convolution, PackWeights};
use crate::ir::copy::{Copy, CopyBox, Fill, Gather, Generate};
use crate::ir::dispatch::KernelDispatch;
use crate::ir::elementwise::Elementwise;
use crate::ir::index::{Histogram, Locate, Scatter};
use crate::ir::matmul::Matmul;
use crate::ir::norm::Norm;
use crate::ir::pool::Pooling;
use crate::ir::reduce::Reduce;
use crate::ir::resize::Resize;
use crate::ir::rotary::Angles;
use crate::ir::scan::{Scan, Search, SegmentSum, Sort};
use crate::ir::softmax::Softmax;
use crate::ir::value::ValueId;

/// An operation: what is to be made of which values, with no choice of kernels.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// A list of elementwise operations.
    Elementwise(Elementwise),
    Matmul(Box<Matmul>),
    Conv2d(Box<Convolution>),
    /// The weights of a convolution in the order of the kernels.
    PackWeights(PackWeights),
    Reduce(Box<Reduce>),
    Softmax(Box<Softmax>),
    /// A number for each window.
    Pool(Box<Pooling>),
    Norm(Box<Norm>),
    Resize(Box<Resize>),
    Attention(Box<Attention>),
    Angles(Angles),
    /// All of a value.
    Copy(Copy),
    /// A dense tensor into a box of a larger one.
    CopyBox(Box<CopyBox>),
    Gather(Gather),
    Locate(Locate),
    Scatter(Scatter),
    Histogram(Histogram),
    Scan(Scan),
    Sort(Sort),
    Search(Search),
    SegmentSum(SegmentSum),
    Generate(Generate),
    Fill(Fill),
    /// A kernel of a user's own.
    Dispatch(Box<KernelDispatch>),
}

impl Op {
    /// Names every value that it reads or writes (`true`), in the order of its operands, outputs last. An alias is
    /// named as it is.
    pub(crate) fn touches(&self, mut note: impl FnMut(ValueId, bool)) {
        // Most read some values and write one.
        let mut note = |inputs: &[ValueId], output: Option<ValueId>| {
            inputs.iter().for_each(|&input| note(input, false));
            output.into_iter().for_each(|output| note(output, true));
        };
        match self {
            Op::Elementwise(elementwise) => {
                elementwise.inputs.iter().for_each(|input| note(&[input.value], None));
                elementwise.outputs.iter().for_each(|output| note(&[], Some(output.value)));
            }
            Op::Matmul(matmul) => {
                note(&[matmul.lhs.value, matmul.rhs.value], None);
                matmul.epilogue.extras.iter().for_each(|extra| note(&[extra.value], None));
                note(&[], Some(matmul.output));
            }
            Op::Conv2d(convolution) => {
                note(&[convolution.input, convolution.weights], None);
                convolution.epilogue.extras.iter().for_each(|extra| note(&[extra.value], None));
                note(&[], Some(convolution.output));
            }
            Op::PackWeights(pack) => note(&[pack.weights], Some(pack.output)),
            Op::Reduce(reduce) => {
                along_axis(reduce.input, reduce.prologue.as_ref()).for_each(|input| note(&[input], None));
                note(reduce.second.as_slice(), Some(reduce.output));
            }
            Op::Softmax(softmax) => {
                along_axis(softmax.input, softmax.prologue.as_ref()).for_each(|input| note(&[input], None));
                note(&[], Some(softmax.output));
            }
            Op::Pool(pooling) => note(&[pooling.input], Some(pooling.output)),
            Op::Norm(norm) => {
                note(&[norm.input], None);
                norm.residual.iter().for_each(|residual| note(&[residual.input], None));
                note(&[norm.gamma], None);
                note(norm.beta.as_slice(), Some(norm.output));
                norm.residual.iter().for_each(|residual| note(&[], Some(residual.sum)));
            }
            Op::Resize(resize) => note(&[resize.input], Some(resize.output)),
            Op::Copy(copy) => note(&[copy.input], Some(copy.output)),
            Op::Attention(attention) => {
                let Attention { q, k, v, mask, length, output, .. } = **attention;
                note(&[q, k, v], None);
                mask.iter().for_each(|mask| note(&[mask.value], None));
                note(length.as_slice(), Some(output));
            }
            Op::Angles(angles) => note(&[angles.positions], Some(angles.output)),
            Op::CopyBox(copy) => {
                note(&[copy.input], None);
                note(copy.over.as_slice(), Some(copy.output));
            }
            Op::Gather(gather) => note(&[gather.table, gather.rows], Some(gather.output)),
            Op::Locate(locate) => note(&[locate.indices], Some(locate.output)),
            Op::Scatter(scatter) => {
                note(&[scatter.indices, scatter.updates], None);
                note(scatter.over.as_slice(), Some(scatter.output));
            }
            Op::Histogram(histogram) => note(&[histogram.numbers], Some(histogram.output)),
            Op::Scan(scan) => note(&[scan.input], Some(scan.output)),
            Op::Sort(sort) => {
                note(&[sort.input], sort.sorted);
                note(&[], sort.places);
            }
            Op::Search(search) => note(&[search.sorted, search.wanted], Some(search.output)),
            Op::SegmentSum(sum) => note(&[sum.ids, sum.places, sum.updates], Some(sum.output)),
            Op::Generate(generate) => note(&[], Some(generate.output)),
            Op::Fill(fill) => note(&[], Some(fill.output)),
            Op::Dispatch(dispatch) => {
                let arguments = &dispatch.arguments;
                arguments.iter().for_each(|argument| note(argument.over.as_slice(), None));
                for argument in arguments {
                    match argument.write {
                        true => note(&[], Some(argument.value)),
                        false => note(&[argument.value], None),
                    }
                }
            }
        }
    }
}

/// What an operation along an axis reads: a value, or the inputs of what makes its elements.
fn along_axis(input: ValueId, prologue: Option<&Elementwise>) -> impl Iterator<Item = ValueId> {
    let own = if prologue.is_some() { None } else { Some(input) };
    prologue.into_iter().flat_map(|prologue| &prologue.inputs).map(|input| input.value).chain(own)
}

/// Each operation's own type becomes an `Op` by `into`.
macro_rules! from_own_type {
    ($($variant:ident($own:ty) $(by $boxed:ident)?),* $(,)?) => {
        $(impl From<$own> for Op {
            fn from(op: $own) -> Op {
                Op::$variant($($boxed::new)?(op))
            }
        })*
    };
}

from_own_type! {
    Elementwise(Elementwise),
    Matmul(Matmul) by Box,
    Conv2d(Convolution) by Box,
    PackWeights(PackWeights),
    Reduce(Reduce) by Box,
    Softmax(Softmax) by Box,
    Pool(Pooling) by Box,
    Norm(Norm) by Box,
    Resize(Resize) by Box,
    Attention(Attention) by Box,
    Angles(Angles),
    Copy(Copy),
    CopyBox(CopyBox) by Box,
    Gather(Gather),
    Locate(Locate),
    Scatter(Scatter),
    Histogram(Histogram),
    Scan(Scan),
    Sort(Sort),
    Search(Search),
    SegmentSum(SegmentSum),
    Generate(Generate),
    Fill(Fill),
    Dispatch(KernelDispatch) by Box,
}
