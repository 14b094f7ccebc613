//! Operations that move or make elements and compute nothing else.

pub(crate) mod linear;
