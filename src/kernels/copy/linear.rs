//! Kernels that walk over a tensor four elements at a time share a shape: load path, local size, windows, grid.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::command::Action;
use crate::kernels::bindings::{grid, texel_bytes_fit};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::elementwise::TAIL_APART_ELEMENTS;
use crate::kernels::elementwise::family::FAMILY;
use crate::kernels::modules::constants::{Constants, Includes, KernelFile, Specialized};
use crate::kernels::modules::linear;
use crate::kernels::uniform_store::{DIGITS, MOST_SUBGROUPS, whole_subgroups};
use crate::kernels::variant::{Class, Variant};
use crate::shape::Shape;
use crate::vk::physical::Limits;

/// The shape of such a kernel's dispatches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear {
    variant: &'static Variant,
    pub(crate) load: Load,
    /// Whether whole workgroups may use uniform stores: `glsl/lib/uniform_store.glsl`.
    pub(crate) uniform_store: bool,
    limits: Limits,
}

impl Linear {
    /// For a kernel that moves or makes this many elements, with inputs of these sizes.
    pub(crate) fn new(catalog: &Catalog, elements: u64, input_bytes: &[u64]) -> Linear {
        let limits = catalog.limits;
        let variant = catalog.variant(&FAMILY, Class::of_elements(elements));
        let fits = input_bytes.len() <= limits.texel_bindings as usize
            && input_bytes.iter().all(|bytes| texel_bytes_fit(*bytes, &limits));
        let texels = branch!("linear: texels wanted", variant.load == Load::Texel)
            && branch!("linear: texels fit", fits);
        let load = if texels { Load::Texel } else { Load::Buffer };
        let uniform_store =
            variant.uniform_store && load == Load::Texel && whole_subgroups(variant.local_size, &limits);
        Linear { variant, load, uniform_store, limits }
    }

    /// Refuses inputs that no single binding can span.
    pub(crate) fn check_inputs(&self, op: &'static str, shapes: &[Shape]) -> Result<()> {
        let limit = self.limits.storage_range_bytes;
        let bytes = |shape: &Shape| 4 * shape.elements() as u64;
        match shapes.iter().find(|shape| self.load == Load::Buffer && bytes(shape) > limit) {
            Some(shape) => {
                branch!("linear: input beyond a binding");
                Err(Error::BindingTooLarge { op, shape: *shape, bytes: bytes(shape), limit })
            }
            None => Ok(()),
        }
    }

    /// Elements that a workgroup walks over.
    pub(crate) fn per_group(&self) -> u64 {
        u64::from(self.variant.local_size * self.variant.vec4s * 4)
    }

    /// Elements that one dispatch can walk over; some groups of four are left for what lies before the first.
    pub(crate) fn most_elements(&self) -> u64 {
        let groups = u64::from(self.limits.groups[0]) * u64::from(self.limits.groups[1]);
        (self.per_group() * groups).min(1 << 30) - 4
    }

    /// The parts of an output that one dispatch each can write: (first element, elements).
    pub(crate) fn windows(&self, elements: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        self.windows_of(elements, u64::MAX)
    }

    fn windows_of(&self, elements: u64, most: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let most = (self.limits.storage_range_bytes / 4).min(self.most_elements()).min(most);
        // Windows begin where bindings may.
        let step = self.per_group().max(self.limits.offset_alignment);
        let window = (most / step).max(1) * step;
        (0..elements.div_ceil(window)).map(move |i| (i * window, window.min(elements - i * window)))
    }

    /// The same, and whether a part is stored by uniform stores, if that is wanted: whole workgroups are, and the
    /// elements behind them have a dispatch of their own.
    pub(crate) fn windows_with_uniform_stores(
        &self,
        elements: u64,
        wanted: bool,
    ) -> impl Iterator<Item = (u64, u64, bool)> + use<> {
        let (per_group, most) = (self.per_group(), self.most_uniform());
        let uniform_store = branch!("linear: able", self.uniform_store) && branch!("linear: wanted", wanted);
        self.windows_of(elements, if uniform_store { most } else { u64::MAX }).flat_map(
            move |(first, count)| {
                let whole = count / per_group * per_group;
                let apart = branch!("linear: tail apart", count >= TAIL_APART_ELEMENTS)
                    || branch!("linear: whole workgroups", whole == count);
                let whole = if branch!("linear: uniform store", uniform_store) && apart { whole } else { 0 };
                [(first, whole, true), (first + whole, count - whole, false)]
                    .into_iter()
                    .filter(|part| part.1 > 0)
            },
        )
    }

    /// Elements that one dispatch can write by uniform stores: its workgroups are in a line, so that there is none too
    /// many.
    pub(crate) fn most_uniform(&self) -> u64 {
        let line = self.per_group() * u64::from(self.limits.groups[0]);
        line.min(MOST_SUBGROUPS * self.per_subgroup())
    }

    /// Elements that a subgroup walks over.
    pub(crate) fn per_subgroup(&self) -> u64 {
        4 * u64::from(self.limits.subgroup_size * self.variant.vec4s)
    }

    /// The constants that all such kernels have.
    pub(crate) fn constants<K: KernelFile + Includes<linear::File>>(&self) -> Constants<K> {
        let Variant { local_size, vec4s, .. } = *self.variant;
        let subgroup_width = self.limits.subgroup_size.clamp(1, local_size);
        Constants::new(local_size).with(linear::VEC4S, vec4s).with(linear::SUBGROUP, subgroup_width)
    }

    /// A dispatch over `count` elements; one that stores `together`, over whole workgroups.
    pub(crate) fn dispatch(
        &self,
        catalog: &Catalog,
        (kernel, uniform_store): (Specialized, bool),
        push: &impl bytemuck::NoUninit,
        count: u64,
    ) -> Result<Action> {
        let pipeline = catalog.pipeline(kernel)?;
        let groups = grid(count.div_ceil(self.per_group()), &self.limits);
        let mut push = SmallVec::from_slice(bytemuck::bytes_of(push));
        if branch!("linear: digits", uniform_store) {
            push.extend_from_slice(bytemuck::bytes_of(&DIGITS));
        }
        Ok(Action::Dispatch { pipeline, push, groups })
    }
}
