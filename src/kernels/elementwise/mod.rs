//! Elementwise ops become dispatches of `glsl/elementwise.comp`.

pub(crate) mod family;
pub(crate) mod modules;
pub(crate) mod space;

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::ir::elementwise::{
    Elementwise, ElementwiseInput, MAX_INPUTS, MAX_SCALARS, OpCode, Operand, dense_strides,
};
use crate::ir::op_code::OpSet;
use crate::ir::pipeline_key::PipelineKey;
use crate::ir::value::{Access, Label, LabelName, Origin, Values};
use crate::kernels::bindings::{grid, texel_fits, window};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::division::{Divisions, MOST_DIMS};
use crate::kernels::elementwise::modules::{elementwise_module, elementwise_uniform_module};
use crate::kernels::elementwise::space::{Mode, Space};
use crate::kernels::launch::pipelines_of;
use crate::kernels::modules::constants::Constants;
use crate::kernels::modules::elementwise::{self, Module};
use crate::kernels::modules::{linear, op_list};
use crate::kernels::uniform_store::{DIGITS, MOST_SUBGROUPS, whole_subgroups};
use crate::kernels::variant::{Class, Variant};
use crate::shape::{DType, Shape};
use crate::vk::physical::Limits;
use family::FAMILY;

/// The storage binding of some elements, in whole words.
fn binding(whole: Access, elements: Range<u64>, size: u64, limits: &Limits) -> Access {
    let (access, _) = window(whole, size * elements.start..size * elements.end, limits);
    Access { bytes: access.bytes.next_multiple_of(4), ..access }
}

/// The push constants of `glsl/elementwise.comp`, before those of the inputs.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    count: u32,
    first: u32,
    extents: [u32; 3],
    magic: [u32; 3],
    shifts: u32,
    scalars: [u32; MAX_SCALARS],
}

/// The push constants of one input.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct PushInput {
    /// Plain modules don't have them.
    strides: [u32; MOST_DIMS],
    offset: u32,
}

impl PushInput {
    fn append(self, module: Module, bytes: &mut SmallVec<[u8; 128]>) {
        if branch!("elementwise: pushes strides", module.ops() != OpSet::Plain) {
            bytes.extend_from_slice(bytemuck::bytes_of(&self.strides));
        }
        bytes.extend_from_slice(bytemuck::bytes_of(&self.offset));
    }
}

/// Elements that one dispatch may cover: indices stay below 2^31.
const WINDOW_ELEMENTS: u64 = 1 << 30;

/// From this many elements on, those that don't fill a workgroup get a dispatch of their own: on lavapipe a dispatch
/// costs some 15 us, and looking where the end is a third of an add's time (`bench elementwise`).
pub(crate) const TAIL_APART_ELEMENTS: u64 = 1 << 18;

impl Elementwise {
    /// What this many elements count as: see `Cost`.
    pub(super) fn flops(&self, dtype: DType, elements: u64) -> u64 {
        let steps = self.steps.iter().filter(|step| step.op != OpCode::Copy).count() as u64;
        if dtype.is_float() { elements * steps } else { 0 }
    }

    /// The shape of its outputs.
    pub(crate) fn shape(&self, values: &Values) -> Shape {
        self.outputs.first().map_or_else(Shape::default, |output| values.value(output.value).shape)
    }

