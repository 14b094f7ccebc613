//! How scans and sorts run along an axis.

/// The axis that a scan runs along, and how. An integer stands for an axis; negative ones count from the end.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::args::Along;
/// let gpu = tidemill::Accelerator::global()?;
/// let x = gpu.upload(&[1u32, 2, 3, 4], [4])?;
/// let y = gpu.run(|r| r.cumsum(&x, Along::axis(0).exclusive().reverse()))?;
/// assert_eq!(y.read::<u32>()?, [9, 7, 4, 0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Along {
    axis: isize,
    exclusive: bool,
    reverse: bool,
}

impl Along {
    /// Along this axis, from its beginning; each result has the element at its own place in it.
    pub const fn axis(axis: isize) -> Along {
        Along { axis, exclusive: false, reverse: false }
    }

    /// Each result is without the element at its own place: the first one is of nothing.
    pub const fn exclusive(self) -> Along {
        Along { exclusive: true, ..self }
    }

    /// From the end of the axis to its beginning.
    pub const fn reverse(self) -> Along {
        Along { reverse: true, ..self }
    }

    /// The axis, and whether the scan is exclusive and whether it runs from the end.
    pub(crate) fn parts(self) -> (isize, bool, bool) {
        (self.axis, self.exclusive, self.reverse)
    }
}

impl From<isize> for Along {
    fn from(axis: isize) -> Along {
        Along::axis(axis)
    }
}

impl From<i32> for Along {
    fn from(axis: i32) -> Along {
        Along::axis(axis as isize)
    }
}

/// The axis that is sorted along, and the order. An integer stands for an axis, in ascending order; negative ones count
/// from the end.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::args::Sort;
/// let gpu = tidemill::Accelerator::global()?;
/// let x = gpu.upload(&[2i32, -5, 7], [3])?;
/// let y = gpu.run(|r| r.sort(&x, Sort::along(0).descending()))?;
/// assert_eq!(y.read::<i32>()?, [7, 2, -5]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    axis: isize,
    descending: bool,
}

impl Sort {
    /// Along this axis, in ascending order.
    pub const fn along(axis: isize) -> Sort {
        Sort { axis, descending: false }
    }

    /// The largest first. Equal elements keep their order.
    pub const fn descending(self) -> Sort {
        Sort { descending: true, ..self }
    }

    /// The axis, and whether the largest is first.
    pub(crate) fn parts(self) -> (isize, bool) {
        (self.axis, self.descending)
    }
}

impl From<isize> for Sort {
    fn from(axis: isize) -> Sort {
        Sort::along(axis)
    }
}

impl From<i32> for Sort {
    fn from(axis: i32) -> Sort {
        Sort::along(axis as isize)
    }
}
