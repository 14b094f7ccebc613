//! Kernels of the caller's own.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use tidemill::{Dispatch, Kernel, Operand};

use crate::TM_MAX_RANK;
use crate::arguments::{dtype, elements, given, handle, place, shape, string, text, tm_dtype};
use crate::json;
use crate::options::{self, options};
use crate::recording::{tm_recording, tm_value};
use crate::status::{Failure, guard, guarded, tm_status};
use crate::tensor::tm_tensor;

/// A compute shader: SPIR-V that describes itself. Immutable, and independent of any device.
#[derive(Debug)]
pub struct tm_kernel {
    kernel: Kernel,
}

/// The argument of a kernel's binding: an input (tm_input makes it), a tensor that it reads and writes in place
/// (tm_inout makes it), or a new output (tm_output makes it).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_argument {
    /// The input, or the tensor that is updated; all zeros for an output.
    pub input: tm_value,
    /// An output's element type,
    pub dtype: tm_dtype,
    /// its extents,
    pub dims: [usize; TM_MAX_RANK],
    /// and how many of them there are. Of a tensor that is updated 1, of an input 0.
    pub rank: usize,
}

/// The rank of an argument with an input that is updated.
const UPDATED: usize = 1;

/// A value for a 32-bit specialization constant.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_specialization {
    /// The constant's id.
    pub id: u32,
    /// Its bits.
    pub bits: u32,
}

/// One run of a kernel. All zeros but `size` and `kernel` is one workgroup without arguments.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_dispatch_info {
    /// sizeof(tm_dispatch_info).
    pub size: usize,
    /// The kernel.
    pub kernel: *const tm_kernel,
    /// Arguments of its bindings, in their order.
    pub arguments: *const tm_argument,
    /// How many there are.
    pub argument_count: usize,
    /// Push constants, or NULL.
    pub push: *const c_void,
    /// How many bytes they have.
    pub push_bytes: usize,
    /// Values for specialization constants.
    pub specializations: *const tm_specialization,
    /// How many there are.
    pub specialization_count: usize,
    /// Workgroups; 0 counts as 1.
    pub groups: [u32; 3],
    /// Floating-point operations, for profiles; 0 if not known.
    pub flops: u64,
    /// Bytes read and written at the least, for profiles; 0 if not known.
    pub bytes: u64,
}

options!(tm_dispatch_info, least: size_of::<tm_dispatch_info>(), defaults: tm_dispatch_info {
    size: size_of::<tm_dispatch_info>(),
    kernel: std::ptr::null(),
    arguments: std::ptr::null(),
    argument_count: 0,
    push: std::ptr::null(),
    push_bytes: 0,
    specializations: std::ptr::null(),
    specialization_count: 0,
    groups: [0; 3],
    flops: 0,
    bytes: 0,
});

/// An argument that the kernel reads.
#[unsafe(no_mangle)]
pub extern "C" fn tm_input(x: tm_value) -> tm_argument {
    tm_argument { input: x, dtype: 0, dims: [0; TM_MAX_RANK], rank: 0 }
}

/// An argument that the kernel reads and writes in place: an existing tensor. What was recorded before reads the old
/// contents.
#[unsafe(no_mangle)]
pub extern "C" fn tm_inout(tensor: *const tm_tensor) -> tm_argument {
    tm_argument { input: tm_value { tensor, id: 0 }, dtype: 0, dims: [0; TM_MAX_RANK], rank: UPDATED }
}

/// An argument that the kernel writes: a new value. A rank above TM_MAX_RANK is refused by tm_dispatch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_output(dtype: tm_dtype, dims: *const usize, rank: usize) -> tm_argument {
    let none = tm_argument { input: tm_value::NONE, dtype, dims: [0; TM_MAX_RANK], rank };
    guarded(none, || {
        let mut argument = none;
        // SAFETY: contract 1.
        if let Ok(given) = unsafe { elements(dims, rank, "dims") }
            && let Some(to) = argument.dims.get_mut(..rank)
        {
            to.copy_from_slice(given);
        }
        argument
    })
}

/// The arguments from which both functions below make a kernel.
///
/// # Safety
///
/// Contracts 1 and 3.
unsafe fn named_words<'a>(
    name: *const c_char,
    words: *const u32,
    word_count: usize,
) -> Result<(&'a str, &'a [u32]), Failure> {
    // SAFETY: contracts 1 and 3.
    let name = given(unsafe { text(name, "name") }?, "name")?;
    // SAFETY: contract 1.
    let words = unsafe { elements(words, word_count, "words") }?;
    Ok((name, words))
}

