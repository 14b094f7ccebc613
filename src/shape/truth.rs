//! Truth values, as they are stored.

use std::fmt;
use std::hash::{Hash, Hasher};

/// A truth value in a byte: what tensors of [`DType::Bool`](crate::DType::Bool) are made of. Rust's own `bool` can't be
/// read from memory that a device has written, since it must be 0 or 1; here every byte but 0 is true.
///
/// A slice of bytes can be cast to a slice of these, or back, with `bytemuck`.
///
/// ```
/// use tidemill::Bool;
/// assert!(bool::from(Bool::from(true)) && Bool::from(true) == true && Bool::FALSE == false);
/// assert_eq!(bytemuck::cast::<u8, Bool>(7), Bool::TRUE);
/// ```
#[derive(Clone, Copy, Default, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    /// True: 1.
    pub const TRUE: Bool = Bool(1);
    /// False: 0.
    pub const FALSE: Bool = Bool(0);
}

impl From<bool> for Bool {
    fn from(truth: bool) -> Bool {
        Bool(u8::from(truth))
    }
}

impl From<Bool> for bool {
    fn from(truth: Bool) -> bool {
        truth.0 != 0
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        bool::from(*self) == bool::from(*other)
    }
}

impl PartialEq<bool> for Bool {
    fn eq(&self, other: &bool) -> bool {
        bool::from(*self) == *other
    }
}

impl Hash for Bool {
    fn hash<H: Hasher>(&self, state: &mut H) {
        bool::from(*self).hash(state);
    }
}

impl fmt::Debug for Bool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&bool::from(*self), f)
    }
}