    /// Appends the dispatches of the elementwise op: one, or more where an output is larger than a binding. Its
    /// inputs are walked over in at most [`MOST_DIMS`] dimensions: `copy/deep.rs` copies others.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &Values,
        catalog: &Catalog,
        out: &mut Vec<Command>,
    ) -> Result<()> {
        let shape = self.shape(values);
        let elements = shape.elements() as u64;
        if branch!("elementwise: nothing", elements == 0) {
            return Ok(());
        }
        let limits = &catalog.limits;
        let variant = catalog.variant(&FAMILY, Class::of_elements(elements));
        let space = Space::collapse(&shape, &self.inputs);
        let modes = space.modes(&self.inputs);
        let load = self.load_path(label.op.known(), values, catalog, variant, (&space, &modes))?;
        let strided = branch!(
            "elementwise: strided",
            modes.iter().any(|mode| !matches!(mode, Mode::Dense | Mode::Scalar))
        );
        let formats = self.formats(values);
        let any_size = elementwise_module(load, self, strided || formats != 0);
        let uniform_store = variant.uniform_store && load == Load::Texel && formats == 0;
        let uniform_store = branch!(
            "elementwise: uniform store",
            uniform_store && whole_subgroups(variant.local_size, limits)
        );
        let uniform_store = uniform_store.then(|| elementwise_uniform_module(self, strided)).flatten();
        let mut constants = self.constants(catalog, variant, &space, &modes);
        if branch!("elementwise: packed", formats != 0) {
            constants.set(elementwise::FORMATS, formats);
        }
        let size = |value| values.value(value).dtype.size_bytes() as u64;
        let sizes: SmallVec<[u64; MAX_INPUTS]> = self.inputs.iter().map(|input| size(input.value)).collect();
        let [window, unit] = self.window(variant, limits, &sizes, uniform_store.is_some());
        // Checks for the end slow operations down. A pipeline of expensive ones takes longer to make, so that small
        // sizes share one.
        let cheap = branch!("elementwise: cheap", any_size.ops() < OpSet::All);
        let unguarded_from = if cheap { 0 } else { TAIL_APART_ELEMENTS };
        let divisions = Divisions::new(&space.extents);
        let lowering = Lowering {
            elementwise: self,
            label,
            values,
            catalog,
            variant,
            space,
            modes,
            sizes,
            load,
            divisions,
        };
        let mut first = 0;
        while first < elements {
            let rest = window.min(elements - first);
            let without_tail = rest / unit * unit;
            let tail_apart = branch!("elementwise: several", variant.vec4s > 1)
                && branch!("elementwise: tail apart", rest >= TAIL_APART_ELEMENTS);
            let count = if tail_apart { without_tail } else { rest };
            let whole = variant.vec4s > 1
                && branch!("elementwise: whole workgroups", count == without_tail)
                && branch!("elementwise: unguarded", count >= unguarded_from);
            let uniform_store = uniform_store.filter(|_| whole);
            let mut constants = constants.clone();
            if whole && uniform_store.is_none() {
                constants.set(elementwise::WHOLE, true);
            }
            let module = uniform_store.unwrap_or(any_size);
            let pipeline = catalog.pipeline(constants.of(module))?;
            out.push(lowering.command(pipeline, (module, uniform_store.is_some()), first, count));
            first += count;
        }
        Ok(())
    }

    /// The elements that a dispatch may cover, and of what number they are a multiple where there are more.
    fn window(&self, variant: &Variant, limits: &Limits, sizes: &[u64], uniform_store: bool) -> [u64; 2] {
        let per_group = variant.elements_of_group();
        let mut begins = self.inputs.iter().zip(sizes).map(|(input, size)| size * u64::from(input.offset));
        let aligned = begins.all(|begin| begin.is_multiple_of(limits.offset_alignment));
        // A binding begins up to one alignment early.
        let early = if branch!("elementwise: aligned", aligned) { 0 } else { limits.offset_alignment };
        let mut window = WINDOW_ELEMENTS.min((limits.storage_range_bytes - early) / 4);
        if branch!("elementwise: a line", variant.vec4s > 1) {
            // Whole workgroups look for no end, so there must be none too many: the grid is a line.
            window = window.min(per_group * u64::from(limits.groups[0]));
        } else {
            window = window.min(per_group * u64::from(limits.groups[0]) * u64::from(limits.groups[1]));
        }
        if branch!("elementwise: windows uniform store", uniform_store) {
            window = window.min(MOST_SUBGROUPS * u64::from(limits.subgroup_size * variant.vec4s * 4));
        }
        // Windows begin where bindings may.
        let unit = per_group.max(limits.offset_alignment);
        [window / unit * unit, unit]
    }

    /// How inputs and outputs lie in memory, as the shader has it; 0 if all are words.
    fn formats(&self, values: &Values) -> u32 {
        let format = |value| values.value(value).dtype.format() as u32;
        let inputs = self.inputs.iter().enumerate().map(|(k, input)| format(input.value) << (4 * k));
        let outputs = self.outputs.iter().enumerate().map(|(k, output)| format(output.value) << (16 + 4 * k));
        inputs.chain(outputs).sum()
    }

    /// A bit for each of a module's inputs that an output may be written over: those that are read element for element.
    fn in_place(&self, values: &Values, modes: &[Mode], inputs: usize) -> u32 {
        // Elements that share a word are loaded together with their neighbours, and do not lie where words do.
        let packed = |value| values.value(value).dtype.is_packed();
        let packs = self.outputs.iter().any(|output| packed(output.value));
        let dense = |k: usize| {
            let input = &self.inputs[k];
            modes[k] == Mode::Dense && input.offset == 0 && !packs && !packed(input.value)
        };
        // Bindings that stand in for none are never read; the first input is behind them.
        (0..inputs).filter(|&k| k >= modes.len() || dense(k)).fold(0, |all, k| all | 1 << k)
    }

    /// Refuses an elementwise op that needs more of an input in one binding than a binding can span.
    pub(crate) fn check(&self, op: &'static str, values: &Values, catalog: &Catalog) -> Result<()> {
        let bytes = |input: &ElementwiseInput| values.bytes(values.root(input.value));
        let shape = self.shape(values);
        let large = |input: &ElementwiseInput| bytes(input) > catalog.limits.storage_range_bytes;
        if branch!("elementwise: checks nothing", shape.elements() == 0)
            || !branch!("elementwise: checks large ones", self.inputs.iter().any(large))
        {
            return Ok(());
        }
        let variant = catalog.variant(&FAMILY, Class::of_elements(shape.elements() as u64));
        let space = Space::collapse(&shape, &self.inputs);
        let modes = space.modes(&self.inputs);
        self.load_path(op, values, catalog, variant, (&space, &modes)).map(|_| ())
    }

    /// The variant's load path, or storage buffers where a limit of texel buffers is in the way.
    fn load_path(
        &self,
        op: &'static str,
        values: &Values,
        catalog: &Catalog,
        variant: &Variant,
        (space, modes): (&Space, &[Mode]),
    ) -> Result<Load> {
        let limits = &catalog.limits;
        let limit = limits.storage_range_bytes;
        let bytes = |input: &ElementwiseInput| values.bytes(values.root(input.value));
        let fits = self.inputs.iter().all(|input| texel_fits(values, input.value, limits))
            && MAX_INPUTS <= limits.texel_bindings as usize;
        if branch!("elementwise: texels wanted", variant.load == Load::Texel)
            && branch!("elementwise: texels fit", fits)
        {
            return Ok(Load::Texel);
        }
        // A strided input can't be cut into windows: any part of the output may need any part of it.
        for (k, (input, mode)) in self.inputs.iter().zip(modes).enumerate() {
            if branch!("elementwise: in windows", *mode == Mode::Dense)
                || branch!("elementwise: small", bytes(input) <= limit)
            {
                continue;
            }
            let value = values.value(input.value);
            let reach = space.reach(k, input.offset);
            let whole = values.whole(input.value, false);
            let bytes = binding(whole, reach, value.dtype.size_bytes() as u64, limits).bytes;
            if branch!("elementwise: reaches too far", bytes > limit) {
                return Err(Error::BindingTooLarge { op, shape: value.shape, bytes, limit });
            }
        }
        Ok(Load::Buffer)
    }

    fn constants(
        &self,
        catalog: &Catalog,
        variant: &Variant,
        space: &Space,
        modes: &[Mode],
    ) -> Constants<elementwise::File> {
        // All ones stand for an input that is not used.
        let modes = modes.iter().enumerate();
        let modes = modes.fold(u32::MAX, |all, (k, &mode)| all & !(15 << (4 * k)) | (mode as u32) << (4 * k));
        let mut all = Constants::<elementwise::File>::new(variant.local_size)
            .with(linear::VEC4S, variant.vec4s)
            .with(linear::SUBGROUP, catalog.limits.subgroup_size.clamp(1, variant.local_size))
            .with(elementwise::MODES, modes)
            .with(elementwise::DIMS, space.extents.len() as u32);
        if branch!("elementwise: several steps", self.steps.len() > 1) {
            let stored = self.outputs.iter().enumerate().map(|(k, o)| u32::from(o.step) << (8 * k));
            all.set(elementwise::STORED, stored.sum());
            all.set(op_list::COUNT, self.steps.len() as u32);
            all.set(elementwise::RESULTS, self.outputs.len() as u32);
        }
        for (constant, step) in op_list::STEP.into_iter().zip(&self.steps) {
            all.set(constant, step.word());
        }
        all
    }
}

