//! Arguments from C, checked before anything is done with them.

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard};

use tidemill::{Bf16, Bool, DType, Element, Error, F16, Shape};

use crate::status::{Failure, tm_status};

/// The element type of a tensor: TM_F32 and so on.
pub type tm_dtype = u32;
/// 32-bit IEEE 754 float.
pub const TM_F32: tm_dtype = 0;
/// 16-bit IEEE 754 float, for storage: operations compute in f32.
pub const TM_F16: tm_dtype = 1;
/// 32-bit signed integer.
pub const TM_I32: tm_dtype = 2;
/// 32-bit unsigned integer; also what comparisons (0 or 1) and indices are.
pub const TM_U32: tm_dtype = 3;
/// The upper half of a 32-bit float, for storage: operations compute in f32.
pub const TM_BF16: tm_dtype = 4;
/// 16-bit signed integer, for storage, as all that follow: operations compute in 32 bits and wrap.
pub const TM_I16: tm_dtype = 5;
/// 8-bit signed integer.
pub const TM_I8: tm_dtype = 6;
/// 16-bit unsigned integer.
pub const TM_U16: tm_dtype = 7;
/// 8-bit unsigned integer.
pub const TM_U8: tm_dtype = 8;
/// A truth value in a byte: 0 or 1; every byte but 0 is true.
pub const TM_BOOL: tm_dtype = 9;

pub(crate) fn dtype(number: tm_dtype) -> Result<DType, Failure> {
    match number {
        TM_F32 => Ok(DType::F32),
        TM_F16 => Ok(DType::F16),
        TM_I32 => Ok(DType::I32),
        TM_U32 => Ok(DType::U32),
        TM_BF16 => Ok(DType::Bf16),
        TM_I16 => Ok(DType::I16),
        TM_I8 => Ok(DType::I8),
        TM_U16 => Ok(DType::U16),
        TM_U8 => Ok(DType::U8),
        TM_BOOL => Ok(DType::Bool),
        other => Err(Failure::unknown("dtype", other)),
    }
}

pub(crate) fn dtype_number(dtype: DType) -> Result<tm_dtype, Failure> {
    match dtype {
        DType::F32 => Ok(TM_F32),
        DType::F16 => Ok(TM_F16),
        DType::I32 => Ok(TM_I32),
        DType::U32 => Ok(TM_U32),
        DType::Bf16 => Ok(TM_BF16),
        DType::I16 => Ok(TM_I16),
        DType::I8 => Ok(TM_I8),
        DType::U16 => Ok(TM_U16),
        DType::U8 => Ok(TM_U8),
        DType::Bool => Ok(TM_BOOL),
        other => Err(Failure::new(tm_status::TM_OTHER, format!("{other} has no number in this ABI"))),
    }
}

/// Runs an expression with `$T` as the Rust type of a [`DType`].
macro_rules! with_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            tidemill::DType::F32 => {
                type $T = f32;
                $body
            }
            tidemill::DType::F16 => {
                type $T = tidemill::F16;
                $body
            }
            tidemill::DType::I32 => {
                type $T = i32;
                $body
            }
            tidemill::DType::U32 => {
                type $T = u32;
                $body
            }
            tidemill::DType::Bf16 => {
                type $T = tidemill::Bf16;
                $body
            }
            tidemill::DType::I16 => {
                type $T = i16;
                $body
            }
            tidemill::DType::I8 => {
                type $T = i8;
                $body
            }
            tidemill::DType::U16 => {
                type $T = u16;
                $body
            }
            tidemill::DType::U8 => {
                type $T = u8;
                $body
            }
            tidemill::DType::Bool => {
                type $T = tidemill::Bool;
                $body
            }
            other => Err($crate::status::Failure::new(
                $crate::status::tm_status::TM_OTHER,
                format!("{other} is not known to this ABI"),
            )),
        }
    };
}
pub(crate) use with_type;

/// An element from the number that C gives.
pub(crate) trait Scalar: Element {
    fn from_number(number: f64) -> Result<Self, Failure>;
}

impl Scalar for f32 {
    fn from_number(number: f64) -> Result<f32, Failure> {
        let float = number as f32;
        if float.is_infinite() && number.is_finite() {
            let message = format!("the number is {number:e}, which no f32 can hold");
            return Err(Failure::new(tm_status::TM_PARAMETER, message));
        }
        Ok(float)
    }
}

impl Scalar for F16 {
    fn from_number(number: f64) -> Result<F16, Failure> {
        f32::from_number(number).map(F16::from_f32)
    }
}

impl Scalar for Bf16 {
    fn from_number(number: f64) -> Result<Bf16, Failure> {
        f32::from_number(number).map(Bf16::from_f32)
    }
}

