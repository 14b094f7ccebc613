//! Dense tensors copied into boxes of larger ones, for concatenation, stacking and padding: dispatches of
//! `glsl/copy_box.comp`, and copies where a box is one run of bytes.

use smallvec::{SmallVec, smallvec};

use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::ir::copy::CopyBox;
use crate::ir::value::{Access, Label, Values};
use crate::kernels::bindings::{self, window_bytes};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::copy::linear::Linear;
use crate::kernels::division::{Divisions, MOST_DIMS};
use crate::kernels::elementwise::TAIL_APART_ELEMENTS;
use crate::kernels::modules::copy_box;
use crate::kernels::uniform_store::MOST_SUBGROUPS;
use crate::shape::layout::dense_strides;
use crate::shape::{MAX_RANK, Shape};

/// The push constants of the kernel.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    count: u32,
    from: u32,
    to: u32,
    extents: [u32; 3],
    magic: [u32; 3],
    shifts: u32,
    strides: [u32; MOST_DIMS],
}

/// How a group of four elements lies in the output; numbers as in the kernel.
#[derive(Clone, Copy)]
enum Fit {
    Aligned = 1,
    Rows = 2,
    Single = 3,
}

/// A stretch of the input and the box of the output that it goes to, in elements, innermost dimension first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    extents: SmallVec<[u32; MAX_RANK]>,
    /// From one element of a dimension to the next in the output.
    steps: SmallVec<[u32; MAX_RANK]>,
    from: u64,
    to: u64,
}

/// How many elements of input and output one dispatch may span.
#[derive(Clone, Copy, Debug)]
struct Room {
    input: u64,
    output: u64,
}

impl Piece {
    /// All of a tensor, neighbouring dimensions merged where the output has no gap between them.
    fn new(shape: &Shape, whole: &Shape, corner: &[usize; MAX_RANK]) -> Piece {
        let strides = dense_strides(whole);
        let to = corner.iter().zip(&strides).map(|(&c, &s)| c as u64 * s as u64).sum();
        let mut piece = Piece { extents: smallvec![], steps: smallvec![], from: 0, to };
        for d in (0..shape.rank()).rev().filter(|&d| shape.dims()[d] != 1) {
            let (extent, stride) = (shape.dims()[d] as u32, strides[d] as u32);
            match (piece.extents.last_mut(), piece.steps.last()) {
                (Some(inner), Some(step)) if branch!("copy_box: merges", stride == step * *inner) => {
                    *inner *= extent
                }
                _ => {
                    piece.extents.push(extent);
                    piece.steps.push(stride);
                }
            }
        }
        piece
    }

    fn elements(&self) -> u64 {
        self.extents.iter().map(|&extent| u64::from(extent)).product()
    }

    /// From its first element in the output to behind its last.
    fn span(&self) -> u64 {
        let dims = self.extents.iter().zip(&self.steps);
        1 + dims.map(|(&extent, &step)| u64::from(extent - 1) * u64::from(step)).sum::<u64>()
    }

    /// Whether the output has no gaps in it.
    fn is_run(&self) -> bool {
        self.span() == self.elements()
    }

    /// This many of the outermost rows from this one on. One row alone is a piece of fewer dimensions.
    fn rows(&self, begin: u64, n: u64) -> Piece {
        let last = self.extents.len() - 1;
        let mut piece = self.clone();
        piece.extents[last] = n as u32;
        piece.from += begin * (self.elements() / u64::from(self.extents[last]));
        piece.to += begin * u64::from(self.steps[last]);
        if n == 1 {
            piece.extents.pop();
            piece.steps.pop();
        }
        piece
    }

    /// How many of the outermost rows have room.
    fn rows_at_once(&self, room: Room) -> u64 {
        let row = self.rows(0, 1);
        let step = u64::from(self.steps[self.steps.len() - 1]);
        match room.output.checked_sub(row.span()) {
            Some(left) => (room.input / row.elements()).min(left / step + 1),
            None => 0,
        }
    }