/// The common part of the dispatches of one elementwise op.
struct Lowering<'a> {
    elementwise: &'a Elementwise,
    label: &'a Label,
    values: &'a Values,
    catalog: &'a Catalog,
    variant: &'a Variant,
    space: Space,
    modes: SmallVec<[Mode; MAX_INPUTS]>,
    /// Bytes of an element of each input.
    sizes: SmallVec<[u64; MAX_INPUTS]>,
    load: Load,
    divisions: Divisions,
}

impl Lowering<'_> {
    /// The dispatch of a module, which may use uniform stores, for `count` elements from `first` on.
    fn command(
        &self,
        pipeline: PipelineKey,
        (module, uniform_store): (Module, bool),
        first: u64,
        count: u64,
    ) -> Command {
        let Lowering { elementwise, values, divisions, .. } = self;
        let mut scalars = [0; MAX_SCALARS];
        scalars[..elementwise.scalars.len()].copy_from_slice(&elementwise.scalars);
        let push = Push {
            count: count as u32,
            first: first as u32,
            extents: divisions.extents,
            magic: divisions.magic,
            shifts: divisions.shifts,
            scalars,
        };
        let mut bytes: SmallVec<[u8; 128]> = SmallVec::from_slice(bytemuck::bytes_of(&push));
        let mut accesses = self.bind_inputs(module, first, count, &mut bytes);
        if branch!("elementwise: digits", uniform_store) {
            bytes.extend_from_slice(bytemuck::bytes_of(&DIGITS));
        }
        let size = |value| values.value(value).dtype.size_bytes() as u64;
        for k in 0..module.outputs() {
            let output = elementwise.outputs.get(k).unwrap_or(&elementwise.outputs[0]);
            let (whole, size) = (values.whole(output.value, true), size(output.value));
            let bytes = (size * count).next_multiple_of(4);
            accesses.push(Access { offset: size * first, bytes, ..whole });
        }
        let groups = grid(count.div_ceil(self.variant.elements_of_group()), &self.catalog.limits);
        let action = Action::Dispatch { pipeline, push: bytes, groups };
        // Bindings that stand in for none are not counted.
        let written: u64 = elementwise.outputs.iter().map(|output| size(output.value) * count).sum();
        let touched = self.space.bytes_read(count, &self.sizes) + written;
        let in_place = elementwise.in_place(values, &self.modes, module.inputs());
        let command = Command::new(self.label.clone(), action, accesses).with_in_place(in_place);
        let command = command.with_continues(branch!("elementwise: continues", first > 0));
        command.with_flops(elementwise.flops(self.label.dtype, count)).with_bytes(touched)
    }

    /// The bindings of a module's inputs, and their push constants behind `bytes`.
    fn bind_inputs(
        &self,
        module: Module,
        first: u64,
        count: u64,
        bytes: &mut SmallVec<[u8; 128]>,
    ) -> SmallVec<[Access; 4]> {
        let (values, limits) = (self.values, &self.catalog.limits);
        let mut accesses: SmallVec<[Access; 4]> = SmallVec::new();
        for (k, (input, mode)) in self.elementwise.inputs.iter().zip(&self.modes).enumerate() {
            let mut access = values.whole(input.value, false);
            access.bytes = values.bytes(values.root(input.value));
            let mut offset = u64::from(input.offset);
            let mut reach = self.space.reach(k, input.offset);
            if branch!("elementwise: a dense input", *mode == Mode::Dense) {
                // A storage binding is moved to the window; a texel view spans the whole, and the index moves.
                offset += first;
                reach = offset..offset + count;
            }
            let moves = *mode == Mode::Dense
                || branch!(
                    "elementwise: strided input beyond a binding",
                    access.bytes > limits.storage_range_bytes
                );
            if branch!("elementwise: buffers", self.load == Load::Buffer)
                && branch!("elementwise: moves", moves)
            {
                access = binding(access, reach, self.sizes[k], limits);
                offset -= access.offset / self.sizes[k];
            }
            let mut strides = [0; MOST_DIMS];
            strides.copy_from_slice(&self.space.strides[k][..MOST_DIMS]);
            PushInput { strides, offset: offset as u32 }.append(module, bytes);
            accesses.push(access);
        }
        // Bindings that the elementwise op does not use must have something behind them.
        let spare = accesses.first().copied();
        while branch!("elementwise: spare bindings", accesses.len() < module.inputs()) {
            accesses.extend(spare);
            PushInput { strides: [0; MOST_DIMS], offset: 0 }.append(module, bytes);
        }
        accesses
    }
}

