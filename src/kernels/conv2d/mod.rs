//! Convolutions: how they become dispatches of `glsl/conv_direct.comp` and `glsl/conv_tile.comp`, or products.

mod direct;
pub(crate) mod family;
mod inspected;
pub(crate) mod schemes;
#[cfg(test)]
mod tests;
mod tile;

use smallvec::{SmallVec, smallvec};

use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::command::Command;
use crate::ir::conv2d::{Convolution, PackWeights};
use crate::ir::epilogue::{Epilogue, PushResult};
use crate::ir::matmul::{Matmul, MatrixOperand};
use crate::ir::value::{Access, Label, Origin, ValueId, Values};
use crate::kernels::bindings::{window, window_bytes};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::elementwise;
use crate::kernels::epilogue::set_constants;
use crate::kernels::launch::Launch;
use crate::kernels::matmul::sum::Parts;
use crate::kernels::modules::constants::{Constants, Includes, KernelFile};
use crate::kernels::modules::epilogue;
use crate::kernels::pack::Pack;
use crate::kernels::uniform_store::one_batch;
use crate::kernels::variant::Class;
use crate::shape::{DType, Format, Shape, product};
use crate::vk::physical::Limits;
use family::FAMILY;
use schemes::Scheme;

const OP: &str = "conv2d";
/// Rows of the largest tile of products (`matmul/schemes.rs`).
const MOST_MATMUL_ROWS: u32 = 128;
/// With so few columns, products read their right-hand side along k.
const FEW_PIXELS: u32 = 16;

impl PackWeights {
    fn pack(&self) -> Pack {
        Pack {
            op: OP,
            source: self.weights,
            rows: self.depth,
            columns: self.rows,
            transposed: true,
            top: 0,
            left: 0,
            panels: 1,
            panel_vec4s: self.rows.div_ceil(4),
            panel_rows: self.depth,
            batch: [1, self.groups],
            strides: [0, self.rows * self.depth],
        }
    }

    /// A copy loads as elementwise kernels do: its result is the same for every scheme.
    fn load(&self, values: &Values, catalog: &Catalog) -> Load {
        let elements = values.value(self.weights).shape.elements() as u64;
        let variant = catalog.variant(&elementwise::family::FAMILY, Class::of_elements(elements));
        catalog.load_of(variant.load, values, [self.weights])
    }

    /// The shape of the output.
    pub(crate) fn shape(&self) -> Shape {
        self.pack().shape()
    }

    /// Refuses weights that no binding can span, before or after they are prepared.
    pub(crate) fn check(&self, values: &Values, catalog: &Catalog) -> Result<()> {
        self.pack().check(self.load(values, catalog), values, catalog)
    }

    /// Appends the commands that carry it out.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        self.pack().lower_into(self.output, self.load(values, catalog), label, values, catalog, commands)
    }
}

/// Refuses a result if one image does not fit a binding.
pub(crate) fn check_result(result: Shape, limits: &Limits) -> Result<()> {
    let [images, image @ ..] = result.dims() else { return Ok(()) };
    let bytes = 4u64.saturating_mul(product(image) as u64);
    let limit = window_bytes(limits);
    if branch!("convolution: no image fits", *images > 0 && bytes > limit) {
        Err(Error::BindingTooLarge { op: OP, shape: result, bytes, limit })
    } else {
        Ok(())
    }
}

/// A kernel with its tile and its share of the sums, for one dispatch of some images.
trait ConvKernel {
    /// The kernel's own push constants.
    type Push: bytemuck::NoUninit;

    /// The kernel.
    type Kernel: KernelFile + Includes<epilogue::File>;

    fn module(&self, load: Load, plain: bool) -> <Self::Kernel as KernelFile>::Module;
    /// The module with uniform stores, texel loads and the commonest operations, if there is one for this many images
    /// of this result.
    fn uniform_module(
        &self,
        images: u32,
        result: &PushResult,
        catalog: &Catalog,
    ) -> Option<<Self::Kernel as KernelFile>::Module> {
        let _ = (images, result, catalog);
        None
    }
    /// Constants of the kernel, for an input that is f16 or not.
    fn constants(&self, input: Format) -> Constants<Self::Kernel>;
    /// Tiles of one image's result at least; images may share tiles.
    fn tiles(&self, images: u32) -> u64;
    /// The third dimension of the grid, for this many parts.
    fn depth(&self, images: u32, parts: u32) -> u32;
    /// Units of a sum, and how many of them make a step of the kernel's loop.
    fn units(&self) -> (u32, u32);
    /// Whether results are stored in aligned groups of four that are all inside rows of such a pitch; and whether
    /// they begin at multiples of four at the least.
    fn stores(&self, pitch: u32) -> (bool, bool);
    fn push(&self, images: u32, chunk: u32, result: PushResult) -> Self::Push;
}

