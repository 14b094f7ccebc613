//! Users' own kernels: arguments checked against what the SPIR-V says of itself, before anything is recorded.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::{Error, KernelMismatch, Result};
use crate::ir::command::Cost;
use crate::ir::copy::Fill;
use crate::ir::dispatch::{self, KernelDispatch};
use crate::ir::pipeline_key::{PipelineKey, Specialization};
use crate::ir::value::{Label, LabelName, ValueId};
use crate::runtime::core::check_size;
use crate::runtime::operand::IntoOperand;
use crate::runtime::pipelines::{check_device, slots};
use crate::runtime::recording::{Operand, Recording, Value};
use crate::runtime::tensor::Tensor;
use crate::shape::{DType, Element, Shape};
use crate::spirv::{Binding, BindingKind};
use crate::vk::kernel::Kernel;
use crate::vk::pipeline::SlotKind;

/// One run of a [`Kernel`]: its arguments in the order of the bindings, constants and the number of workgroups.
///
/// ```no_run
/// # fn main() -> tidemill::Result<()> {
/// # let words: Vec<u32> = Vec::new();
/// use tidemill::{DType, Dispatch, Kernel};
/// let gpu = tidemill::Accelerator::global()?;
/// let x = gpu.upload(&[1.0f32; 1000], [1000])?;
/// // SAFETY: the module is valid and stays inside its bindings for every length.
/// let kernel = unsafe { Kernel::from_spirv("scale", &words)? };
/// let r = gpu.begin_recording()?;
/// let run = Dispatch::new(&kernel).input(&x).output([1000], DType::F32).push(&[1000u32]).groups([16, 1, 1]);
/// let y = r.dispatch(run)?[0];
/// let y = r.keep(y)?;
/// r.end_recording()?.wait()?;
/// # let _ = y;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Dispatch<'a> {
    kernel: &'a Kernel,
    arguments: SmallVec<[Argument<'a>; 4]>,
    push: SmallVec<[u8; 128]>,
    specialization: Specialization,
    groups: [u32; 3],
    cost: Cost,
}

#[derive(Clone, Debug)]
enum Argument<'a> {
    Input(Operand<'a>),
    Output(Shape, DType),
    InOut(&'a Tensor),
}

impl<'a> Dispatch<'a> {
    /// A run of one workgroup without arguments.
    pub fn new(kernel: &'a Kernel) -> Dispatch<'a> {
        Dispatch {
            kernel,
            arguments: SmallVec::new(),
            push: SmallVec::new(),
            specialization: SmallVec::new(),
            groups: [1; 3],
            cost: Cost::default(),
        }
    }

    /// The next binding reads this operand.
    pub fn input(mut self, operand: impl IntoOperand<'a>) -> Dispatch<'a> {
        self.arguments.push(Argument::Input(operand.into()));
        self
    }

    /// The next binding writes a new value of this shape and type. It is zero before the kernel runs if the shader
    /// may read it; a shader that declares it `writeonly` must write all of it.
    pub fn output(mut self, shape: impl Into<Shape>, dtype: DType) -> Dispatch<'a> {
        self.arguments.push(Argument::Output(shape.into(), dtype));
        self
    }

    /// The next binding reads and writes this tensor in place, as [`update`](Recording::update) does: what the kernel
    /// leaves stays as it is. What reads the tensor afterwards sees what the kernel has written; what was recorded
    /// before does not.
    pub fn inout(mut self, tensor: &'a Tensor) -> Dispatch<'a> {
        self.arguments.push(Argument::InOut(tensor));
        self
    }

    /// The push constants, as the shader's block lays them out.
    pub fn push<T: bytemuck::NoUninit>(mut self, constants: &[T]) -> Dispatch<'a> {
        self.push = SmallVec::from_slice(bytemuck::cast_slice(constants));
        self
    }

    /// Sets a 32-bit specialization constant (`u32`, `i32`, `f32`).
    pub fn specialize(mut self, id: u32, value: impl Element) -> Dispatch<'a> {
        let bits = value.scalar_bits();
        self.specialization.retain(|(known, _)| *known != id);
        self.specialization.push((id, bits));
        self
    }

    /// How many workgroups run.
    pub fn groups(mut self, groups: [u32; 3]) -> Dispatch<'a> {
        self.groups = groups;
        self
    }

    /// How many floating-point operations it takes; without it profiles give no GFLOP/s.
    pub fn flops(mut self, flops: u64) -> Dispatch<'a> {
        self.cost.flops = Some(flops);
        self
    }

    /// How many bytes must be read and written at the least; without it profiles give no GB/s.
    pub fn bytes(mut self, bytes: u64) -> Dispatch<'a> {
        self.cost.bytes = Some(bytes);
        self
    }
}

/// Refuses a tensor of other elements than the shader declares. Words may be packed elements.
fn check_element(kernel: &Kernel, binding: &Binding, given: DType) -> Result<()> {
    match binding.element {
        Some(declared) if declared != given && !(declared == DType::U32 && given.is_packed()) => {
            let mismatch = KernelMismatch::ElementType { binding: binding.binding, declared, given };
            Err(Error::KernelArguments { kernel: kernel.name().to_owned(), mismatch })
        }
        _ => Ok(()),
    }
}