/// Operations on one dense operand that are made ahead, and on two.
const COMMON: (&[OpCode], &[OpCode]) = (
    &[
        OpCode::Copy,
        OpCode::MulF32,
        OpCode::AddF32,
        OpCode::ReluF32,
        OpCode::ExpF32,
        OpCode::SigmoidF32,
        OpCode::TanhF32,
        OpCode::GeluF32,
    ],
    &[OpCode::AddF32, OpCode::SubF32, OpCode::MulF32, OpCode::DivF32],
);

/// The pipelines of the commonest operations on dense operands, and with a scalar: of any size, and cheap ones of whole
/// workgroups. Others are made when first used: some 30 ms each on lavapipe, so that all of them in all modes would
/// keep a core busy for seconds.
pub(crate) fn prewarm(catalog: &Catalog) -> Result<Vec<PipelineKey>> {
    let mut commands = Vec::new();
    let (one, two) = COMMON;
    let per_group = |elements: usize| {
        let variant = catalog.variant(&FAMILY, Class::of_elements(elements as u64));
        4 * (variant.local_size * variant.vec4s) as usize
    };
    let (few, many) = (4usize, 1usize << 20);
    for elements in
        [few, few.next_multiple_of(per_group(few)), many + few, many.next_multiple_of(per_group(many))]
    {
        let mut values = Values::default();
        let shape = Shape::from([elements]);
        let [a, b, output] = [0; 3].map(|_| values.add_value(shape, DType::F32, Origin::Produced));
        let input = |value| ElementwiseInput { value, strides: dense_strides(&shape), offset: 0 };
        let label = Label { op: LabelName::Op("prewarm"), shape, dtype: DType::F32 };
        for (ops, inputs) in [(one, &[a][..]), (two, &[a, b])] {
            for &op in ops {
                let inputs: SmallVec<_> = inputs.iter().map(|value| input(*value)).collect();
                let second = match op {
                    _ if inputs.len() == 2 => Operand::Input(1),
                    OpCode::AddF32 | OpCode::MulF32 => Operand::Scalar(0),
                    _ => Operand::Input(0),
                };
                let operands = [Operand::Input(0), second, Operand::Input(0)];
                let elementwise =
                    Elementwise::single(op, operands, inputs, smallvec![0; MAX_SCALARS], output);
                elementwise.lower(&label, &values, catalog, &mut commands)?;
            }
        }
    }
    let mut keys = Vec::new();
    for key in pipelines_of(commands) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(keys)
}
