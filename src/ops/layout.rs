//! Moving elements: permute, slice, broadcast, concatenate, stack, pad, gather.

use smallvec::{SmallVec, smallvec};

use crate::engine::division::{Divisions, division};
use crate::engine::graph::{Access, Node, ValueId, Work};
use crate::engine::linear::Linear;
use crate::engine::map::{Map, MapInput, OpCode, Operand as MapOperand, dense_strides};
use crate::engine::recording::{Operand, Recording, Value};
use crate::error::{Error, Result};
use crate::shape::axes::resolve_axis;
use crate::shape::ranges::Ranges;
use crate::shape::{DType, Element, MAX_RANK, Shape};

/// The push constants of `glsl/place.comp`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct PlacePush {
    count: u32,
    from: u32,
    to: u32,
    extents: [u32; 3],
    magic: [u32; 3],
    shifts: u32,
    strides: [u32; 4],
}

/// How a group of four elements lies in the output; numbers as in `glsl/place.comp`.
#[derive(Clone, Copy)]
enum Fit {
    Aligned = 1,
    Rows = 2,
    Single = 3,
}

/// The push constants of `glsl/gather.comp`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct GatherPush {
    count: u32,
    first: u32,
    width: u32,
    magic: u32,
    shift: u32,
    height: u32,
}

/// Refuses halves: these kernels move whole words.
fn check_words(op: &'static str, got: DType) -> Result<()> {
    if got == DType::F16 { Err(Error::Type { op, expected: DType::F32, got }) } else { Ok(()) }
}