    /// Splits off pieces for the kernel with uniform stores, and returns the rest. The pieces are rows that whole
    /// subgroups walk over, as many as fill workgroups, with room and in reach of the digit table. Few rows are not
    /// worth a dispatch of their own: then all of it is the rest.
    fn split_off_uniform(self, linear: &Linear, room: Room, pieces: &mut Vec<Piece>) -> Option<Piece> {
        let whole_walks = |row: u32| u64::from(row).is_multiple_of(linear.per_subgroup());
        let fits = branch!("copy_box: uniform store", linear.uniform_store)
            && branch!("copy_box: few dimensions", self.extents.len() <= MOST_DIMS)
            && branch!("copy_box: rows", self.extents.len() > 1)
            && branch!("copy_box: neighbours", self.steps[0] == 1)
            && branch!("copy_box: rows walked in whole", whole_walks(self.extents[0]))
            && branch!("copy_box: begins at eight", self.to.is_multiple_of(8))
            && branch!("copy_box: rows at eights", self.steps[1..].iter().all(|step| step.is_multiple_of(8)));
        if !fits {
            return Some(self);
        }
        let rows = u64::from(self.extents[self.extents.len() - 1]);
        let row = self.elements() / rows;
        // This many rows are whole workgroups.
        let unit = linear.per_group() >> row.trailing_zeros().min(linear.per_group().trailing_zeros());
        let output = room.output.min(8 * MOST_SUBGROUPS);
        let at_once = self.rows_at_once(Room { input: linear.most_uniform(), output }) / unit * unit;
        let whole = rows / unit * unit;
        if branch!("copy_box: no room uniform store", at_once == 0)
            || (branch!("copy_box: rows left", whole < rows)
                && branch!("copy_box: few uniform store", whole * row < TAIL_APART_ELEMENTS))
        {
            return Some(self);
        }
        for begin in (0..whole).step_by(at_once as usize) {
            pieces.push(self.rows(begin, at_once.min(whole - begin)));
        }
        (whole < rows).then(|| self.rows(whole, rows - whole))
    }

    /// Appends pieces that have room and no more dimensions than the kernel walks over; runs always do, since copies
    /// need no bindings.
    fn split(self, room: Room, pieces: &mut Vec<Piece>) {
        let deep = branch!("copy_box: deep", self.extents.len() > MOST_DIMS);
        if branch!("copy_box: run", self.is_run())
            || (!deep
                && branch!("copy_box: room for input", self.elements() <= room.input)
                && branch!("copy_box: room for output", self.span() <= room.output))
        {
            pieces.push(self);
            return;
        }
        let rows = u64::from(self.extents[self.extents.len() - 1]);
        let at_once = if deep { 1 } else { self.rows_at_once(room) };
        branch!("copy_box: a row is too long", at_once == 0);
        for begin in (0..rows).step_by(at_once.max(1) as usize) {
            let n = at_once.max(1).min(rows - begin);
            self.rows(begin, n).split(room, pieces);
        }
    }
}

