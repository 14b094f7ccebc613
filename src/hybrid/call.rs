//! One operation on slices, where it is cheaper.

use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

use super::work::{Op, Work};
use super::{Hybrid, Ran, Side};
use crate::cpu::View;
use crate::cpu::view::check_length;
use crate::error::{Error, Result};
use crate::runtime::accelerator::Accelerator;
use crate::runtime::core::foreign_tensor;
use crate::runtime::process;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::runtime::tensor::Tensor;
use crate::shape::{Element, Shape};

/// An operand: a slice with a shape, or a tensor that is on the device already.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Input<'a, T = f32> {
    /// In the host's memory.
    Host(View<'a, T>),
    /// In the device's; priced without a transfer there.
    Device(&'a Tensor),
}

impl<T: Element> Input<'_, T> {
    /// The shape.
    pub fn shape(&self) -> Shape {
        match self {
            Input::Host(view) => view.shape(),
            Input::Device(tensor) => tensor.shape(),
        }
    }

    pub(super) fn on_device(&self, op: &'static str, gpu: &Accelerator) -> Result<Tensor> {
        match self {
            Input::Host(view) => gpu.upload(view.checked(op)?.data(), view.shape()),
            Input::Device(tensor) => Ok((*tensor).clone()),
        }
    }
}

impl<'a, T: Element, V: Into<View<'a, T>>> From<V> for Input<'a, T> {
    fn from(view: V) -> Input<'a, T> {
        Input::Host(view.into())
    }
}

impl<'a, T> From<&'a Tensor> for Input<'a, T> {
    fn from(tensor: &'a Tensor) -> Input<'a, T> {
        Input::Device(tensor)
    }
}

/// Operands of one element type, fetched where they are on the device.
struct OnHost<'a, T> {
    inputs: &'a [Input<'a, T>],
    fetched: SmallVec<[Vec<T>; 2]>,
}

impl<'a, T: Element> OnHost<'a, T> {
    fn new(inputs: &'a [Input<'a, T>]) -> Result<OnHost<'a, T>> {
        let fetched = inputs.iter().map(|input| match input {
            Input::Host(_) => Ok(Vec::new()),
            Input::Device(tensor) => tensor.read(),
        });
        Ok(OnHost { inputs, fetched: fetched.collect::<Result<_>>()? })
    }

    fn views(&self) -> SmallVec<[View<'_, T>; 4]> {
        let pairs = self.inputs.iter().zip(&self.fetched);
        let views = pairs.map(|(input, fetched)| match input {
            Input::Host(view) => *view,
            Input::Device(tensor) => View::new(fetched, tensor.shape()),
        });
        views.collect()
    }
}

/// The operands of a call: some of one element type, and for some operations others of another.
pub(super) struct Operands<'a, A, B> {
    pub(super) first: &'a [Input<'a, A>],
    pub(super) second: &'a [Input<'a, B>],
}

impl Hybrid {
    /// Runs one operation on operands of one element type.
    pub(super) fn run<T: Element, R: Element, const N: usize>(
        &self,
        op: Op,
        multiply_adds: f64,
        inputs: [Input<'_, T>; N],
        out: &mut [R],
        on_cpu: impl FnOnce([View<'_, T>; N], &mut [R]) -> Result<Shape>,
        on_gpu: impl FnOnce(&Recording, [Operand<'_>; N]) -> Result<Value>,
    ) -> Result<Ran> {
        self.run_on(
            op,
            multiply_adds,
            Operands::<T, T> { first: &inputs, second: &[] },
            out,
            |x, _, out| on_cpu(std::array::from_fn(|i| x[i]), out),
            |r, x, _| on_gpu(r, std::array::from_fn(|i| x[i])),
        )
    }

    /// Runs one operation where it is cheaper, and learns what it took.
    pub(super) fn run_on<A: Element, B: Element, R: Element>(
        &self,
        op: Op,
        multiply_adds: f64,
        Operands { first, second }: Operands<'_, A, B>,
        out: &mut [R],
        on_cpu: impl FnOnce(&[View<'_, A>], &[View<'_, B>], &mut [R]) -> Result<Shape>,
        on_gpu: impl FnOnce(&Recording, &[Operand<'_>], &[Operand<'_>]) -> Result<Value>,
    ) -> Result<Ran> {
        process::check()?;
        let (a, b) = (self.moved(op, first)?, self.moved(op, second)?);
        let elements = a.elements + b.elements;
        let work = Work {
            host_bytes: a.host_bytes + b.host_bytes,
            device_bytes: a.device_bytes + b.device_bytes,
            result_bytes: size_of_val(out),
            ..Work::on_host(op, elements, out.len(), multiply_adds)
        };
        let decision = self.placement.decide(&work);
        let begun = Instant::now();
        let shape = match (decision.side, &self.gpu) {
            (Side::Cpu, _) => {
                let (first, second) = (OnHost::new(first)?, OnHost::new(second)?);
                let shape = on_cpu(&first.views(), &second.views(), out)?;
                self.linger(begun, std::slice::from_ref(&work));
                shape
            }
            (Side::Gpu, Ok(gpu)) => {
                let (first, second) = (uploaded(op, gpu, first)?, uploaded(op, gpu, second)?);
                let result = gpu.run(|r| {
                    let value = on_gpu(r, &operands(&first), &operands(&second))?;
                    check_length(op.name(), r.shape(value)?, out.len())?;
                    Ok(value)
                })?;
                result.read_into(out)?;
                result.shape()
            }
            (Side::Gpu, Err(why)) => return Err(why.clone()),
        };
        self.placement.learn(&work, &decision, begun.elapsed().as_secs_f64() * 1e6);
        Ok(Ran { shape, decision })
    }
}

/// The operands of a call, as it is priced.
#[derive(Default)]
struct Moved {
    elements: usize,
    host_bytes: usize,
    device_bytes: usize,
}

impl Hybrid {
    /// An error if a tensor is another accelerator's, or of another type than the operation's slices are: whichever
    /// side the call would go to.
    fn moved<T: Element>(&self, op: Op, inputs: &[Input<'_, T>]) -> Result<Moved> {
        let mut moved = Moved::default();
        for input in inputs {
            let bytes = size_of::<T>() * input.shape().elements();
            moved.elements += input.shape().elements();
            let Input::Device(tensor) = input else {
                moved.host_bytes += bytes;
                continue;
            };
            check_home(op.name(), tensor, &self.gpu)?;
            let (expected, got) = (T::DTYPE, tensor.dtype());
            if expected != got {
                return Err(Error::of_type(op.name(), "operand", &[expected], got));
            }
            moved.device_bytes += bytes;
        }
        Ok(moved)
    }
}

/// An error unless the tensor is on this device.
pub(super) fn check_home(
    op: &'static str,
    tensor: &Tensor,
    gpu: &std::result::Result<Accelerator, Error>,
) -> Result<()> {
    let ours = gpu.as_ref().map_err(Error::clone)?;
    let theirs = tensor.accelerator();
    if Arc::ptr_eq(theirs.core(), ours.core()) {
        return Ok(());
    }
    Err(foreign_tensor(op, theirs.core(), ours.core()))
}

fn uploaded<T: Element>(op: Op, gpu: &Accelerator, inputs: &[Input<'_, T>]) -> Result<SmallVec<[Tensor; 4]>> {
    inputs.iter().map(|input| input.on_device(op.name(), gpu)).collect()
}

fn operands(tensors: &[Tensor]) -> SmallVec<[Operand<'_>; 4]> {
    tensors.iter().map(Operand::from).collect()
}
