//! Operations along one axis: reductions, softmax and normalisation. They share how an axis is split, windowed and
//! spread over a grid.

pub(crate) mod norm;
pub(crate) mod prologue;
pub(crate) mod reduce;
pub(crate) mod reduction;
pub(crate) mod softmax;
pub(crate) mod split;
pub(crate) mod split_heuristics;
pub(crate) mod threads_per_row;
