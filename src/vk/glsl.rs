//! Users' GLSL, compiled at run time.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

mod files;
mod limits;
mod preprocess;

use shaderc::{CompileOptions, Compiler, EnvVersion, OptimizationLevel, ShaderKind, SpirvVersion, TargetEnv};

use super::kernel::Kernel;
use crate::error::{GlslError, GlslMistake, Result};
use crate::spirv::guard;
use preprocess::{Surroundings, Wanted};

/// Deeper than people nest, and not so deep that a file that includes itself takes long to be found.
const INCLUDE_DEPTH: usize = 32;

/// A compute shader in GLSL, to be made a [`Kernel`] while the program runs. Needs the feature `shaderc`.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::{DType, Dispatch, Glsl};
/// let text = "#version 460
///     layout(local_size_x = 64) in;
///     layout(binding = 0) readonly buffer In { float x[]; };
///     layout(binding = 1) writeonly buffer Out { float y[]; };
///     void main() {
///         uint i = gl_GlobalInvocationID.x;
///         if (i < y.length()) y[i] = FACTOR * x[i];
///     }";
/// let kernel = Glsl::source("scale", text).define("FACTOR", 3.0).compile()?;
///
/// let gpu = tidemill::Accelerator::global()?;
/// let x = gpu.upload(&[1.0f32, 2.0, 3.0], [3])?;
/// let y = gpu.run(|r| r.dispatch(Dispatch::new(&kernel).input(&x).output([3], DType::F32)))?;
/// assert_eq!(y[0].read::<f32>()?, [3.0, 6.0, 9.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Glsl {
    origin: Origin,
    defines: Vec<(String, String)>,
    include_dirs: Vec<PathBuf>,
}

#[derive(Clone, Debug)]
enum Origin {
    File(PathBuf),
    Source { name: String, text: String },
}

impl Glsl {
    /// A file, read by each `compile` anew. The kernel is named after it, without its ending.
    pub fn file(path: impl Into<PathBuf>) -> Glsl {
        Glsl { origin: Origin::File(path.into()), defines: Vec::new(), include_dirs: Vec::new() }
    }

    /// A text. `name` is what the kernel and the messages call it.
    pub fn source(name: impl Into<String>, text: impl Into<String>) -> Glsl {
        let origin = Origin::Source { name: name.into(), text: text.into() };
        Glsl { origin, defines: Vec::new(), include_dirs: Vec::new() }
    }

    /// Like `#define name value` in front of the first line.
    pub fn define(mut self, name: impl Into<String>, value: impl Display) -> Glsl {
        self.defines.push((name.into(), value.to_string()));
        self
    }

    /// Looks for `#include`d files here, too: folders in the order given, after the folder of the including file.
    /// `#include <x>` looks only here. Only files in these folders, and in the folder of the file that is compiled, are
    /// included: absolute paths, `..` and links that lead out of them are mistakes.
    pub fn include_dir(mut self, path: impl Into<PathBuf>) -> Glsl {
        self.include_dirs.push(path.into());
        self
    }

    /// Compiles it.
    ///
    /// This is safe because no access leaves what it accesses: indices that the compiler does not know to be inside
    /// are clamped to the length of what is bound, of an array or of a vector, in the SPIR-V itself. An index out of
    /// bounds is a wrong element, and a kernel without mistakes computes the same as without that. Outputs are zero
    /// before such a kernel runs, and tensors of no elements are refused as its arguments. What is left to a kernel's
    /// mistakes are wrong numbers and [`Error::DeviceLost`](crate::Error::DeviceLost), for one that never ends.
    ///
    /// Macros are expanded, conditions decided and files included before the compiler gets the text.
    ///
    /// It is compiled on a thread of its own, whose stack holds whatever is within these limits: 1 MiB of source with
    /// all that it includes, before and after macros are expanded; 16 MiB that macros make on the way; 256 levels of
    /// parentheses, brackets and braces; 65,536 words and signs in a statement. Drivers put functions where they are
    /// called and copy arrays element by element: 131,072 instructions in all, counted so, are the most.
    ///
    /// # Errors
    ///
    /// [`Error::Glsl`](crate::Error::Glsl): the file can't be read, or is not a regular file; mistakes, each with file
    /// and line; something that can't be kept inside its bindings: a binding declared twice, an array in a buffer whose
    /// length is a specialization constant, more than 64 KiB of local variables, `GL_EXT_spirv_intrinsics`; more than
    /// the limits above. [`Error::Spirv`](crate::Error::Spirv) as for SPIR-V.
    pub fn compile(&self) -> Result<Kernel> {
        on_a_deep_stack(|| {
            let (name, words) = self.words(true)?;
            let (guarded, shared) =
                guard::guard(&words).map_err(|why| GlslError::Unguardable { kernel: name.clone(), why })?;
            Kernel::guarded(name, guarded, shared)
        })
    }

