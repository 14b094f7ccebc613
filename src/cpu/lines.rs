//! Folds along one axis: rows, or columns that lie side by side.

use super::parallel::{self, Grain, LIGHT};
use super::simd;
use crate::shape::Element;
use crate::shape::axes::Geometry;

/// Columns whose states stay in the first-level cache.
const COLUMNS: usize = 512;

/// A fold: the state of nothing, an element added to a state, and two states in order.
#[derive(Clone, Copy)]
pub(super) struct Fold<S, F, M> {
    pub(super) nothing: S,
    pub(super) step: F,
    pub(super) merge: M,
}

impl<S: Copy + Send + Sync, F: Copy + Sync + Send, M: Fn(S, S) -> S + Copy + Sync + Send> Fold<S, F, M> {
    /// The state of each line, in order. `params` has what a step is told of its line. How lines are cut depends on
    /// their length alone, so the same elements give the same bits.
    pub(super) fn lines<A, P>(&self, x: &[A], geometry: Geometry, params: &[P]) -> Vec<S>
    where
        A: Element,
        P: Copy + Sync,
        F: Fn(S, A, P) -> S,
    {
        let (extent, inner) = (geometry.extent as usize, geometry.inner as usize);
        let mut states = vec![self.nothing; geometry.results() as usize];
        if x.is_empty() {
            return states;
        }
        if geometry.is_rows() {
            parallel::rows(&mut states, 1, extent, LIGHT, |first, states| {
                for (i, state) in states.iter_mut().enumerate() {
                    *state = self.row(&x[(first + i) * extent..][..extent], params[first + i]);
                }
            });
        } else {
            parallel::rows(&mut states, inner, extent * inner, LIGHT, |first, states| {
                for (i, states) in states.chunks_mut(inner).enumerate() {
                    let outer = first + i;
                    let x = &x[outer * extent * inner..][..extent * inner];
                    self.columns(x, inner, &params[outer * inner..][..inner], states);
                }
            });
        }
        states
    }

    /// One row, in parts if it is long.
    pub(super) fn row<A, P>(&self, x: &[A], param: P) -> S
    where
        A: Element,
        P: Copy + Sync,
        F: Fn(S, A, P) -> S,
    {
        let Fold { nothing, step, merge } = *self;
        let part = |x: &[A]| {
            let lanes = simd::fold(x, nothing, |state, x| step(state, x, param));
            lanes.into_iter().flatten().fold(nothing, merge)
        };
        let Grain(grain) = LIGHT;
        if x.len() <= grain {
            part(x)
        } else {
            parallel::map_chunks(x, grain, |(_, x)| part(x)).into_iter().fold(nothing, merge)
        }
    }

    fn columns<A, P>(&self, x: &[A], inner: usize, params: &[P], states: &mut [S])
    where
        A: Element,
        P: Copy + Sync,
        F: Fn(S, A, P) -> S,
    {
        let Grain(grain) = LIGHT;
        let extent = x.len() / inner;
        let block = |first: usize, x: &[A], states: &mut [S]| {
            let mut at = 0;
            for states in states.chunks_mut(COLUMNS) {
                let begin = first + at;
                let rows = &x[begin..x.len() - inner + begin + states.len()];
                simd::fold_columns(rows, inner, &params[begin..], states, self.step);
                at += states.len();
            }
        };
        if inner > COLUMNS || x.len() <= grain {
            let at_once = Grain((grain / extent).max(COLUMNS));
            parallel::pieces(states, at_once, |first, states| block(first, x, states));
            return;
        }
        // Few columns: threads take parts of their length.
        let parts = parallel::map_chunks(x, (grain / inner).max(1) * inner, |(_, x)| {
            let mut states = vec![self.nothing; inner];
            block(0, x, &mut states);
            states
        });
        for part in parts {
            for (state, part) in states.iter_mut().zip(part) {
                *state = (self.merge)(*state, part);
            }
        }
    }
}