impl Recording {
    /// Appends a run of a user's kernel; gives the values of its outputs, in order.
    ///
    /// # Errors
    ///
    /// [`Error::KernelArguments`] if an argument and the kernel's own description disagree, [`Error::KernelNeeds`] if
    /// the device lacks something, [`Error::KernelCapability`] if it is nothing that is enabled anywhere, and those of
    /// the operands. Nothing is recorded then.
    pub fn dispatch(&self, run: Dispatch<'_>) -> Result<Vec<Value>> {
        let op = "dispatch";
        self.check_run(&run)?;
        let reflection = run.kernel.reflection();
        // All operands before any output, so that an error leaves nothing behind.
        let mut inputs: SmallVec<[Option<ValueId>; 4]> = SmallVec::new();
        for argument in &run.arguments {
            inputs.push(match argument {
                Argument::Input(operand) => Some(self.resolve(op, *operand)?),
                Argument::InOut(tensor) => {
                    let state = self.updated_tensor(op, tensor, false)?;
                    Some(self.current(state))
                }
                Argument::Output(shape, dtype) => {
                    check_size(self.core(), op, *shape, *dtype)?;
                    None
                }
            });
        }
        let (mut shape, mut dtype) = (Shape::default(), DType::F32);
        for ((argument, binding), input) in run.arguments.iter().zip(&reflection.bindings).zip(&inputs) {
            (shape, dtype) = match (argument, input) {
                (Argument::Output(shape, dtype), _) => (*shape, *dtype),
                (Argument::InOut(tensor), _) => (tensor.shape(), tensor.dtype()),
                (Argument::Input(_), Some(id)) => self.kind(*id),
                (Argument::Input(_), None) => continue,
            };
            check_element(run.kernel, binding, dtype)?;
            let bytes = dtype.storage_bytes(shape.elements());
            self.check_extent(&run, binding.kind, binding.binding, bytes)?;
        }
        let (arguments, outputs) = self.bind_arguments(&run, &inputs)?;
        let label = Label { op: LabelName::Text(run.kernel.name().into()), shape, dtype };
        let pipeline = PipelineKey { kernel: run.kernel.clone(), specialization: run.specialization };
        let (push, groups, cost) = (run.push, run.groups, run.cost);
        let updated: SmallVec<[ValueId; 4]> = arguments
            .iter()
            .filter(|argument| argument.over.is_some())
            .map(|argument| argument.value)
            .collect();
        self.push(label, KernelDispatch { pipeline, push, groups, arguments, cost })?;
        for version in updated {
            self.set_current(version);
        }
        Ok(outputs)
    }

    /// What stands behind each binding, and the values of the outputs.
    fn bind_arguments(
        &self,
        run: &Dispatch<'_>,
        inputs: &[Option<ValueId>],
    ) -> Result<(SmallVec<[dispatch::Argument; 4]>, Vec<Value>)> {
        let op = "dispatch";
        let mut outputs = Vec::new();
        let mut arguments: SmallVec<[dispatch::Argument; 4]> = SmallVec::new();
        for ((argument, binding), input) in
            run.arguments.iter().zip(&run.kernel.reflection().bindings).zip(inputs)
        {
            arguments.push(match (argument, *input) {
                (Argument::Output(shape, dtype), _) => {
                    let id = self.produce(op, *shape, *dtype)?;
                    outputs.push(self.handle(id));
                    let reads = binding.access.reads() || run.kernel.is_guarded();
                    if reads && self.bytes(id) > 0 {
                        self.push(self.label("zero", id), Fill { word: 0, output: id })?;
                    }
                    dispatch::Argument { value: id, write: true, over: None }
                }
                (Argument::InOut(tensor), Some(over)) => {
                    let state = self.updated_tensor(op, tensor, false)?;
                    let value = self.next_version(state, tensor.shape());
                    dispatch::Argument { value, write: true, over: Some(over) }
                }
                (Argument::Input(_), Some(id)) => {
                    let value = self.apart_from_updates(run, id)?;
                    dispatch::Argument { value, write: false, over: None }
                }
                (Argument::Input(_) | Argument::InOut(_), None) => continue,
            });
        }
        Ok((arguments, outputs))
    }

    /// An operand as it is before the run, if the run updates a tensor that it is the contents of.
    fn apart_from_updates(&self, run: &Dispatch<'_>, id: ValueId) -> Result<ValueId> {
        for argument in &run.arguments {
            if let Argument::InOut(tensor) = argument {
                let apart = self.apart_from(tensor, id)?;
                if apart != id {
                    return Ok(apart);
                }
            }
        }
        Ok(id)
    }