impl Convolution {
    fn pixels(&self) -> u32 {
        self.result[0] * self.result[1]
    }

    /// Channels of the result.
    fn all_rows(&self) -> u32 {
        self.groups * self.rows
    }

    /// Multiply-adds in one element of the result.
    fn depth(&self) -> u32 {
        self.channels * self.taps[0] * self.taps[1]
    }

    /// Images, channels and pixels of the result, as the epilogue counts them.
    pub(crate) fn extents(&self) -> [u32; 3] {
        [self.images, self.all_rows(), self.pixels()]
    }

    /// Elements of the result.
    fn results(&self) -> u64 {
        u64::from(self.images) * u64::from(self.all_rows()) * u64::from(self.pixels())
    }

    fn scheme(&self, catalog: &Catalog) -> &'static Scheme {
        catalog.variant(&FAMILY, Class::of_convolution(self.rows, self.results()))
    }

    /// The scheme's load path, where the inputs allow it.
    fn load(&self, scheme: &Scheme, values: &Values, catalog: &Catalog) -> Load {
        let extras = self.epilogue.extras.iter().map(|extra| extra.value);
        catalog.load_of(scheme.load, values, [self.input, self.weights].into_iter().chain(extras))
    }

    /// A kernel of 1 x 1 that sees every pixel once, as a matmul: all of its loads are 16 bytes, and no place is
    /// computed. Nothing where the product's tiles would be emptier, or its operands packed on every call.
    fn as_matmul(&self, scheme: &Scheme) -> Option<Matmul> {
        let pixels = self.pixels();
        let every_pixel = self.taps == [1; 2] && self.stride == [1; 2] && self.size == self.result;
        let full = 5 * u64::from(self.rows.next_multiple_of(MOST_MATMUL_ROWS)) <= 6 * u64::from(self.rows);
        let matrix = |value, batch| MatrixOperand { value, k_contiguous: false, batch };
        let is_matmul = scheme.products
            && branch!("convolution: every pixel", every_pixel && self.groups == 1)
            && branch!("convolution: full product", full && pixels > FEW_PIXELS)
            && branch!(
                "convolution: product in place",
                self.rows.is_multiple_of(4) && pixels.is_multiple_of(4)
            );
        is_matmul.then(|| Matmul {
            m: self.rows,
            n: pixels,
            k: self.channels,
            batch: [1, self.images],
            lhs: matrix(self.weights, [0; 2]),
            rhs: matrix(self.input, [0, self.channels * pixels]),
            alpha: 1.0,
            epilogue: self.epilogue.clone(),
            output: self.output,
        })
    }

    /// Refuses a convolution that needs more in one binding than a binding can span: an input, its copy, or an image of
    /// the result.
    pub(crate) fn check(&self, values: &Values, catalog: &Catalog) -> Result<()> {
        let scheme = self.scheme(catalog);
        if let Some(product) = self.as_matmul(scheme) {
            return product.check(values, catalog);
        }
        let load = self.load(scheme, values, catalog);
        let mut input = values.binding(self.input);
        match direct::Direct::new(self, scheme, catalog) {
            Some(conv) => {
                if let Some(pack) = self.copy() {
                    pack.check(load, values, catalog)?;
                    input = (pack.shape(), 4 * pack.shape().elements() as u64);
                }
                self.dispatch_split(scheme, &conv, values, catalog)?;
            }
            None => {
                let conv = tile::Tiles::new(self, scheme, catalog);
                self.dispatch_split(scheme, &conv, values, catalog)?;
            }
        }
        let others = [self.weights].into_iter().chain(self.epilogue.extras.iter().map(|extra| extra.value));
        catalog.check_inputs(OP, load, [input].into_iter().chain(others.map(|value| values.binding(value))))
    }

    /// How the work is split into dispatches.
    fn dispatch_split(
        &self,
        scheme: &Scheme,
        conv: &impl ConvKernel,
        values: &Values,
        catalog: &Catalog,
    ) -> Result<DispatchSplit> {
        let limits = &catalog.limits;
        let (parts, chunk) = self.split(scheme, conv, catalog);
        // Parts lie in rows of whole vectors, results do not.
        let split = branch!("convolution: split", parts > 1);
        let pitch = if split { self.pixels().next_multiple_of(4) } else { self.pixels() };
        let image_bytes = 4 * u64::from(self.all_rows()) * u64::from(pitch) * u64::from(parts);
        let most = window_bytes(limits) / image_bytes;
        let images = most.min(u64::from(limits.groups[2] / parts)).min(u64::from(self.images)) as u32;
        if images == 0 {
            branch!("convolution: an image is too large");
            let shape = values.value(self.output).shape;
            return Err(Error::BindingTooLarge {
                op: OP,
                shape,
                bytes: image_bytes,
                limit: window_bytes(limits),
            });
        }
        Ok(DispatchSplit { parts, chunk, pitch, images })
    }

    /// Into how many parts sums are split, and how many units each but the last has: several where tiles are fewer than
    /// what keeps the device busy and the parts of an image fit a binding, or where a loop would be longer than it may
    /// be.
    fn split(&self, scheme: &Scheme, conv: &impl ConvKernel, catalog: &Catalog) -> (u32, u32) {
        let (units, step) = conv.units();
        let tiles = conv.tiles(self.images) * u64::from(conv.depth(self.images, 1));
        let worth = u64::from(self.depth() / scheme.least_part);
        let part_bytes = 4 * u64::from(self.all_rows()) * u64::from(self.pixels().next_multiple_of(4));
        let room = window_bytes(&catalog.limits) / part_bytes;
        let busy = scheme.busy_groups(&catalog.architecture);
        let wanted = busy.div_ceil(tiles).min(8).min(worth).min(room).max(1) as u32;
        let longest = crate::kernels::matmul::shape::MOST_ITERATIONS.saturating_mul(step);
        let chunk = units.div_ceil(wanted).next_multiple_of(step);
        branch!("convolution: split to be busy", wanted > 1);
        branch!("convolution: split to be short", chunk > longest);
        let chunk = chunk.min(longest);
        (units.div_ceil(chunk), chunk)
    }

    /// Appends the dispatches of the convolution: usually one, and before it one that puts zeros around the input;
    /// after it one that adds up parts of split sums; more where the result is larger than a binding.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &mut Values,
        catalog: &Catalog,
        out: &mut Vec<Command>,
    ) -> Result<()> {
        let scheme = self.scheme(catalog);
        if let Some(product) = self.as_matmul(scheme) {
            return product.lower(label, values, catalog, out);
        }
        let load = self.load(scheme, values, catalog);
        let launch = Launch { op: OP, label, catalog, load };
        let mut lowering = Lowering { launch, scheme, convolution: self, values, commands: out };
        let direct = direct::Direct::new(self, scheme, catalog);
        branch!("convolution: direct", direct.is_some());
        let first = match direct {
            Some(mut conv) => {
                let input = conv.padded(self, &mut lowering)?;
                let first = lowering.commands.len();
                lowering.dispatches(&conv, input)?;
                first
            }
            None => {
                let first = lowering.commands.len();
                lowering.dispatches(&tile::Tiles::new(self, scheme, catalog), self.input)?;
                first
            }
        };
        if let [command] = &mut out[first..] {
            command.cost.flops = Some(2 * self.results() * u64::from(self.depth()));
        }
        Ok(())
    }
}

