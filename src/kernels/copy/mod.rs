//! Operations that move or make elements and compute nothing else.

mod copy_box;
pub(crate) mod deep;
mod gather;
mod generate;
pub(crate) mod linear;
pub(crate) mod strided;
