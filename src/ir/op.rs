//! The operations that can be recorded.

use crate::ir::conv2d::{Convolution, PackWeights};
use crate::ir::copy::{Copy, CopyBox, Fill, Gather, Generate};
use crate::ir::dispatch::KernelDispatch;
use crate::ir::elementwise::Elementwise;
use crate::ir::epilogue::Epilogue;
use crate::ir::index::{Histogram, Locate, Scatter};
use crate::ir::matmul::Matmul;
use crate::ir::norm::Norm;
use crate::ir::pool::Pooling;
use crate::ir::reduce::Reduce;
use crate::ir::resize::Resize;
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
    /// Names every value that it reads or writes (`true`), in the order of its operands, outputs last. An alias is named as it is.
    pub(crate) fn touches(&self, mut note: impl FnMut(ValueId, bool)) {
        match self {
            Op::Elementwise(elementwise) => {
                elementwise.inputs.iter().for_each(|input| note(input.value, false));
                elementwise.outputs.iter().for_each(|output| note(output.value, true));
            }
            Op::Matmul(matmul) => {
                [matmul.lhs, matmul.rhs].iter().for_each(|operand| note(operand.value, false));
                extras(&matmul.epilogue, &mut note);
                note(matmul.output, true);
            }
            Op::Conv2d(convolution) => {
                [convolution.input, convolution.weights].iter().for_each(|&value| note(value, false));
                extras(&convolution.epilogue, &mut note);
                note(convolution.output, true);
            }
            Op::PackWeights(pack) => {
                note(pack.weights, false);
                note(pack.output, true);
            }
            Op::Reduce(reduce) => {
                with_prologue(reduce.input, reduce.prologue.as_ref(), &mut note);
                reduce.second.iter().for_each(|&second| note(second, false));
                note(reduce.output, true);
            }
            Op::Softmax(softmax) => {
                with_prologue(softmax.input, softmax.prologue.as_ref(), &mut note);
                note(softmax.output, true);
            }
            Op::Pool(pooling) => {
                note(pooling.input, false);
                note(pooling.output, true);
            }
            Op::Norm(norm) => {
                let Norm { input, residual, gamma, beta, output, .. } = **norm;
                [Some(input), residual.map(|r| r.input), Some(gamma), beta]
                    .into_iter()
                    .flatten()
                    .for_each(|value| note(value, false));
                note(output, true);
                residual.iter().for_each(|residual| note(residual.sum, true));
            }
            Op::Resize(resize) => {
                note(resize.input, false);
                note(resize.output, true);
            }
            Op::Copy(copy) => {
                note(copy.input, false);
                note(copy.output, true);
            }
            Op::CopyBox(copy) => {
                note(copy.input, false);
                copy.over.iter().for_each(|&over| note(over, false));
                note(copy.output, true);
            }
            Op::Gather(gather) => {
                note(gather.table, false);
                note(gather.rows, false);
                note(gather.output, true);
            }
            Op::Locate(locate) => {
                note(locate.indices, false);
                note(locate.output, true);
            }
            Op::Scatter(scatter) => {
                note(scatter.indices, false);
                note(scatter.updates, false);
                scatter.over.iter().for_each(|&over| note(over, false));
                note(scatter.output, true);
            }
            Op::Histogram(histogram) => {
                note(histogram.numbers, false);
                note(histogram.output, true);
            }
            Op::Scan(scan) => {
                note(scan.input, false);
                note(scan.output, true);
            }
            Op::Sort(sort) => {
                note(sort.input, false);
                [sort.sorted, sort.places].into_iter().flatten().for_each(|output| note(output, true));
            }
            Op::Search(search) => {
                note(search.sorted, false);
                note(search.wanted, false);
                note(search.output, true);
            }
            Op::SegmentSum(sum) => {
                [sum.ids, sum.places, sum.updates].into_iter().for_each(|input| note(input, false));
                note(sum.output, true);
            }
            Op::Generate(generate) => note(generate.output, true),
            Op::Fill(fill) => note(fill.output, true),
            Op::Dispatch(dispatch) => {
                dispatch
                    .arguments
                    .iter()
                    .filter_map(|argument| argument.over)
                    .for_each(|over| note(over, false));
                dispatch.arguments.iter().for_each(|argument| note(argument.value, argument.write));
            }
        }
    }
}

fn extras(epilogue: &Epilogue, note: &mut impl FnMut(ValueId, bool)) {
    epilogue.extras.iter().for_each(|extra| note(extra.value, false));
}

/// What an operation along an axis reads: a value, or the inputs of what makes its elements.
fn with_prologue(input: ValueId, prologue: Option<&Elementwise>, note: &mut impl FnMut(ValueId, bool)) {
    match prologue {
        Some(prologue) => prologue.inputs.iter().for_each(|input| note(input.value, false)),
        None => note(input, false),
    }
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
