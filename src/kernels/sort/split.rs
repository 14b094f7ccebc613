//! How the work of scans and sorts is cut.

use crate::kernels::axis::reduce::family::FAMILY;
use crate::kernels::catalog::Catalog;
use crate::kernels::variant::{Class, Tree};

/// Invocations of a workgroup: each has a part of its own, and nothing in common with the others.
pub(super) const LOCAL_SIZE: u32 = 64;

/// Invocations that work is cut for: enough to keep the device busy.
pub(super) fn lanes(catalog: &Catalog) -> u64 {
    match catalog.variant(&FAMILY, Class::Large).tree {
        Tree::Shuffle => 4096,
        Tree::Shared | Tree::Apart => 65_536,
    }
}