impl CopyBox {
    /// Appends the commands that carry it out.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let elements = self.shape.elements() as u64;
        if branch!("copy_box: nothing", elements == 0) {
            return Ok(());
        }
        let (from, to) = (values.whole(self.input, false), values.whole(self.output, true));
        let linear = Linear::new(catalog, elements, &[from.bytes]);
        let limits = &catalog.limits;
        // A window begins up to one alignment early.
        let window = window_bytes(limits) / 4;
        let input_windowed = linear.load == Load::Buffer && from.bytes > limits.storage_range_bytes;
        let most = linear.most_elements();
        let output_windowed = to.bytes > limits.storage_range_bytes;
        let room = Room {
            input: if branch!("copy_box: input in windows", input_windowed) {
                most.min(window)
            } else {
                most
            },
            output: if branch!("copy_box: output in windows", output_windowed) { window } else { u64::MAX },
        };
        let (mut uniform_store, mut pieces) = (Vec::new(), Vec::new());
        let piece = Piece::new(&self.shape, &values.value(self.output).shape, &self.corner);
        if let Some(rest) = piece.split_off_uniform(&linear, room, &mut uniform_store) {
            rest.split(room, &mut pieces);
        }
        let uniform_store = uniform_store.into_iter().map(|piece| (piece, true));
        for (piece, uniform_store) in uniform_store.chain(pieces.into_iter().map(|piece| (piece, false))) {
            let count = piece.elements();
            if branch!("copy_box: a run", piece.is_run()) {
                let from = Access { offset: 4 * piece.from, bytes: 4 * count, ..from };
                let to = Access { offset: 4 * piece.to, bytes: 4 * count, ..to };
                commands.push(Command::new(label.clone(), Action::Copy, smallvec![from, to]));
                continue;
            }
            let bind = |whole: Access, begin: u64, elements: u64| {
                let (access, early) = bindings::window(whole, 4 * begin..4 * (begin + elements), limits);
                (access, (early / 4) as u32)
            };
            let (source, first) =
                if input_windowed { bind(from, piece.from, count) } else { (from, piece.from as u32) };
            let (target, corner) = bind(to, piece.to, piece.span());
            let divisions = Divisions::new(&piece.extents);
            let mut strides = [0; MOST_DIMS];
            strides[..piece.steps.len()].copy_from_slice(&piece.steps);
            let push = Push {
                count: count as u32,
                from: first,
                to: corner,
                extents: divisions.extents,
                magic: divisions.magic,
                shifts: divisions.shifts,
                strides,
            };
            let whole_groups = [piece.extents[0], first, corner].iter().all(|n| n % 4 == 0)
                && piece.steps[1..].iter().all(|step| step % 4 == 0);
            let fit = match (piece.steps[0], piece.extents[0]) {
                (1, _) if branch!("copy_box: whole groups", whole_groups) => Fit::Aligned,
                (1, extent) if branch!("copy_box: rows of four", extent >= 4) => Fit::Rows,
                _ => Fit::Single,
            };
            let module = match linear.load {
                _ if branch!("linear: placed uniform store", uniform_store) => copy_box::Module::TexelUniform,
                Load::Buffer => copy_box::Module::Buffer,
                Load::Texel => copy_box::Module::Texel,
            };
            let constants = linear
                .constants::<copy_box::File>()
                .with(copy_box::FIT, fit as u32)
                .with(copy_box::DIMS, piece.extents.len() as u32);
            // A first group of four may begin before the first element.
            let walked = count + u64::from(first % 4);
            let action = linear.dispatch(catalog, (constants.of(module), uniform_store), &push, walked)?;
            let command = Command::new(label.clone(), action, smallvec![source, target]);
            commands.push(command.with_bytes(8 * count));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::build::first_dims;

    /// Where each element of the input goes, by the pieces: every one once.
    fn moved(pieces: &[Piece], elements: usize) -> Vec<u64> {
        let mut places = vec![u64::MAX; elements];
        for piece in pieces {
            for i in 0..piece.elements() {
                let (mut rest, mut at) = (i, piece.to);
                for (&extent, &step) in piece.extents.iter().zip(&piece.steps) {
                    at += rest % u64::from(extent) * u64::from(step);
                    rest /= u64::from(extent);
                }
                let place = &mut places[(piece.from + i) as usize];
                assert_eq!(*place, u64::MAX, "element {} twice", piece.from + i);
                *place = at;
            }
        }
        places
    }

    #[test]
    fn pieces_cover_everything_once_and_have_room() {
        let boxes: [(&[usize], &[usize], &[usize]); 7] = [
            (&[5, 7], &[5, 9], &[0, 1]),
            (&[7, 1], &[7, 3], &[0, 2]),
            (&[3, 4, 5], &[4, 6, 8], &[1, 1, 2]),
            (&[2, 3, 4, 5], &[3, 4, 6, 9], &[0, 1, 2, 3]),
            (&[2, 2, 2, 2, 3], &[3, 3, 3, 3, 4], &[0, 1, 0, 1, 1]),
            (&[6, 8], &[9, 8], &[2]),
            (&[3, 2, 8], &[3, 4, 8], &[0, 2]),
        ];
        for (shape, whole, corner) in boxes {
            let (shape, whole) = (Shape::new(shape).unwrap(), Shape::new(whole).unwrap());
            let piece = Piece::new(&shape, &whole, &first_dims(corner));
            let expected = moved(std::slice::from_ref(&piece), shape.elements());
            for input in [1, 2, 3, 5, 16, 1000] {
                for output in [1, 2, 7, 20, 1000] {
                    let (room, mut pieces) = (Room { input, output }, Vec::new());
                    piece.clone().split(room, &mut pieces);
                    assert_eq!(moved(&pieces, shape.elements()), expected, "{shape} into {whole}: {room:?}");
                    let fits = |p: &Piece| p.is_run() || (p.elements() <= input && p.span() <= output);
                    assert!(pieces.iter().all(fits), "{shape} into {whole}: {room:?}");
                }
            }
        }
    }
}
