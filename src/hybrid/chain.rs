//! Several operations as one call.

use std::time::Instant;

use smallvec::SmallVec;

use super::call::check_home;
use super::work::{Op, Work};
use super::{Decision, Hybrid, Input, Side};
use crate::cpu::view::check_length;
use crate::cpu::{Number, View};
use crate::error::{Error, Result};
use crate::runtime::accelerator::Accelerator;
use crate::runtime::process;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::runtime::tensor::Tensor;
use crate::shape::{DType, Shape};

/// An operand or a result of a [`Chain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link(usize);

/// Elements are words here, whatever their type.
type OnCpu<'a> = Box<dyn Fn(&[View<'_, u32>], &mut [u32]) -> Result<Shape> + 'a>;
type OnGpu<'a> = Box<dyn Fn(&Recording, &[Operand<'_>]) -> Result<Value> + 'a>;

/// What a link stands for.
enum Source<'a> {
    Input(Input<'a, u32>),
    Step { operands: SmallVec<[Link; 2]>, work: Work, on_cpu: OnCpu<'a>, on_gpu: OnGpu<'a> },
}

/// What an operation gives.
pub(super) struct OpResult {
    pub(super) op: Op,
    pub(super) shape: Shape,
    pub(super) dtype: DType,
    pub(super) multiply_adds: f64,
}

/// Operations that are carried out together on one side; [`Hybrid::chain`] makes one.
///
/// Elements are f32, i32 or u32. Halves are a way of storing on the device alone, and are refused.
pub struct Chain<'a> {
    gpu: std::result::Result<Accelerator, Error>,
    links: Vec<Linked<'a>>,
    outputs: Vec<(Link, &'a mut [u32])>,
}

struct Linked<'a> {
    source: Source<'a>,
    shape: Shape,
    dtype: DType,
}

impl std::fmt::Debug for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain")
            .field("links", &self.links.len())
            .field("outputs", &self.outputs.len())
            .finish()
    }
}

impl<'a> Chain<'a> {
    /// An operand: a slice with a shape, or a tensor that is on the device.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if slice and shape do not fit, [`Error::Type`] if the tensor is of f16,
    /// [`Error::ForeignTensor`] if it is another accelerator's.
    pub fn input(&mut self, input: impl Into<Input<'a>>) -> Result<Link> {
        match input.into() {
            Input::Host(view) => self.input_of(view),
            Input::Device(tensor) => {
                check_home("input", tensor, &self.gpu)?;
                let dtype = whole_words("input", tensor.dtype())?;
                Ok(self.link(Source::Input(tensor.into()), tensor.shape(), dtype))
            }
        }
    }

    /// A slice of another element type, as [`select`](Chain::select) and [`gather_rows`](Chain::gather_rows) want them.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if slice and shape do not fit.
    pub fn input_of<T: Number>(&mut self, input: impl Into<View<'a, T>>) -> Result<Link> {
        let input = input.into().checked("input")?;
        let words = View::new(bytemuck::cast_slice(input.data()), input.shape());
        Ok(self.link(Source::Input(Input::Host(words)), input.shape(), T::DTYPE))
    }

    fn link(&mut self, source: Source<'a>, shape: Shape, dtype: DType) -> Link {
        self.links.push(Linked { source, shape, dtype });
        Link(self.links.len() - 1)
    }

    /// A result goes to a slice of as many elements.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if it has not as many, [`Error::Type`] if they are of another type.
    pub fn output<T: Number>(&mut self, link: Link, out: &'a mut [T]) -> Result<()> {
        self.check_type("output", link, T::DTYPE)?;
        check_length("output", self.shape(link)?, out.len())?;
        self.outputs.push((link, bytemuck::cast_slice_mut(out)));
        Ok(())
    }