/// A kernel from SPIR-V, as it is. `name` is what labels, profiles and errors call it. tm_kernel_from_spirv_guarded
/// asks for less.
///
/// The words must be a module that is valid by the rules of Vulkan 1.3, and for every set of arguments that it will be
/// dispatched with, the shader must access only elements inside its bindings, must not write to one element from
/// several invocations without synchronization, and must end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_kernel_from_spirv(
    name: *const c_char,
    words: *const u32,
    word_count: usize,
    kernel: Option<&mut MaybeUninit<*mut tm_kernel>>,
) -> tm_status {
    guard("tm_kernel_from_spirv", || {
        let out = place(kernel, "kernel")?;
        // SAFETY: contracts 1 and 3.
        let (name, words) = unsafe { named_words(name, words, word_count) }?;
        // SAFETY: what the shader must be is said to the caller, above.
        let kernel = unsafe { Kernel::from_spirv(name, words) }?;
        *out = handle(tm_kernel { kernel });
        Ok(())
    })
}

/// A kernel from SPIR-V that may come from anywhere. The module is checked, and each index into a binding, an array or
/// shared memory is clamped to what is there: whatever the arguments, it reads and writes only what it was given. A
/// module that can't be made safe in this way is refused with the reason (TM_KERNEL). Nothing bounds the time that a
/// shader takes: it must end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_kernel_from_spirv_guarded(
    name: *const c_char,
    words: *const u32,
    word_count: usize,
    kernel: Option<&mut MaybeUninit<*mut tm_kernel>>,
) -> tm_status {
    guard("tm_kernel_from_spirv_guarded", || {
        let out = place(kernel, "kernel")?;
        // SAFETY: contracts 1 and 3.
        let (name, words) = unsafe { named_words(name, words, word_count) }?;
        let kernel = Kernel::from_spirv_guarded(name, words)?;
        *out = handle(tm_kernel { kernel });
        Ok(())
    })
}

/// A macro that is defined in front of the first line.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_define {
    /// Its name.
    pub name: *const c_char,
    /// Its value; NULL for an empty one.
    pub value: *const c_char,
}

/// A compute shader in GLSL. Set `size`, and either `file` or `name` and `text`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_glsl {
    /// sizeof(tm_glsl).
    pub size: usize,
    /// The file, after which the kernel is named; or NULL.
    pub file: *const c_char,
    /// The name of a text in labels, profiles and messages.
    pub name: *const c_char,
    /// The text.
    pub text: *const c_char,
    /// Macros.
    pub defines: *const tm_define,
    /// How many there are.
    pub define_count: usize,
    /// Folders where included files are looked for, after the folder of the including file.
    pub include_dirs: *const *const c_char,
    /// How many there are.
    pub include_dir_count: usize,
}

options!(tm_glsl, least: size_of::<tm_glsl>(), defaults: tm_glsl {
    size: size_of::<tm_glsl>(),
    file: std::ptr::null(),
    name: std::ptr::null(),
    text: std::ptr::null(),
    defines: std::ptr::null(),
    define_count: 0,
    include_dirs: std::ptr::null(),
    include_dir_count: 0,
});

tidemill::if_shaderc! {{
    impl tm_glsl {
        /// # Safety
        ///
        /// Contracts 1 and 3.
        /// If it is not guarded, what stands at tm_kernel_from_spirv.
        unsafe fn compile(&self, guarded: bool) -> Result<Kernel, Failure> {
            // SAFETY: contracts 1 and 3.
            let file = unsafe { text(self.file, "file") }?;
            // SAFETY: as above.
            let name = unsafe { text(self.name, "name") }?;
            // SAFETY: as above.
            let source = unsafe { text(self.text, "text") }?;
            let mut glsl = match (file, source) {
                (Some(file), None) => tidemill::Glsl::file(file),
                (None, Some(source)) => tidemill::Glsl::source(given(name, "name")?, source),
                (None, None) => return Err(Failure::argument("file and text are both NULL".to_owned())),
                (Some(_), Some(_)) => {
                    return Err(Failure::argument("file and text are both set".to_owned()));
                }
            };
            // SAFETY: contract 1.
            for define in unsafe { elements(self.defines, self.define_count, "defines") }? {
                // SAFETY: contracts 1 and 3.
                let name = given(unsafe { text(define.name, "the name of a define") }?, "the name of a define")?;
                // SAFETY: as above.
                let value = unsafe { text(define.value, "the value of a define") }?;
                glsl = glsl.define(name, value.unwrap_or(""));
            }
            // SAFETY: contract 1.
            for folder in unsafe { elements(self.include_dirs, self.include_dir_count, "include_dirs") }? {
                // SAFETY: contracts 1 and 3.
                let folder = unsafe { text(*folder, "a folder of include_dirs") }?;
                glsl = glsl.include_dir(given(folder, "a folder of include_dirs")?);
            }
            if guarded {
                return Ok(glsl.compile()?);
            }
            // SAFETY: what the caller vouches for.
            Ok(unsafe { glsl.compile_unguarded() }?)
        }
    }

    const HAS_GLSL: bool = true;
} {
    impl tm_glsl {
        /// # Safety
        ///
        /// Contracts 1 and 3.
        unsafe fn compile(&self, _guarded: bool) -> Result<Kernel, Failure> {
            let message = "this library was built without shaderc: build it with --features shaderc, or compile to \
                           SPIR-V and call tm_kernel_from_spirv_guarded";
            Err(Failure::new(tm_status::TM_KERNEL, message.to_owned()))
        }
    }

    const HAS_GLSL: bool = false;
}}

