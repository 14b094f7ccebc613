//! The C ABI of Tidemill: `include/tidemill.h` is made from this by cbindgen.
//!
//! # Contract with callers
//!
//! `unsafe` in this crate rests on what the header asks of C callers:
//!
//! 1. A pointer is NULL or valid for what the function does with it: a handle that this library gave and that was not
//!    freed yet, or memory for as many elements as are said.
//! 2. A handle is freed once, when no other call uses it.
//! 3. A string ends with a 0.
//! 4. What a callback is given to use (`user`) may be used from the thread on which it is called.
//! 5. A handle that a callback is given is not used once the callback has returned. Until then the library leaves alone
//!    what it lends by it.
//!
//! Handles that may be NULL come in as `Option<&T>`, those to be freed as `Option<Box<T>>`, and places for results as
//! `Option<&mut MaybeUninit<T>>`, so that only slices, strings and callbacks need `unsafe`. Options of C (`tm_unary_op`
//! and the like) are plain numbers that are checked, since an enum with a number that it has not would be undefined.

#![allow(unsafe_code, reason = "an ABI for C takes pointers; the contract is above")]
#![allow(non_camel_case_types, reason = "names of C")]
#![allow(unreachable_pub, reason = "what is exported to C is pub, wherever it stands")]

// In the order in which a reader of the header meets things.
mod status;

mod arguments;

mod config;

mod accelerator;

mod device_needs;

mod host_device;

mod tensor;

mod memory;

mod dlpack;

mod recording;

mod submission;

mod elementwise;

mod reduce;

mod pool;

mod norm;

mod epilogue;

mod matmul;

mod attention;
mod convolution;

mod layout;

mod index;

mod dynamic;

mod sort;

mod kernel;

mod plan;

mod sharing;

mod stream;

mod progress;

mod hybrid;

mod chain;

mod profile;

// Not in the header.
mod json;
mod options;

use std::ffi::c_char;

use status::{Failure, guard, tm_status};

/// Counts changes that break programs compiled against an older header. tm_check_abi compares it.
pub const TM_ABI_VERSION: u32 = 2;

/// The most dimensions that a tensor may have.
pub const TM_MAX_RANK: usize = 8;

/// A timeout that never comes.
pub const TM_FOREVER: u64 = u64::MAX;

/// The library's version, such as "0.1.0". Static: not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The TM_ABI_VERSION that the library was built with.
#[unsafe(no_mangle)]
pub extern "C" fn tm_abi_version() -> u32 {
    TM_ABI_VERSION
}

/// Call it as tm_check_abi(TM_ABI_VERSION) before anything else: TM_ABI_MISMATCH if the program was compiled against a
/// header that does not belong to this library.
#[unsafe(no_mangle)]
pub extern "C" fn tm_check_abi(header_abi_version: u32) -> tm_status {
    guard("tm_check_abi", || check_abi(header_abi_version))
}

fn check_abi(header: u32) -> Result<(), Failure> {
    if header == TM_ABI_VERSION {
        return Ok(());
    }
    let message = format!(
        "the program was compiled against ABI {header}, this library ({}) has {TM_ABI_VERSION}; \
         compile against the header that came with it",
        env!("CARGO_PKG_VERSION")
    );
    Err(Failure::new(tm_status::TM_ABI_MISMATCH, message))
}

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<accelerator::tm_accelerator>();
    shared::<tensor::tm_tensor>();
    shared::<recording::tm_recording>();
    shared::<submission::tm_submission>();
    shared::<plan::tm_plan>();
    shared::<stream::tm_stream>();
    shared::<stream::tm_batch>();
    shared::<kernel::tm_kernel>();
    shared::<convolution::tm_weights>();
    shared::<profile::tm_session>();
    shared::<profile::tm_run>();
    shared::<device_needs::tm_device_needs>();
    shared::<sharing::tm_buffer_hold>();
    shared::<memory::tm_host_memory>();
    shared::<hybrid::tm_hybrid>();
    shared::<hybrid::tm_chain>();
};
