//! The one place where a loop gets the instruction set of the machine it runs on.

use pulp::{Arch, NullaryFnOnce};

use super::streaming::{Loop, Stores};
use crate::shape::Element;

struct Map1<'a, A, F> {
    x: &'a [A],
    f: F,
}

impl<A: Copy, R, F: Fn(A) -> R> Loop<R> for Map1<'_, A, F> {
    #[inline(always)]
    fn compute(&self, first: usize, out: &mut [R]) {
        let x = &self.x[first..][..out.len()];
        for (out, x) in out.iter_mut().zip(x) {
            *out = (self.f)(*x);
        }
    }
}

/// `out[i] = f(x[i])`.
pub(super) fn map1<A: Copy, R: Element>(x: &[A], out: &mut [R], stores: &Stores, f: impl Fn(A) -> R) {
    stores.fill(out, Map1 { x, f });
}

struct Map2<'a, A, F> {
    x: &'a [A],
    y: &'a [A],
    f: F,
}

impl<A: Copy, R, F: Fn(A, A) -> R> Loop<R> for Map2<'_, A, F> {
    #[inline(always)]
    fn compute(&self, first: usize, out: &mut [R]) {
        let (x, y) = (&self.x[first..][..out.len()], &self.y[first..][..out.len()]);
        for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
            *out = (self.f)(*x, *y);
        }
    }
}

/// `out[i] = f(x[i], y[i])`.
pub(super) fn map2<A: Copy, R: Element>(
    x: &[A],
    y: &[A],
    out: &mut [R],
    stores: &Stores,
    f: impl Fn(A, A) -> R,
) {
    stores.fill(out, Map2 { x, y, f });
}

struct Map3<'a, A, F> {
    x: [&'a [A]; 3],
    f: F,
}

impl<A: Copy, R, F: Fn(A, A, A) -> R> Loop<R> for Map3<'_, A, F> {
    #[inline(always)]
    fn compute(&self, first: usize, out: &mut [R]) {
        let [x, y, z] = self.x.map(|x| &x[first..][..out.len()]);
        for (((out, x), y), z) in out.iter_mut().zip(x).zip(y).zip(z) {
            *out = (self.f)(*x, *y, *z);
        }
    }
}

/// `out[i] = f(x[i], y[i], z[i])`.
pub(super) fn map3<A: Copy, R: Element>(
    x: [&[A]; 3],
    out: &mut [R],
    stores: &Stores,
    f: impl Fn(A, A, A) -> R,
) {
    stores.fill(out, Map3 { x, f });
}

/// Elements that are folded side by side: a vector, or two where states are twice as wide.
const WIDTH: usize = 8;
/// Vectors that are folded one after the other, so that none waits for the one before.
const DEPTH: usize = 4;

/// A state for each place in a chunk. Arrays of arrays: the compiler keeps them in registers, which it does not with
/// one of all.
pub(super) type Lanes<S> = [[S; WIDTH]; DEPTH];

/// Whole chunks, and the elements after them.
#[inline(always)]
fn chunks<A: Element>(x: &[A]) -> (&[Lanes<A>], &[A]) {
    let (whole, rest) = x.split_at(x.len() - x.len() % (WIDTH * DEPTH));
    (bytemuck::cast_slice(whole), rest)
}

struct Fold<'a, A, S, F> {
    x: &'a [A],
    nothing: S,
    f: F,
}

impl<A: Element, S: Copy, F: Fn(S, A) -> S> NullaryFnOnce for Fold<'_, A, S, F> {
    type Output = Lanes<S>;

    #[inline(always)]
    fn call(self) -> Lanes<S> {
        let mut lanes = [[self.nothing; WIDTH]; DEPTH];
        let (whole, rest) = chunks(self.x);
        for chunk in whole {
            for d in 0..DEPTH {
                let mut states = lanes[d];
                for (state, x) in states.iter_mut().zip(chunk[d]) {
                    *state = (self.f)(*state, x);
                }
                lanes[d] = states;
            }
        }
        for (state, x) in lanes.iter_mut().flatten().zip(rest) {
            *state = (self.f)(*state, *x);
        }
        lanes
    }
}

/// Folds element `i` into the state of its place in a chunk.
pub(super) fn fold<A: Element, S: Copy>(x: &[A], nothing: S, f: impl Fn(S, A) -> S) -> Lanes<S> {
    Arch::new().dispatch(Fold { x, nothing, f })
}

struct Update<'a, A, F> {
    out: &'a mut [A],
    with: &'a [A],
    f: F,
}

impl<A: Copy, F: Fn(A, A) -> A> NullaryFnOnce for Update<'_, A, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (out, with) in self.out.iter_mut().zip(self.with) {
            *out = (self.f)(*out, *with);
        }
    }
}

/// `out[i] = f(out[i], with[i])`.
pub(super) fn update_with<A: Copy>(out: &mut [A], with: &[A], f: impl Fn(A, A) -> A) {
    Arch::new().dispatch(Update { out, with, f });
}

struct UpdateAlone<'a, A, F> {
    out: &'a mut [A],
    f: F,
}

impl<A: Copy, F: Fn(A) -> A> NullaryFnOnce for UpdateAlone<'_, A, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for out in self.out {
            *out = (self.f)(*out);
        }
    }
}

/// `out[i] = f(out[i])`.
pub(super) fn update<A: Copy>(out: &mut [A], f: impl Fn(A) -> A) {
    Arch::new().dispatch(UpdateAlone { out, f });
}

struct Dot<'a> {
    x: &'a [f32],
    y: &'a [f32],
}

impl NullaryFnOnce for Dot<'_> {
    type Output = f64;

    #[inline(always)]
    fn call(self) -> f64 {
        let mut lanes = [[0.0; WIDTH]; DEPTH];
        let ((x, x_rest), (y, y_rest)) = (chunks(self.x), chunks(self.y));
        for (x, y) in x.iter().zip(y) {
            for d in 0..DEPTH {
                let mut sums = lanes[d];
                for ((sum, x), y) in sums.iter_mut().zip(x[d]).zip(y[d]) {
                    *sum += f64::from(x) * f64::from(y);
                }
                lanes[d] = sums;
            }
        }
        for ((sum, x), y) in lanes.iter_mut().flatten().zip(x_rest).zip(y_rest) {
            *sum += f64::from(*x) * f64::from(*y);
        }
        lanes.into_iter().flatten().sum()
    }
}

/// The inner product of two slices of one length; products and sums in f64.
pub(super) fn dot(x: &[f32], y: &[f32]) -> f64 {
    Arch::new().dispatch(Dot { x, y })
}

struct FoldColumns<'a, A, S, P, F> {
    x: &'a [A],
    stride: usize,
    params: &'a [P],
    states: &'a mut [S],
    f: F,
}

impl<A: Copy, S: Copy, P: Copy, F: Fn(S, A, P) -> S> NullaryFnOnce for FoldColumns<'_, A, S, P, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let width = self.states.len();
        for row in self.x.chunks(self.stride) {
            for ((state, x), p) in self.states.iter_mut().zip(&row[..width]).zip(self.params) {
                *state = (self.f)(*state, *x, *p);
            }
        }
    }
}

/// Folds columns that lie side by side, each into its state: rows begin every `stride` elements.
pub(super) fn fold_columns<A: Copy, S: Copy, P: Copy>(
    x: &[A],
    stride: usize,
    params: &[P],
    states: &mut [S],
    f: impl Fn(S, A, P) -> S,
) {
    Arch::new().dispatch(FoldColumns { x, stride, params, states, f });
}
