//! Several operations as one call.

use std::time::Instant;

use smallvec::SmallVec;

use super::work::{Op, Work};
use super::{Decision, Hybrid, Input, Side};
use crate::cpu::View;
use crate::cpu::view::check_length;
use crate::engine::accelerator::Accelerator;
use crate::engine::recording::{Operand, Recording, Value};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// An operand or a result of a [`Chain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link(usize);

type OnCpu<'a> = Box<dyn Fn(&[View<'_, f32>], &mut [f32]) -> Result<Shape> + 'a>;
type OnGpu<'a> = Box<dyn Fn(&mut Recording, &[Operand<'_>]) -> Result<Value> + 'a>;

/// What a link stands for.
enum Source<'a> {
    Input(Input<'a>),
    Step { operands: SmallVec<[Link; 2]>, work: Work, on_cpu: OnCpu<'a>, on_gpu: OnGpu<'a> },
}

/// Operations that are carried out together on one side; [`Hybrid::chain`] makes one.
pub struct Chain<'a> {
    links: Vec<(Source<'a>, Shape)>,
    outputs: Vec<(Link, &'a mut [f32])>,
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
    pub fn input(&mut self, input: impl Into<Input<'a>>) -> Link {
        let input = input.into();
        self.links.push((Source::Input(input), input.shape()));
        Link(self.links.len() - 1)
    }

    /// A result goes to a slice of as many elements.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if it has not as many.
    pub fn output(&mut self, link: Link, out: &'a mut [f32]) -> Result<()> {
        check_length("output", self.shape(link)?, out.len())?;
        self.outputs.push((link, out));
        Ok(())
    }

    /// The shape that a link has.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignValue`] if the link is not this chain's.
    pub fn shape(&self, link: Link) -> Result<Shape> {
        self.links.get(link.0).map(|(_, shape)| *shape).ok_or(Error::ForeignValue { op: "chain" })
    }

    pub(super) fn step(
        &mut self,
        op: Op,
        operands: &[Link],
        shape: Shape,
        products: f64,
        on_cpu: impl Fn(&[View<'_, f32>], &mut [f32]) -> Result<Shape> + 'a,
        on_gpu: impl Fn(&mut Recording, &[Operand<'_>]) -> Result<Value> + 'a,
    ) -> Result<Link> {
        let mut inputs = 0;
        for operand in operands {
            inputs += self.shape(*operand)?.elements();
        }
        let work = Work::on_host(op, inputs, shape.elements(), products);
        let (on_cpu, on_gpu) = (Box::new(on_cpu), Box::new(on_gpu));
        let operands = SmallVec::from_slice(operands);
        self.links.push((Source::Step { operands, work, on_cpu, on_gpu }, shape));
        Ok(Link(self.links.len() - 1))
    }

    fn run_on_cpu(&mut self) -> Result<()> {
        // What inputs on the device and steps hold; other inputs are where they are.
        let mut held: Vec<Vec<f32>> = Vec::with_capacity(self.links.len());
        for (source, shape) in &self.links {
            let data = match source {
                Source::Input(Input::Host(view)) => {
                    view.checked("chain")?;
                    Vec::new()
                }
                Source::Input(Input::Device(tensor)) => tensor.read()?,
                Source::Step { operands, on_cpu, .. } => {
                    let views: SmallVec<[View<'_, f32>; 2]> =
                        operands.iter().map(|link| self.view(*link, &held)).collect();
                    let mut out = vec![0.0; shape.elements()];
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

    fn view<'b>(&'b self, link: Link, held: &'b [Vec<f32>]) -> View<'b, f32> {
        match &self.links[link.0] {
            (Source::Input(Input::Host(view)), _) => *view,
            (_, shape) => View::new(&held[link.0], *shape),
        }
    }

    fn run_on_gpu(&mut self, gpu: &Accelerator) -> Result<()> {
        let mut inputs = Vec::new();
        for (source, _) in &self.links {
            inputs.push(match source {
                Source::Input(Input::Host(view)) => {
                    Some(gpu.upload(view.checked("chain")?.data(), view.shape())?)
                }
                Source::Input(Input::Device(tensor)) => Some((*tensor).clone()),
                Source::Step { .. } => None,
            });
        }
        let mut r = gpu.begin_recording()?;
        let mut values: Vec<Operand<'_>> = Vec::new();
        for ((source, _), input) in self.links.iter().zip(&inputs) {
            values.push(match (source, input) {
                (_, Some(tensor)) => tensor.into(),
                (Source::Step { operands, on_gpu, .. }, None) => {
                    let operands: SmallVec<[Operand<'_>; 2]> =
                        operands.iter().map(|link| values[link.0]).collect();
                    on_gpu(&mut r, &operands)?.into()
                }
                (Source::Input(_), None) => return Err(Error::ForeignValue { op: "chain" }),
            });
        }
        let mut kept = Vec::new();
        for (link, _) in &self.outputs {
            kept.push(match values[link.0] {
                Operand::Tensor(tensor) => tensor.clone(),
                Operand::Value(value) => r.keep(value)?,
            });
        }
        // Reading waits for it.
        let _submission = r.end_recording()?;
        for ((_, out), kept) in std::mem::take(&mut self.outputs).into_iter().zip(kept) {
            kept.read_into(out)?;
        }
        Ok(())
    }

    /// What goes in and out, as one, and what is done between.
    fn works(&self) -> (Work, Vec<Work>) {
        let mut moved = Work::on_host(Op::Chain, 0, 0, 0.0);
        let mut steps = Vec::new();
        for (source, shape) in &self.links {
            match source {
                Source::Input(Input::Host(_)) => moved.host_bytes += 4 * shape.elements(),
                Source::Input(Input::Device(_)) => moved.device_bytes += 4 * shape.elements(),
                Source::Step { work, .. } => steps.push(*work),
            }
        }
        moved.result_bytes = self.outputs.iter().map(|(_, out)| 4 * out.len()).sum();
        // Chains that do about as much share their corrections.
        moved.amount = steps.iter().map(|step| step.amount).sum();
        (moved, steps)
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
        let mut chain = Chain { links: Vec::new(), outputs: Vec::new() };
        record(&mut chain)?;
        let (moved, steps) = chain.works();
        let decision = self.placement.decide_chain(&steps, &moved);
        let begun = Instant::now();
        match (decision.side, &self.gpu) {
            (Side::Cpu, _) => {
                chain.run_on_cpu()?;
                self.linger(begun);
            }
            (Side::Gpu, Ok(gpu)) => chain.run_on_gpu(gpu)?,
            (Side::Gpu, Err(why)) => return Err(why.clone()),
        }
        self.placement.learn(&moved, &decision, begun.elapsed().as_secs_f64() * 1e6);
        Ok(decision)
    }
}