    /// Checks what needs no operands: counts, kinds, constants, groups.
    fn check_run(&self, run: &Dispatch<'_>) -> Result<()> {
        let reflection = run.kernel.reflection();
        let device = &self.core().device;
        let refuse =
            |mismatch| Err(Error::KernelArguments { kernel: run.kernel.name().to_owned(), mismatch });
        check_device(run.kernel, device)?;
        slots(run.kernel)?;
        let bindings = &reflection.bindings;
        if bindings.len() != run.arguments.len() {
            let (expected, got) = (bindings.len(), run.arguments.len());
            return refuse(KernelMismatch::BindingCount { expected, got });
        }
        for (argument, binding) in run.arguments.iter().zip(bindings) {
            let (fits, declared, given) = match argument {
                Argument::Input(_) => (!binding.access.writes(), "written by the shader", "an input"),
                Argument::Output(..) => (binding.access.writes(), "readonly in the shader", "an output"),
                Argument::InOut(_) => (binding.access.writes(), "readonly in the shader", "updated"),
            };
            if !fits {
                let declared = declared.to_owned();
                return refuse(KernelMismatch::Binding { binding: binding.binding, declared, given });
            }
        }
        let updated = || {
            run.arguments.iter().zip(bindings).filter_map(|(argument, binding)| match argument {
                Argument::InOut(tensor) => Some((tensor, binding.binding)),
                Argument::Input(_) | Argument::Output(..) => None,
            })
        };
        for (i, (tensor, second)) in updated().enumerate() {
            let same = |(other, _): &(&&Tensor, u32)| Arc::ptr_eq(&other.storage, &tensor.storage);
            if let Some((_, first)) = updated().take(i).find(same) {
                return refuse(KernelMismatch::UpdatedTwice { bindings: [first, second] });
            }
        }
        if reflection.push_constant_bytes as usize != run.push.len() {
            let (expected, got) = (reflection.push_constant_bytes, run.push.len());
            return refuse(KernelMismatch::PushConstants { expected, got });
        }
        for (id, _) in &run.specialization {
            if !reflection.specializations.iter().any(|s| s.id == *id && s.kind.size_bytes() == 4) {
                let known = reflection.specializations.iter().map(|s| s.id).collect();
                return refuse(KernelMismatch::Specialization { id: *id, known });
            }
        }
        let limits = &device.info.limits;
        if run.groups.iter().zip(&limits.groups).any(|(got, limit)| got > limit || *got == 0) {
            return refuse(KernelMismatch::Groups { got: run.groups, limit: limits.groups });
        }
        let local = reflection.local_size_with(&run.specialization);
        let total = local.iter().map(|&n| u64::from(n)).product::<u64>();
        let outside = local.iter().zip(&limits.local_size).any(|(got, limit)| got > limit || *got == 0);
        if outside || total > u64::from(limits.invocations) {
            let total_limit = limits.invocations;
            return refuse(KernelMismatch::LocalSize { got: local, limit: limits.local_size, total_limit });
        }
        if let Some(shared) = run.kernel.shared_memory() {
            let (got, limit) = (shared.bytes(&run.specialization), u64::from(limits.shared_bytes));
            if let Some(id) = shared.empty(&run.specialization) {
                return refuse(KernelMismatch::EmptyShared { id });
            }
            if got > limit {
                return refuse(KernelMismatch::SharedMemory { got, limit });
            }
        }
        Ok(())
    }

    /// Checks a binding's size against the shader's block and the device's limits.
    fn check_extent(&self, run: &Dispatch<'_>, kind: BindingKind, binding: u32, got: u64) -> Result<()> {
        let limits = &self.core().device.info.limits;
        let guarded = run.kernel.is_guarded();
        let refuse =
            |mismatch| Err(Error::KernelArguments { kernel: run.kernel.name().to_owned(), mismatch });
        let (needs, limit) = match kind {
            BindingKind::StorageBuffer { fixed_bytes, stride } => {
                // What is clamped to the last element needs one.
                let first = stride.filter(|_| guarded).unwrap_or_default();
                (u64::from(fixed_bytes) + u64::from(first), limits.storage_range_bytes)
            }
            BindingKind::UniformBuffer { bytes } => (u64::from(bytes), limits.uniform_range_bytes),
            // A view has whole texels only, and at most this many, of 4 bytes at the least. Who vouches for a kernel
            // vouches that it masks what a last texel has of the bytes behind the tensor; a guard can't.
            BindingKind::StorageTexel { format } if guarded => {
                let texel_bytes = SlotKind::texel(format).map_or(1, SlotKind::grain_bytes);
                if !got.is_multiple_of(texel_bytes) {
                    return refuse(KernelMismatch::Texels { binding, texel_bytes, got });
                }
                (texel_bytes, limits.texel_elements.saturating_mul(4))
            }
            _ => (0, limits.texel_elements.saturating_mul(4)),
        };
        if got < needs {
            return refuse(KernelMismatch::BindingSize { binding, needs, got });
        }
        if got > limit {
            return refuse(KernelMismatch::BindingLimit { binding, got, limit });
        }
        Ok(())
    }
}
