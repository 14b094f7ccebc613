//! Operations along one axis: reductions and softmax. They share how an axis is split, windowed and spread over a grid.

pub(crate) mod prologue;
pub(crate) mod reduce;
pub(crate) mod reduction;
pub(crate) mod softmax;
pub(crate) mod span;