/// How a convolution is split into dispatches.
struct DispatchSplit {
    /// Parts of each sum, and units in each but the last.
    parts: u32,
    chunk: u32,
    /// Elements from one row of a part, or of the result, to the next.
    pitch: u32,
    /// Images that one dispatch makes at the most.
    images: u32,
}

struct Lowering<'a> {
    launch: Launch<'a>,
    scheme: &'static Scheme,
    convolution: &'a Convolution,
    values: &'a mut Values,
    commands: &'a mut Vec<Command>,
}

impl Lowering<'_> {
    fn dispatches(&mut self, conv: &impl ConvKernel, input: ValueId) -> Result<()> {
        let limits = self.launch.catalog.limits;
        let c = self.convolution;
        let (rows, n) = (c.all_rows(), c.pixels());
        let DispatchSplit { parts: count, chunk, pitch, images: most } =
            c.dispatch_split(self.scheme, conv, self.values, self.launch.catalog)?;
        let mut first = 0;
        while first < c.images {
            branch!("convolution: later window", first > 0);
            let images = most.min(c.images - first);
            let image = 4 * u64::from(rows) * u64::from(n);
            let bytes = u64::from(first) * image..u64::from(first + images) * image;
            let (target, early) = window(self.values.whole(c.output, true), bytes, &limits);
            let result = PushResult {
                m: rows,
                n,
                first_row: 0,
                first_batch: first,
                batch_inner: c.images,
                c_row: n,
                c_batch: rows * n,
                c_base: (early / 4) as u32,
                alpha: 1.0,
                ..PushResult::default()
            };
            let result = result.with(&c.epilogue);
            if branch!("convolution: one part", count == 1) {
                let [x0, x1] = c.epilogue.inputs(c.weights).map(|value| self.values.whole(value, false));
                let push = conv.push(images, chunk, result);
                let plain_texels = c.epilogue.is_plain() && self.launch.load == Load::Texel;
                let uniform_store = conv.uniform_module(images, &result, self.launch.catalog);
                let uniform_store =
                    uniform_store.filter(|_| branch!("convolution: plain texels", plain_texels));
                let module =
                    uniform_store.unwrap_or_else(|| conv.module(self.launch.load, c.epilogue.is_plain()));
                branch!("convolution: uniform store", uniform_store.is_some());
                let push: SmallVec<[u8; 128]> = match uniform_store {
                    Some(_) => {
                        let operands = bytemuck::bytes_of(&push);
                        one_batch(&operands[..operands.len() - size_of::<PushResult>()], &result)
                    }
                    None => SmallVec::from_slice(bytemuck::bytes_of(&push)),
                };
                let kernel = (module, conv.stores(pitch));
                self.dispatch(conv, input, &c.epilogue, &push, (images, 1), kernel, [x0, x1, target])?;
            } else {
                let shape = Shape::from([(count * images * rows) as usize, pitch as usize]);
                let value = self.values.add_value(shape, DType::F32, Origin::Produced);
                let spare = self.values.whole(c.weights, false);
                let to = self.values.whole(value, true);
                let of_part = PushResult { c_row: pitch, c_batch: rows * pitch, c_base: 0, ..result };
                let push = conv.push(images, chunk, of_part);
                let plain = Epilogue::default();
                let kernel = (conv.module(self.launch.load, true), conv.stores(pitch));
                let push = bytemuck::bytes_of(&push);
                self.dispatch(conv, input, &plain, push, (images, count), kernel, [spare, spare, to])?;
                let parts = Parts { value, count, batches: images, rows, pitch };
                self.commands.push(parts.sum(&self.launch, self.values, result, &c.epilogue, target)?);
            }
            first += images;
        }
        Ok(())
    }

    /// One dispatch of the kernel, a module and how it stores; `others` are the epilogue's inputs and the output.
    #[allow(clippy::too_many_arguments, reason = "all of it describes one dispatch")]
    fn dispatch<W: ConvKernel>(
        &mut self,
        conv: &W,
        input: ValueId,
        epilogue: &Epilogue,
        push: &[u8],
        (images, parts): (u32, u32),
        (module, (wide, aligned)): (<W::Kernel as KernelFile>::Module, (bool, bool)),
        others: [Access; 3],
    ) -> Result<()> {
        let mut constants = conv.constants(self.values.value(input).dtype.format());
        set_constants(epilogue, (wide, aligned), &mut constants);
        let kernel = constants.of(module);
        let mut accesses: SmallVec<[Access; 4]> =
            smallvec![self.values.whole(input, false), self.values.whole(self.convolution.weights, false)];
        accesses.extend(others);
        let grid = (conv.tiles(images), conv.depth(images, parts));
        self.commands.push(self.launch.command(self.values, kernel, push, grid, accesses)?);
        Ok(())
    }
}