    fn linked(&self, link: Link) -> Result<&Linked<'a>> {
        self.links.get(link.0).ok_or(Error::ForeignValue { op: "chain" })
    }

    /// The shape that a link has.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignValue`] if the link is not this chain's.
    pub fn shape(&self, link: Link) -> Result<Shape> {
        Ok(self.linked(link)?.shape)
    }

    /// The type of a link's elements.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignValue`] if the link is not this chain's.
    pub fn dtype(&self, link: Link) -> Result<DType> {
        Ok(self.linked(link)?.dtype)
    }

    pub(super) fn check_type(&self, op: &'static str, link: Link, expected: DType) -> Result<()> {
        let got = self.dtype(link)?;
        if got == expected { Ok(()) } else { Err(Error::of_type(op, "operand", &[expected], got)) }
    }

    /// An operation on operands of one type.
    pub(super) fn step<T: Number, R: Number>(
        &mut self,
        op: Op,
        operands: &[Link],
        shape: Shape,
        multiply_adds: f64,
        on_cpu: impl Fn(&[View<'_, T>], &mut [R]) -> Result<Shape> + 'a,
        on_gpu: impl Fn(&Recording, &[Operand<'_>]) -> Result<Value> + 'a,
    ) -> Result<Link> {
        for operand in operands {
            self.check_type(op.name(), *operand, T::DTYPE)?;
        }
        let on_words = move |words: &[View<'_, u32>], out: &mut [u32]| {
            let views: SmallVec<[View<'_, T>; 4]> =
                words.iter().map(|x| View::new(bytemuck::cast_slice(x.data()), x.shape())).collect();
            on_cpu(&views, bytemuck::cast_slice_mut(out))
        };
        self.step_on_words(OpResult { op, shape, dtype: R::DTYPE, multiply_adds }, operands, on_words, on_gpu)
    }

    /// An operation on words, with a result of a type.
    pub(super) fn step_on_words(
        &mut self,
        OpResult { op, shape, dtype, multiply_adds }: OpResult,
        operands: &[Link],
        on_cpu: impl Fn(&[View<'_, u32>], &mut [u32]) -> Result<Shape> + 'a,
        on_gpu: impl Fn(&Recording, &[Operand<'_>]) -> Result<Value> + 'a,
    ) -> Result<Link> {
        let mut inputs = 0;
        for operand in operands {
            inputs += self.shape(*operand)?.elements();
        }
        let work = Work::on_host(op, inputs, shape.elements(), multiply_adds);
        let (on_cpu, on_gpu) = (Box::new(on_cpu), Box::new(on_gpu));
        let operands = SmallVec::from_slice(operands);
        Ok(self.link(Source::Step { operands, work, on_cpu, on_gpu }, shape, dtype))
    }

    fn run_on_cpu(&mut self) -> Result<()> {
        // What inputs on the device and steps hold; other inputs are where they are.
        let mut held: Vec<Vec<u32>> = Vec::with_capacity(self.links.len());
        for Linked { source, shape, dtype } in &self.links {
            let data = match source {
                Source::Input(Input::Host(_)) => Vec::new(),
                Source::Input(Input::Device(tensor)) => {
                    let mut words = vec![0; shape.elements()];
                    read_words(tensor, *dtype, &mut words)?;
                    words
                }
                Source::Step { operands, on_cpu, .. } => {
                    let views: SmallVec<[View<'_, u32>; 4]> =
                        operands.iter().map(|link| self.view(*link, &held)).collect();
                    let mut out = vec![0; shape.elements()];
                    on_cpu(&views, &mut out)?;
                    out
                }
            };
            held.push(data);
        }
        for (link, out) in std::mem::take(&mut self.outputs) {
            out.copy_from_slice(self.view(link, &held).data());
        }
        Ok(())
    }

    fn view<'b>(&'b self, link: Link, held: &'b [Vec<u32>]) -> View<'b, u32> {
        match &self.links[link.0] {
            Linked { source: Source::Input(Input::Host(view)), .. } => *view,
            Linked { shape, .. } => View::new(&held[link.0], *shape),
        }
    }

    fn run_on_gpu(&mut self, gpu: &Accelerator) -> Result<()> {
        let mut inputs = Vec::new();
        for Linked { source, dtype, .. } in &self.links {
            inputs.push(match source {
                Source::Input(input) => Some(upload_words(gpu, input, *dtype)?),
                Source::Step { .. } => None,
            });
        }
        let r = gpu.begin_recording()?;
        let mut values: Vec<Operand<'_>> = Vec::new();
        for (Linked { source, .. }, input) in self.links.iter().zip(&inputs) {
            values.push(match (source, input) {
                (_, Some(tensor)) => tensor.into(),
                (Source::Step { operands, on_gpu, .. }, None) => {
                    let operands: SmallVec<[Operand<'_>; 2]> =
                        operands.iter().map(|link| values[link.0]).collect();
                    on_gpu(&r, &operands)?.into()
                }
                (Source::Input(_), None) => return Err(Error::ForeignValue { op: "chain" }),
            });
        }
        let mut kept = Vec::new();
        for (link, _) in &self.outputs {
            kept.push(match values[link.0] {
                Operand::Tensor(tensor) => tensor.clone(),
                Operand::Value(value) => r.keep(value)?,
                scalar @ Operand::Scalar(_) => r.keep(r.copy(scalar)?)?,
            });
        }
        // Reading waits for it.
        let _submission = r.end_recording()?;
        for ((_, out), kept) in std::mem::take(&mut self.outputs).into_iter().zip(kept) {
            read_words(&kept, kept.dtype(), out)?;
        }
        Ok(())
    }

    /// What goes in and out, as one, and what is done between.
    fn works(&self) -> (Work, Vec<Work>) {
        let mut steps = Vec::new();
        let (mut host_bytes, mut device_bytes) = (0, 0);
        for Linked { source, shape, .. } in &self.links {
            match source {
                Source::Input(Input::Host(_)) => host_bytes += 4 * shape.elements(),
                Source::Input(Input::Device(_)) => device_bytes += 4 * shape.elements(),
                Source::Step { work, .. } => steps.push(*work),
            }
        }
        let result_bytes = self.outputs.iter().map(|(_, out)| 4 * out.len()).sum();
        (Work { host_bytes, device_bytes, result_bytes, ..Work::of_chain(&steps) }, steps)
    }
}

/// Reads the bits of elements of four bytes.
fn read_words(tensor: &Tensor, dtype: DType, words: &mut [u32]) -> Result<()> {
    match dtype {
        DType::I32 => tensor.read_into::<i32>(bytemuck::cast_slice_mut(words)),
        DType::U32 => tensor.read_into(words),
        DType::F32 => tensor.read_into::<f32>(bytemuck::cast_slice_mut(words)),
        DType::F16 => Err(not_whole_words("chain")),
    }
}

/// The type, if its elements have four bytes.
pub(super) fn whole_words(op: &'static str, dtype: DType) -> Result<DType> {
    if dtype == DType::F16 { Err(not_whole_words(op)) } else { Ok(dtype) }
}

fn not_whole_words(op: &'static str) -> Error {
    Error::of_type(op, "operand", &[DType::F32, DType::I32, DType::U32], DType::F16)
}

/// The tensor of an input, in its own type.
fn upload_words(gpu: &Accelerator, input: &Input<'_, u32>, dtype: DType) -> Result<Tensor> {
    fn of<T: Number>(gpu: &Accelerator, view: &View<'_, u32>) -> Result<Tensor> {
        gpu.upload(bytemuck::cast_slice::<u32, T>(view.data()), view.shape())
    }
    match (input, dtype) {
        (Input::Device(tensor), _) => Ok((*tensor).clone()),
        (Input::Host(view), DType::I32) => of::<i32>(gpu, view),
        (Input::Host(view), DType::U32) => of::<u32>(gpu, view),
        (Input::Host(view), DType::F32) => of::<f32>(gpu, view),
        (Input::Host(_), DType::F16) => Err(not_whole_words("chain")),
    }
}

impl Hybrid {
    /// Records several operations and carries them out on the side where all of them together are cheaper: what
    /// goes in is moved once, what lies between is not moved at all.
    ///
    /// # Errors
    ///
    /// Those of the operations, and those of the device if they run there.
    pub fn chain<'a>(&self, record: impl FnOnce(&mut Chain<'a>) -> Result<()>) -> Result<Decision> {
        process::check()?;
        let mut chain = Chain { gpu: self.gpu.clone(), links: Vec::new(), outputs: Vec::new() };
        record(&mut chain)?;
        let (moved, steps) = chain.works();
        let decision = self.placement.decide_chain(&steps, &moved);
        let begun = Instant::now();
        match (decision.side, &self.gpu) {
            (Side::Cpu, _) => {
                chain.run_on_cpu()?;
                self.linger(begun, &steps);
            }
            (Side::Gpu, Ok(gpu)) => chain.run_on_gpu(gpu)?,
            (Side::Gpu, Err(why)) => return Err(why.clone()),
        }
        self.placement.learn(&moved, &decision, begun.elapsed().as_secs_f64() * 1e6);
        Ok(decision)
    }
}