impl Scalar for Bool {
    fn from_number(number: f64) -> Result<Bool, Failure> {
        integer(number, 0.0, 1.0, "bool").map(|n| Bool::from(n == 1.0))
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Scalar for $type {
            fn from_number(number: f64) -> Result<$type, Failure> {
                let (least, most) = (f64::from(<$type>::MIN), f64::from(<$type>::MAX));
                integer(number, least, most, stringify!($type)).map(|n| n as $type)
            }
        }
    )*};
}
integers!(i32, i16, i8, u32, u16, u8);

fn integer(number: f64, least: f64, most: f64, name: &str) -> Result<f64, Failure> {
    if number.fract() == 0.0 && (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(Failure::new(tm_status::TM_PARAMETER, format!("the number is {number}, which is no {name}")))
}

/// An argument that must not be NULL.
pub(crate) fn given<T>(argument: Option<T>, name: &str) -> Result<T, Failure> {
    argument.ok_or_else(|| Failure::null(name))
}

/// The place for a handle, which is NULL until there is one.
pub(crate) fn place<'a, T>(
    out: Option<&'a mut MaybeUninit<*mut T>>,
    name: &str,
) -> Result<&'a mut *mut T, Failure> {
    Ok(given(out, name)?.write(std::ptr::null_mut()))
}

/// The handle of a new object, for the caller to free.
pub(crate) fn handle<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// A text for the caller to free with tm_string_free.
pub(crate) fn string(text: String) -> *mut c_char {
    CString::new(text.replace('\0', " ")).unwrap_or_default().into_raw()
}

/// The elements at a pointer, which may be NULL if there are none.
///
/// # Safety
///
/// Contract 1, for `'a`.
pub(crate) unsafe fn elements<'a, T>(
    pointer: *const T,
    count: usize,
    name: &str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    check(pointer, count, name)?;
    // SAFETY: contract 1; not NULL, aligned, and not larger than memory can be.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// The elements at a pointer, to be overwritten. What is there must be initialised, as any bytes of C are.
///
/// # Safety
///
/// Contract 1, for `'a`, and no one else accesses them meanwhile.
pub(crate) unsafe fn elements_mut<'a, T: Element>(
    pointer: *mut T,
    count: usize,
    name: &str,
) -> Result<&'a mut [T], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(pointer, count, name)?;
    // SAFETY: contract 1; not NULL, aligned, and not larger than memory can be. Any bits are an element.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

fn check<T>(pointer: *const T, count: usize, name: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{name} is NULL, and {count} elements are to be there")));
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument(format!("{name} is not aligned to {} bytes", align_of::<T>())));
    }
    if count > isize::MAX as usize / size_of::<T>() {
        return Err(Failure::argument(format!("{name} has {count} elements, more than memory can hold")));
    }
    Ok(())
}

/// How many elements this many bytes are.
pub(crate) fn count<T>(size_bytes: usize, name: &str) -> Result<usize, Failure> {
    if size_bytes.is_multiple_of(size_of::<T>()) {
        return Ok(size_bytes / size_of::<T>());
    }
    let one = size_of::<T>();
    Err(Failure::argument(format!("{name} has {size_bytes} bytes, and elements have {one}")))
}

/// A text, if there is one.
///
/// # Safety
///
/// Contracts 1 and 3, for `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: contracts 1 and 3.
    let text = unsafe { CStr::from_ptr(pointer) };
    let text = text.to_str().map_err(|e| Failure::argument(format!("{name} is not UTF-8: {e}")))?;
    Ok(Some(text))
}

/// A shape from its extents.
///
/// # Safety
///
/// Contract 1.
pub(crate) unsafe fn shape(op: &'static str, dims: *const usize, rank: usize) -> Result<Shape, Failure> {
    if rank > tidemill::MAX_RANK {
        return Err(Error::Rank { op, rank }.into());
    }
    // SAFETY: contract 1.
    let dims = unsafe { elements(dims, rank, "dims") }?;
    Shape::new(dims).ok_or_else(|| Error::Rank { op, rank }.into())
}

/// Locks a handle's state. A call that panicked inside has left it in an unknown one.
pub(crate) fn lock<T>(state: &Mutex<T>) -> Result<MutexGuard<'_, T>, Failure> {
    state.lock().map_err(|_| {
        Failure::new(tm_status::TM_INTERNAL, "an earlier call on this handle panicked".to_owned())
    })
}

/// The argument of a callback in C.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User(pub(crate) *mut c_void);

// SAFETY: contract 4: the caller lets it be used from any thread.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    pub(crate) fn pointer(self) -> *mut c_void {
        self.0
    }
}

/// Frees a string that this library gave. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_string_free(string: *mut c_char) {
    if !string.is_null() {
        // SAFETY: contracts 1 and 2; strings are given out by `into_raw` only.
        drop(unsafe { CString::from_raw(string) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_no_float_holds_are_refused_as_such() {
        assert!(f32::from_number(1e300).is_err() && F16::from_number(-1e300).is_err());
        assert!(f32::from_number(f64::INFINITY).is_ok_and(f32::is_infinite), "it is up to the operation");
        assert!(f32::from_number(-1.5).is_ok_and(|x| x == -1.5));
    }
}