impl Recording {
    /// The dimensions in another order: dimension `i` of the result is dimension `order[i]` of the operand.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1u32, 2, 3, 4, 5, 6], [2, 3])?;
    /// let y = gpu.run(|r| r.permute(&x, &[1, 0]))?;
    /// assert_eq!(y.read::<u32>()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Permutation`] unless `order` names each dimension once.
    pub fn permute<'a>(&mut self, operand: impl Into<Operand<'a>>, order: &[usize]) -> Result<Value> {
        let op = "permute";
        let id = self.resolve(op, operand)?;
        let (shape, _) = self.kind(id);
        let mut seen = [false; MAX_RANK];
        let each_once = order.iter().all(|&d| d < shape.rank() && !std::mem::replace(&mut seen[d], true));
        if order.len() != shape.rank() || !each_once {
            return Err(Error::Permutation { op, order: order.to_vec(), shape });
        }
        let from = dense_strides(&shape);
        let mut strides = [0; MAX_RANK];
        let mut extents = [0; MAX_RANK];
        for (i, &d) in order.iter().enumerate() {
            strides[i] = from[d];
            extents[i] = shape.dims()[d];
        }
        self.view(op, id, &extents[..order.len()], strides, 0)
    }

    /// The last two dimensions exchanged.
    ///
    /// # Errors
    ///
    /// [`Error::Permutation`] if there are fewer than two.
    pub fn transpose<'a>(&mut self, operand: impl Into<Operand<'a>>) -> Result<Value> {
        let operand = operand.into();
        let rank = self.shape(operand)?.rank();
        let mut order: SmallVec<[usize; MAX_RANK]> = (0..rank.max(2)).collect();
        order.swap(rank.max(2) - 1, rank.max(2) - 2);
        self.permute(operand, &order)
    }

    /// A box of the operand: one range per dimension, outermost first; dimensions left out are taken whole. A single
    /// range may stand alone: `r.slice(&x, 3..7)`.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1u32, 2, 3, 4, 5, 6], [2, 3])?;
    /// let y = gpu.run(|r| r.slice(&x, [0..2, 1..3]))?;
    /// assert_eq!(y.read::<u32>()?, [2, 3, 5, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::SliceRange`] if a range does not lie inside its dimension, or there are more ranges than dimensions.
    pub fn slice<'a>(&mut self, operand: impl Into<Operand<'a>>, ranges: impl Into<Ranges>) -> Result<Value> {
        let op = "slice";
        let id = self.resolve(op, operand)?;
        let (shape, _) = self.kind(id);
        let strides = dense_strides(&shape);
        let mut extents: SmallVec<[usize; MAX_RANK]> = SmallVec::from_slice(shape.dims());
        let mut offset = 0u32;
        for (d, range) in ranges.into().0.iter().enumerate() {
            let inside =
                extents.get(d).is_some_and(|&extent| range.start <= range.end && range.end <= extent);
            if !inside {
                return Err(Error::SliceRange { op, dimension: d, range: range.clone(), shape });
            }
            extents[d] = range.end - range.start;
            offset += strides[d] * range.start as u32;
        }
        self.view(op, id, &extents, strides, offset)
    }

    /// The operand repeated to a larger shape by NumPy's rules: dimensions of one element stretch, missing ones are
    /// added in front.
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] if a dimension can't be stretched.
    pub fn broadcast_to<'a>(
        &mut self,
        operand: impl Into<Operand<'a>>,
        shape: impl Into<Shape>,
    ) -> Result<Value> {
        let (op, to) = ("broadcast_to", shape.into());
        let id = self.resolve(op, operand)?;
        let (from, _) = self.kind(id);
        let refuse = |why| Err(Error::Shapes { op, lhs: from, rhs: to, why });
        if from.rank() > to.rank() {
            return refuse(format!("rank {} can't become {}", from.rank(), to.rank()));
        }
        let dense = dense_strides(&from);
        let added = to.rank() - from.rank();
        let mut strides = [0; MAX_RANK];
        for (d, (&extent, &stride)) in from.dims().iter().zip(&dense).enumerate() {
            let wanted = to.dims()[added + d];
            if extent == wanted {
                strides[added + d] = stride;
            } else if extent != 1 {
                return refuse(format!("{extent} can't be stretched to {wanted} in dimension {}", added + d));
            }
        }
        self.view(op, id, to.dims(), strides, 0)
    }

    /// A copy of what strides and an offset select.
    fn view(
        &mut self,
        op: &'static str,
        input: ValueId,
        extents: &[usize],
        strides: [u32; MAX_RANK],
        offset: u32,
    ) -> Result<Value> {
        let shape = Shape::new(extents).ok_or(Error::Rank { op, rank: extents.len() })?;
        let (_, dtype) = self.kind(input);
        let output = self.produce(op, shape, dtype)?;
        let inputs = smallvec![MapInput { value: input, strides, offset }];
        let map = Map::single(OpCode::Copy, [MapOperand::Input(0); 3], inputs, SmallVec::new(), output);
        self.push(Node::new(self.label(op, output), Work::Map(map), SmallVec::new()));
        Ok(self.handle(output))
    }

    /// The operands one after the other along `axis` (negative axes count from the end). All other dimensions must
    /// agree.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1u32, 2], [2, 1])?;
    /// let y = gpu.upload(&[3u32, 4, 5, 6], [2, 2])?;
    /// let z = gpu.run(|r| r.concat(&[(&x).into(), (&y).into()], 1))?;
    /// assert_eq!(z.read::<u32>()?, [1, 3, 4, 2, 5, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Axis`], [`Error::Shapes`], [`Error::Type`]; [`Error::NoOperands`] if there are none.
    pub fn concat(&mut self, operands: &[Operand<'_>], axis: isize) -> Result<Value> {
        self.concat_as("concat", operands, axis)
    }

    fn concat_as(&mut self, op: &'static str, operands: &[Operand<'_>], axis: isize) -> Result<Value> {
        let mut ids: SmallVec<[ValueId; 8]> = SmallVec::new();
        for operand in operands {
            ids.push(self.resolve(op, *operand)?);
        }
        let &first = ids.first().ok_or(Error::NoOperands { op })?;
        let (shape, dtype) = self.kind(first);
        check_words(op, dtype)?;
        let axis = resolve_axis(op, axis, shape.rank())?;
        let mut extents: SmallVec<[usize; MAX_RANK]> = SmallVec::from_slice(shape.dims());
        extents[axis] = 0;
        for &id in &ids {
            let (other, other_dtype) = self.kind(id);
            if other_dtype != dtype {
                return Err(Error::Type { op, expected: dtype, got: other_dtype });
            }
            let agrees = other.rank() == shape.rank()
                && (0..shape.rank()).all(|d| d == axis || other.dims()[d] == shape.dims()[d]);
            if !agrees {
                let why = format!("they must agree in all dimensions but {axis}");
                return Err(Error::Shapes { op, lhs: shape, rhs: other, why });
            }
            extents[axis] += other.dims()[axis];
        }
        let whole = Shape::new(&extents).ok_or(Error::Rank { op, rank: extents.len() })?;
        let output = self.produce(op, whole, dtype)?;
        let mut at = 0;
        for id in ids {
            let mut corner = [0; MAX_RANK];
            corner[axis] = at;
            self.place(op, id, output, corner)?;
            at += self.kind(id).0.dims()[axis];
        }
        Ok(self.handle(output))
    }

    /// The operands, all of one shape, side by side along a new dimension at `axis`.
    ///
    /// # Errors
    ///
    /// As [`concat`](Recording::concat), and [`Error::Rank`] if the result would have too many dimensions.
    pub fn stack(&mut self, operands: &[Operand<'_>], axis: isize) -> Result<Value> {
        let op = "stack";
        let &first = operands.first().ok_or(Error::NoOperands { op })?;
        let shape = self.shape(first)?;
        let rank = shape.rank() + 1;
        let at = resolve_axis(op, axis, rank)?;
        let mut extents: SmallVec<[usize; 8]> = SmallVec::from_slice(shape.dims());
        extents.insert(at, 1);
        let single = Shape::new(&extents).ok_or(Error::Rank { op, rank })?;
        let mut reshaped: SmallVec<[Operand<'_>; 8]> = SmallVec::new();
        for &operand in operands {
            let other = self.shape(operand)?;
            if other != shape {
                let why = "they must have one shape".to_owned();
                return Err(Error::Shapes { op, lhs: shape, rhs: other, why });
            }
            reshaped.push(self.reshape(operand, single)?.into());
        }
        self.concat_as(op, &reshaped, at as isize)
    }

    /// The operand with `before` and `after` more elements of `element` around it, one pair per dimension.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1u32, 2], [2])?;
    /// let y = gpu.run(|r| r.pad(&x, &[(1, 2)], 9u32))?;
    /// assert_eq!(y.read::<u32>()?, [9, 1, 2, 9, 9]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::PadRank`] unless there is a pair for each dimension; [`Error::Type`] if the element's type is not the
    /// operand's.
    pub fn pad<'a, T: Element>(
        &mut self,
        operand: impl Into<Operand<'a>>,
        pads: &[(usize, usize)],
        element: T,
    ) -> Result<Value> {
        let op = "pad";
        let id = self.resolve(op, operand)?;
        let (shape, dtype) = self.kind(id);
        if dtype != T::DTYPE {
            return Err(Error::Type { op, expected: dtype, got: T::DTYPE });
        }
        check_words(op, dtype)?;
        if pads.len() != shape.rank() {
            return Err(Error::PadRank { op, pads: pads.len(), shape });
        }
        let mut corner = [0; MAX_RANK];
        let mut extents: SmallVec<[usize; MAX_RANK]> = SmallVec::from_slice(shape.dims());
        for (d, (before, after)) in pads.iter().enumerate() {
            corner[d] = *before;
            extents[d] = extents[d].saturating_add(*before).saturating_add(*after);
        }
        let whole = Shape::new(&extents).ok_or(Error::Rank { op, rank: extents.len() })?;
        let output = self.produce(op, whole, dtype)?;
        let access = self.graph().whole(output, true);
        if access.bytes > 0 {
            let work = Work::Fill { word: element.fill_word() };
            self.push(Node::new(self.label(op, output), work, smallvec![access]));
        }
        self.place(op, id, output, corner)?;
        Ok(self.handle(output))
    }

    /// Appends the nodes that put `input` into `output` with its first element at `corner`.
    fn place(
        &mut self,
        op: &'static str,
        input: ValueId,
        output: ValueId,
        corner: [usize; MAX_RANK],
    ) -> Result<()> {
        let ((shape, _), (whole, _)) = (self.kind(input), self.kind(output));
        if shape.elements() == 0 {
            return Ok(());
        }
        let strides = dense_strides(&whole);
        let to: u64 = corner.iter().zip(&strides).map(|(&c, &s)| c as u64 * u64::from(s)).sum();
        // Innermost first, neighbours merged where the output has no gap between them.
        let mut extents: SmallVec<[u32; MAX_RANK]> = SmallVec::new();
        let mut steps: SmallVec<[u32; MAX_RANK]> = SmallVec::new();
        for d in (0..shape.rank()).rev().filter(|&d| shape.dims()[d] != 1) {
            let extent = shape.dims()[d] as u32;
            match (extents.last_mut(), steps.last()) {
                (Some(inner), Some(step)) if strides[d] == step * *inner => *inner *= extent,
                _ => {
                    extents.push(extent);
                    steps.push(strides[d]);
                }
            }
        }
        let (from_access, to_access) = (self.graph().whole(input, false), self.graph().whole(output, true));
        if extents.len() <= 1 && steps.first().is_none_or(|&step| step == 1) {
            // One run of bytes.
            let target = Access { offset: 4 * to, bytes: from_access.bytes, ..to_access };
            let accesses = smallvec![from_access, target];
            self.push(Node::new(self.label(op, output), Work::Copy, accesses));
            return Ok(());
        }
        let linear = Linear::new(self.core(), 1, &[from_access.bytes]);
        let limits = self.core().catalog.limits;
        let multiples =
            extents[0].is_multiple_of(4) && to.is_multiple_of(4) && steps[1..].iter().all(|s| s % 4 == 0);
        let fit = match (steps[0], extents[0]) {
            (1, _) if multiples => Fit::Aligned,
            (1, 4..) => Fit::Rows,
            _ => Fit::Single,
        };
        // A large output is bound in parts: so many of the outermost rows at a time.
        let (rows, row) = (*extents.last().unwrap_or(&1), *steps.last().unwrap_or(&1));
        let row_elements: u64 = extents[..extents.len() - 1].iter().map(|&e| u64::from(e)).product();
        let room = limits.storage_range_bytes.saturating_sub(limits.offset_alignment) / 4;
        let span = |rows: u64| (rows - 1) * u64::from(row) + u64::from(row);
        let at_once = (room / u64::from(row).max(1)).min(u64::from(rows));
        let at_once = if row_elements.is_multiple_of(4) || at_once == u64::from(rows) {
            at_once
        } else {
            at_once / 4 * 4
        };
        if at_once == 0 {
            let bytes = 4 * u64::from(row);
            return Err(Error::TooLarge { op, shape: whole, bytes, limit: limits.storage_range_bytes });
        }
        let divisions = Divisions::new(&extents);
        let mut strides = [0; 4];
        strides[..steps.len()].copy_from_slice(&steps);
        let mut begin = 0;
        while begin < u64::from(rows) {
            let n = at_once.min(u64::from(rows) - begin);
            let first = to + begin * u64::from(row);
            let offset = 4 * first / limits.offset_alignment * limits.offset_alignment;
            let end = (4 * (first + span(n))).min(to_access.bytes);
            let push = PlacePush {
                count: (n * row_elements) as u32,
                from: (begin * row_elements) as u32,
                to: (first - offset / 4) as u32,
                extents: divisions.extents,
                magic: divisions.magic,
                shifts: divisions.shifts,
                strides,
            };
            let target = Access { offset, bytes: end - offset, ..to_access };
            let specialization = [(3, fit as u32), (4, extents.len() as u32)];
            let work = linear.dispatch(self.core(), "place", &specialization, &push, n * row_elements)?;
            let label = self.label(op, output);
            let node = Node::new(label, work, smallvec![from_access, target]);
            self.push(node.with_bytes(8 * n * row_elements));
            begin += n;
        }
        Ok(())
    }

    /// Rows of `table` (its slices along the first dimension) by their numbers in `rows`, a u32 tensor. A number
    /// outside the table gives a row of zeros.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let table = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// let rows = gpu.upload(&[1u32, 0, 1], [3])?;
    /// let y = gpu.run(|r| r.gather_rows(&table, &rows))?;
    /// assert_eq!(y.read::<f32>()?, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Type`] unless `rows` is u32; [`Error::Axis`] if the table is a scalar; [`Error::Rank`].
    pub fn gather_rows<'a>(
        &mut self,
        table: impl Into<Operand<'a>>,
        rows: impl Into<Operand<'a>>,
    ) -> Result<Value> {
        let op = "gather_rows";
        let (table, rows) = (self.resolve(op, table)?, self.resolve(op, rows)?);
        let ((shape, dtype), (wanted, rows_dtype)) = (self.kind(table), self.kind(rows));
        if rows_dtype != DType::U32 {
            return Err(Error::Type { op, expected: DType::U32, got: rows_dtype });
        }
        check_words(op, dtype)?;
        resolve_axis(op, 0, shape.rank())?;
        let (height, row) = (shape.dims()[0], &shape.dims()[1..]);
        let extents: SmallVec<[usize; 8]> = wanted.dims().iter().chain(row).copied().collect();
        let whole = Shape::new(&extents).ok_or(Error::Rank { op, rank: extents.len() })?;
        let output = self.produce(op, whole, dtype)?;
        let accesses: SmallVec<[Access; 4]> =
            smallvec![self.graph().whole(table, false), self.graph().whole(rows, false)];
        let target = self.graph().whole(output, true);
        if height == 0 && target.bytes > 0 {
            let work = Work::Fill { word: 0 };
            self.push(Node::new(self.label(op, output), work, smallvec![target]));
            return Ok(self.handle(output));
        }
        let width = row.iter().product::<usize>() as u32;
        // A row of one element needs no division; the shader divides by at least two.
        let (magic, shift) = division(width);
        let linear = Linear::new(self.core(), 2, &[accesses[0].bytes, accesses[1].bytes]);
        linear.check_inputs(self.core(), op, &[shape, wanted])?;
        let elements = whole.elements() as u64;
        for (first, count) in linear.windows(elements) {
            let push = GatherPush {
                count: count as u32,
                first: first as u32,
                width,
                magic,
                shift,
                height: height as u32,
            };
            let aligned = (3, u32::from(width.is_multiple_of(4)));
            let single = (4, u32::from(width == 1));
            let work = linear.dispatch(self.core(), "gather", &[aligned, single], &push, count)?;
            let mut accesses = accesses.clone();
            accesses.push(Access { offset: 4 * first, bytes: 4 * count, ..target });
            // Each element, the one it comes from (a table's element once, however often it is named), the row's number.
            let from_table = (4 * count).min(accesses[0].bytes);
            let bytes = 4 * count + from_table + 4 * count.div_ceil(u64::from(width.max(1)));
            self.push(Node::new(self.label(op, output), work, accesses).with_bytes(bytes));
        }
        Ok(self.handle(output))
    }
}
