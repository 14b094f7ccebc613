//! Structs of options. The first field, `size`, says how large the struct is in the header that the program was
//! compiled against. So a later header of the same ABI can add fields at the end: a program that does not know them
//! gets their defaults.

use crate::status::{Failure, tm_status};

/// A struct of options, or one that a function fills.
///
/// # Safety
///
/// The type is `#[repr(C)]`, its first field is `size: usize`, and every field may hold any bytes that C gives it,
/// zeros among them. Fields that are added later begin at or behind [`LEAST`](Options::LEAST).
pub(crate) unsafe trait Options: Copy {
    /// Its name in C.
    const NAME: &'static str;
    /// Its size in the first header of this ABI.
    const LEAST: usize;
    /// Values of fields that a program does not set; `size` is that of this library.
    const DEFAULTS: Self;

    /// Its size in this library.
    const SIZE: usize = size_of::<Self>();
}

/// Declares what the safety of [`Options`] asks for.
macro_rules! options {
    ($name:ident, least: $least:expr, defaults: $defaults:expr) => {
        // SAFETY: a struct of C with `size` first.
        unsafe impl crate::options::Options for $name {
            const NAME: &'static str = stringify!($name);
            const LEAST: usize = $least;
            const DEFAULTS: $name = $defaults;
        }
        const _: () = {
            assert!(std::mem::offset_of!($name, size) == 0 && $least <= size_of::<$name>());
        };
    };
}
pub(crate) use options;

/// The options that a program gives, in full.
///
/// # Safety
///
/// The pointer is NULL, or to as many bytes as the struct says.
pub(crate) unsafe fn read<T: Options>(given: *const T, name: &str) -> Result<T, Failure> {
    if given.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: the caller's contract; `size` is the first field.
    let size = unsafe { given.cast::<usize>().read_unaligned() };
    check::<T>(size)?;
    let known = size.min(T::SIZE);
    // SAFETY: the struct says that it has this many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(given.cast::<u8>(), size) };
    if bytes.iter().skip(known).any(|byte| *byte != 0) {
        return Err(mismatch(format!(
            "{} sets options that this library does not know: it has {} bytes, and {size} were given",
            T::NAME,
            T::SIZE
        )));
    }
    let mut options = T::DEFAULTS;
    // SAFETY: both have this many bytes, and any of them are a `T`.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut options).cast(), known) };
    Ok(options)
}

/// Writes a struct to where a program wants it, with as many of its fields as the program knows.
///
/// # Safety
///
/// The pointer is NULL, or to `size` bytes that may be written.
pub(crate) unsafe fn write<T: Options>(
    to: *mut T,
    size: usize,
    name: &str,
    options: T,
) -> Result<(), Failure> {
    check::<T>(size)?;
    if to.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: the caller's contract.
    unsafe { to.cast::<u8>().write_bytes(0, size) };
    // SAFETY: as above; no more than both have.
    unsafe { std::ptr::copy_nonoverlapping((&raw const options).cast::<u8>(), to.cast(), size.min(T::SIZE)) };
    // SAFETY: as above; `size` is the first field, and checked to fit.
    unsafe { to.cast::<usize>().write_unaligned(size) };
    Ok(())
}

/// Fills a struct whose `size` the program has set.
///
/// # Safety
///
/// The pointer is NULL, or to as many bytes as the struct says.
pub(crate) unsafe fn fill<T: Options>(to: *mut T, name: &str, options: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: the caller's contract; `size` is the first field.
    let size = unsafe { to.cast::<usize>().read_unaligned() };
    // SAFETY: the caller's contract.
    unsafe { write(to, size, name, options) }
}

/// The most bytes that a struct of options is believed to have.
const MOST: usize = 1 << 16;

fn check<T: Options>(size: usize) -> Result<(), Failure> {
    if (T::LEAST..=MOST).contains(&size) {
        return Ok(());
    }
    Err(mismatch(format!(
        "the size of {} is {size}, and this library has {} at the least: set it to sizeof({}), and compile against \
         the header of ABI {}",
        T::NAME,
        T::LEAST,
        T::NAME,
        crate::TM_ABI_VERSION
    )))
}

fn mismatch(message: String) -> Failure {
    Failure::new(tm_status::TM_ABI_MISMATCH, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Grown {
        size: usize,
        first: u64,
        added: u64,
    }

    options!(Grown, least: 16, defaults: Grown { size: size_of::<Grown>(), first: 1, added: 2 });

    #[test]
    fn programs_of_another_header_are_understood() {
        let older = [16u64, 7];
        // SAFETY: as many bytes as it says.
        let got = unsafe { read(older.as_ptr().cast::<Grown>(), "grown") }.unwrap();
        assert_eq!((got.first, got.added), (7, 2), "what an older header has not is as by default");
        let newer = [32u64, 7, 8, 0];
        // SAFETY: as above.
        let got = unsafe { read(newer.as_ptr().cast::<Grown>(), "grown") }.unwrap();
        assert_eq!((got.first, got.added), (7, 8));
        let unknown = [32u64, 7, 8, 9];
        // SAFETY: as above.
        let refused = unsafe { read(unknown.as_ptr().cast::<Grown>(), "grown") }.unwrap_err();
        assert_eq!(refused.status, tm_status::TM_ABI_MISMATCH);
        let earlier = [1u64, 7];
        // SAFETY: as above.
        assert!(unsafe { read(earlier.as_ptr().cast::<Grown>(), "grown") }.is_err(), "that is no size");
    }

    #[test]
    fn no_more_is_written_than_a_program_has() {
        let mut older = [0u64, 0, 77];
        // SAFETY: 16 bytes are there.
        unsafe { write(older.as_mut_ptr().cast(), 16, "grown", Grown::DEFAULTS) }.unwrap();
        assert_eq!(older, [16, 1, 77]);
        let mut newer = [32u64, 9, 9, 9];
        // SAFETY: 32 bytes are there.
        unsafe { fill(newer.as_mut_ptr().cast(), "grown", Grown::DEFAULTS) }.unwrap();
        assert_eq!(newer, [32, 1, 2, 0]);
    }
}