    /// Compiles it as it is: nothing is clamped, nothing is set to zero.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::from_spirv`], but that shaderc answers for the module's validity.
    ///
    /// # Errors
    ///
    /// Those of [`compile`](Glsl::compile).
    pub unsafe fn compile_unguarded(&self) -> Result<Kernel> {
        on_a_deep_stack(|| {
            let (name, words) = self.words(false)?;
            // SAFETY: what the caller vouches for.
            unsafe { Kernel::from_spirv(&name, &words) }
        })
    }

    /// The kernel's name and its SPIR-V.
    fn words(&self, check_intrinsics: bool) -> Result<(String, Vec<u32>)> {
        let (name, file, text) = match &self.origin {
            Origin::Source { name, text } => (name.clone(), name.clone(), text.clone()),
            Origin::File(path) => {
                let text = files::read(path)?;
                let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                (stem, path.to_string_lossy().into_owned(), text)
            }
        };
        self.check_texts(&file, &text)?;
        let failed = |error: shaderc::Error| GlslError::Compiler(error.to_string());
        let compiler = Compiler::new().map_err(failed)?;
        let options = options().map_err(failed)?;
        let mut files = Files {
            glsl: self,
            top: &file,
            roots: self.roots(),
            bytes: limits::add_bytes(&file, 0, &text)?,
            compiler: &compiler,
            options: &options,
        };
        let text = preprocess::preprocess(&file, &text, &self.defines, &mut files)?;
        limits::check_nesting(&file, &text)?;
        let compiled = compiler.compile_into_spirv(&text, ShaderKind::Compute, &file, "main", Some(&options));
        let words = match compiled {
            Ok(artifact) => artifact.as_binary().to_vec(),
            Err(shaderc::Error::CompilationError(_, log)) => {
                return Err(GlslError::Mistakes { mistakes: mistakes(&file, &log) }.into());
            }
            Err(error) => return Err(failed(error).into()),
        };
        // These write any instruction, valid or not. Macros are expanded, so that none can hide them.
        if check_intrinsics {
            let mut names = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            if names.any(|name| name.starts_with("spirv_")) {
                let why = "uses GL_EXT_spirv_intrinsics".to_owned();
                return Err(GlslError::Unguardable { kernel: name, why }.into());
            }
        }
        Ok((name, words))
    }

    /// shaderc's binding panics where a text has a NUL.
    fn check_texts(&self, file: &str, text: &str) -> Result<()> {
        let defines = self.defines.iter().map(|(name, value)| (format!("define {name:?}"), value.as_str()));
        let texts = [("the name".to_owned(), file), (file.to_owned(), text)].into_iter().chain(defines);
        for (what, text) in texts {
            if text.contains('\0') {
                return Err(GlslError::Nul { what }.into());
            }
        }
        for (name, _) in &self.defines {
            let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if !name.chars().all(part) || name.chars().next().is_none_or(|c| c.is_ascii_digit()) {
                return Err(GlslError::Define { name: name.clone() }.into());
            }
        }
        Ok(())
    }