/// Whether the library was built with a compiler for GLSL (the feature `shaderc`).
#[unsafe(no_mangle)]
pub extern "C" fn tm_has_glsl() -> bool {
    HAS_GLSL
}

/// A kernel from GLSL. As tm_kernel_from_spirv_guarded, it reads and writes only what it was given. TM_KERNEL has the
/// mistakes, each with file and line, or says that the library was built without a compiler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_kernel_from_glsl(
    glsl: *const tm_glsl,
    kernel: Option<&mut MaybeUninit<*mut tm_kernel>>,
) -> tm_status {
    guard("tm_kernel_from_glsl", || {
        let out = place(kernel, "kernel")?;
        // SAFETY: contract 1.
        let glsl = unsafe { options::read(glsl, "glsl") }?;
        // SAFETY: contracts 1 and 3.
        *out = handle(tm_kernel { kernel: unsafe { glsl.compile(true) }? });
        Ok(())
    })
}

/// Records one run of a kernel. `outputs` gets a value for each output among the arguments, in their order; it has room
/// for `output_count`, which must be as many. An output that the shader reads, too, is all zeros before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_dispatch(
    recording: Option<&tm_recording>,
    info: *const tm_dispatch_info,
    outputs: *mut tm_value,
    output_count: usize,
) -> tm_status {
    guard("tm_dispatch", || {
        let recording = given(recording, "recording")?;
        // SAFETY: contract 1.
        let info = unsafe { options::read(info, "info") }?;
        // SAFETY: contract 1.
        let kernel = given(unsafe { info.kernel.as_ref() }, "kernel")?;
        // SAFETY: contract 1.
        let arguments = unsafe { elements(info.arguments, info.argument_count, "arguments") }?;
        let expected = arguments.iter().filter(|argument| argument.input.is_none()).count();
        if expected != output_count || (outputs.is_null() && expected > 0) {
            let message = format!("{expected} outputs among the arguments, and room for {output_count}");
            return Err(Failure::argument(message));
        }
        // SAFETY: contract 1.
        let push = unsafe { elements(info.push.cast::<u8>(), info.push_bytes, "push") }?;
        // SAFETY: contract 1.
        let constants =
            unsafe { elements(info.specializations, info.specialization_count, "specializations") }?;
        let made = recording.record(|r, scope| {
            let mut run = Dispatch::new(&kernel.kernel).push(push).groups(info.groups.map(|n| n.max(1)));
            for (i, argument) in arguments.iter().enumerate() {
                run = if argument.input.is_none() {
                    // SAFETY: the extents stand in the argument itself; more of them than fit are refused unread.
                    let shape = unsafe { shape("dispatch", argument.dims.as_ptr(), argument.rank) }?;
                    run.output(shape, dtype(argument.dtype)?)
                } else {
                    // SAFETY: contract 1.
                    let operand = unsafe { scope.operand(argument.input, &format!("arguments[{i}]")) }?;
                    match operand {
                        Operand::Tensor(tensor) if argument.rank == UPDATED => run.inout(tensor),
                        operand => run.input(operand),
                    }
                };
            }
            for constant in constants {
                run = run.specialize(constant.id, constant.bits);
            }
            if info.flops > 0 {
                run = run.flops(info.flops);
            }
            if info.bytes > 0 {
                run = run.bytes(info.bytes);
            }
            Ok(r.dispatch(run)?)
        })?;
        for (i, value) in made.into_iter().enumerate().take(output_count) {
            // SAFETY: contract 1; `i` is below `output_count`.
            let place = unsafe { outputs.add(i) };
            // SAFETY: as above.
            unsafe { place.write(value) };
        }
        Ok(())
    })
}

/// As tm_kernel_from_glsl, but as it is: what must be true of the shader stands at tm_kernel_from_spirv.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_kernel_from_glsl_unguarded(
    glsl: *const tm_glsl,
    kernel: Option<&mut MaybeUninit<*mut tm_kernel>>,
) -> tm_status {
    guard("tm_kernel_from_glsl_unguarded", || {
        let out = place(kernel, "kernel")?;
        // SAFETY: contract 1.
        let glsl = unsafe { options::read(glsl, "glsl") }?;
        // SAFETY: contracts 1 and 3; what the shader must be is said to the caller.
        *out = handle(tm_kernel { kernel: unsafe { glsl.compile(false) }? });
        Ok(())
    })
}

/// The reflection of the kernel, as JSON: name, bindings, bytes of push constants, local size, specialization
/// constants.
#[unsafe(no_mangle)]
pub extern "C" fn tm_kernel_json(
    kernel: Option<&tm_kernel>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
) -> tm_status {
    guard("tm_kernel_json", || {
        let out = place(json, "json")?;
        *out = string(json::kernel(&given(kernel, "kernel")?.kernel).to_string());
        Ok(())
    })
}

/// Frees the handle. Recordings and plans that use the kernel keep it. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_kernel_free(kernel: Option<Box<tm_kernel>>) {
    guarded((), || drop(kernel));
}
