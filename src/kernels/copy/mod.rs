//! Operations that move or make elements and compute nothing else.

mod copy_box;
mod gather;
mod generate;
pub(crate) mod linear;