    /// The folders that files may be included from.
    fn roots(&self) -> Vec<PathBuf> {
        let own = match &self.origin {
            Origin::File(path) => path.parent(),
            Origin::Source { .. } => None,
        };
        let folders = own.into_iter().chain(self.include_dirs.iter().map(PathBuf::as_path));
        folders.filter_map(|folder| fs::canonicalize(files::or_here(folder)).ok()).collect()
    }
}

fn options() -> std::result::Result<CompileOptions<'static>, shaderc::Error> {
    let mut options = CompileOptions::new()?;
    options.set_target_env(TargetEnv::Vulkan, EnvVersion::Vulkan1_3 as u32);
    options.set_target_spirv(SpirvVersion::V1_6);
    // As for the engine's own: drivers optimise by themselves, after specialization.
    options.set_optimization_level(OptimizationLevel::Zero);
    options.set_suppress_warnings();
    Ok(options)
}

/// The includes of a source, and its compiler.
struct Files<'a> {
    glsl: &'a Glsl,
    /// The file that is compiled.
    top: &'a str,
    roots: Vec<PathBuf>,
    /// What was read so far.
    bytes: usize,
    compiler: &'a Compiler,
    options: &'a CompileOptions<'a>,
}

impl Surroundings for Files<'_> {
    fn include(
        &mut self,
        wanted: &Wanted<'_>,
    ) -> std::result::Result<std::result::Result<(String, String), String>, GlslError> {
        if wanted.depth > INCLUDE_DEPTH {
            return Ok(Err(format!("files are included more than {INCLUDE_DEPTH} deep")));
        }
        // A text has no folder.
        let has_folder = matches!(self.glsl.origin, Origin::File(_)) || wanted.including != self.top;
        let beside = (has_folder && wanted.beside)
            .then(|| Path::new(wanted.including).parent().unwrap_or(Path::new("")));
        let folders = beside.into_iter().chain(self.glsl.include_dirs.iter().map(PathBuf::as_path));
        let path = match files::find(wanted.name, &folders.collect::<Vec<_>>(), &self.roots) {
            Ok(path) => path,
            Err(why) => return Ok(Err(why)),
        };
        let name = path.to_string_lossy().into_owned();
        let text = match files::read(&path) {
            Ok(text) => text,
            Err(error @ GlslError::TooLarge { .. }) => return Err(error),
            Err(error) => return Ok(Err(error.to_string())),
        };
        if text.contains('\0') {
            return Err(GlslError::Nul { what: name });
        }
        self.bytes = limits::add_bytes(&name, self.bytes, &text)?;
        Ok(Ok((name, text)))
    }

    fn predefined(&mut self, version: &str, name: &str) -> Option<String> {
        // `__VERSION__` is none for `#ifdef`, so the question is what becomes of the name.
        let text = format!("#version {version}\nbehind_this {name}\n");
        let text = if version.is_empty() { text.split_once('\n')?.1 } else { &text };
        let told = self.compiler.preprocess(text, "predefined", "main", Some(self.options)).ok()?.as_text();
        let value = told.split_once("behind_this")?.1.trim();
        (value != name).then(|| value.to_owned())
    }
}

/// Runs the compiler on a thread of its own: it calls itself as deep as a source is nested, and the caller's stack may
/// be small.
fn on_a_deep_stack<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let failed = |detail: String| GlslError::Compiler(detail);
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("tidemill glsl".to_owned()).stack_size(limits::STACK_BYTES);
        let thread =
            thread.spawn_scoped(scope, work).map_err(|e| failed(format!("no thread to compile on: {e}")))?;
        thread.join().unwrap_or_else(|_| Err(failed("the compiler panicked".to_owned()).into()))
    })
}

/// The compiler's lines, taken apart: `file:line: error: text`.
fn mistakes(file: &str, log: &str) -> Vec<GlslMistake> {
    log.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let (place, text) = line.split_once(": error: ").unwrap_or((file, line));
            let numbered = place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
            let (file, line) = numbered.map_or((place, None), |(file, line)| (file, Some(line)));
            GlslMistake { file: file.to_owned(), line, text: text.trim().to_owned() }
        })
        .collect()
}
