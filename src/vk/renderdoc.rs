//! RenderDoc's in-application interface, by hand: a struct of function pointers from one exported function.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk::Handle as _;
use parking_lot::{Mutex, MutexGuard};

use super::instance::Instance;
use crate::error::{ProfileError, Result};

#[cfg(windows)]
const LIBRARIES: &[&str] = &["renderdoc.dll", r"C:\Program Files\RenderDoc\renderdoc.dll"];
#[cfg(not(windows))]
const LIBRARIES: &[&str] = &[
    "librenderdoc.so",
    "/usr/lib/renderdoc/librenderdoc.so",
    "/usr/lib/x86_64-linux-gnu/renderdoc/librenderdoc.so",
    "/usr/lib/aarch64-linux-gnu/renderdoc/librenderdoc.so",
];

/// Version 1.1.2, which every release since 2018 offers.
const VERSION: c_int = 1_01_02;

/// The functions of that version, in its order; those in between are not called.
#[repr(C)]
struct Api {
    unused: [*const c_void; 11],
    set_path_template: unsafe extern "C" fn(*const c_char),
    get_path_template: *const c_void,
    get_capture_count: unsafe extern "C" fn() -> u32,
    get_capture: unsafe extern "C" fn(u32, *mut c_char, *mut u32, *mut u64) -> u32,
    more: [*const c_void; 4],
    start: unsafe extern "C" fn(*mut c_void, *mut c_void),
    is_capturing: *const c_void,
    end: unsafe extern "C" fn(*mut c_void, *mut c_void) -> u32,
}

/// RenderDoc in this process.
#[derive(Clone, Copy)]
pub(crate) struct RenderDoc(&'static Api);

// SAFETY: a table of functions that may be called from any thread; captures take turns by `TURN`.
unsafe impl Send for RenderDoc {}
// SAFETY: as above.
unsafe impl Sync for RenderDoc {}

impl fmt::Debug for RenderDoc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RenderDoc")
    }
}

static TURN: Mutex<()> = Mutex::new(());
static LOADED: AtomicBool = AtomicBool::new(false);

/// Whether RenderDoc is in this process: loaded by us, or by the Vulkan loader as a layer.
pub(crate) fn is_loaded() -> bool {
    LOADED.load(Ordering::Acquire) || already_loaded().is_some()
}

/// The library if the process has it already, as when RenderDoc started it.
#[cfg(unix)]
fn already_loaded() -> Option<libloading::Library> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    /// Only what is loaded: the same on Linux and the BSDs that matter here.
    const RTLD_NOLOAD: c_int = if cfg!(target_vendor = "apple") { 0x10 } else { 0x4 };
    // SAFETY: nothing is loaded, so nothing is initialised.
    let found = unsafe { Library::open(Some(LIBRARIES[0]), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) };
    found.ok().map(Into::into)
}

#[cfg(windows)]
fn already_loaded() -> Option<libloading::Library> {
    libloading::os::windows::Library::open_already_loaded(LIBRARIES[0]).ok().map(Into::into)
}

fn load() -> std::result::Result<libloading::Library, String> {
    for name in LIBRARIES {
        // SAFETY: RenderDoc's initialisation hooks Vulkan, which is what is wanted; no instance of ours is there yet.
        if let Ok(library) = unsafe { libloading::Library::new(name) } {
            return Ok(library);
        }
    }
    Err(format!(
        "RenderDoc is not installed: looked for {} on the library path and in the usual folders; Debian/Ubuntu: \
         `renderdoc librenderdoc`, elsewhere: https://renderdoc.org",
        LIBRARIES[0]
    ))
}

impl RenderDoc {
    /// RenderDoc, loaded now if that is wanted (by the caller or by `TIDEMILL_RENDERDOC`), or what is missing. To be
    /// called before the instance is made: RenderDoc sees only what comes after it.
    pub(crate) fn find(wanted: bool) -> std::result::Result<RenderDoc, String> {
        let asked =
            std::env::var_os("TIDEMILL_RENDERDOC").is_some_and(|value| value != "0" && !value.is_empty());
        let library = match already_loaded() {
            Some(library) => library,
            None if wanted || asked => load()?,
            None => {
                return Err("RenderDoc was not asked for when the accelerator was made: use \
                            Config::renderdoc(true), set TIDEMILL_RENDERDOC=1, or start the program from RenderDoc"
                    .to_owned());
            }
        };
        type GetApi = unsafe extern "C" fn(c_int, *mut *mut c_void) -> c_int;
        // SAFETY: the function of that name has this type.
        let get = unsafe { library.get::<GetApi>(b"RENDERDOC_GetAPI\0") };
        let get = get.map_err(|e| format!("the RenderDoc that is installed has no RENDERDOC_GetAPI: {e}"))?;
        let mut api: *mut c_void = ptr::null_mut();
        // SAFETY: contract 6.
        let got = unsafe { get(VERSION, &mut api) };
        if got != 1 || api.is_null() {
            return Err("the RenderDoc that is installed does not offer its interface 1.1.2".to_owned());
        }
        LOADED.store(true, Ordering::Release);
        // Hooks can't be taken out again: the library stays for good.
        std::mem::forget(library);
        // SAFETY: RenderDoc gave the table of the version asked for, which lives as long as the library.
        Ok(RenderDoc(unsafe { &*api.cast::<Api>() }))
    }

    /// Begins a capture of everything that the instance's devices do, to be written to `name` with `.rdc` behind it.
    pub(crate) fn begin(&self, instance: &Instance, name: &str) -> Result<Capture<'_>> {
        let failed = |detail: String| ProfileError::CaptureFailed { detail };
        let name = name.strip_suffix(".rdc").unwrap_or(name);
        let target = PathBuf::from(format!("{name}.rdc"));
        if let Some(folder) = target.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|e| failed(format!("{}: {e}", folder.display())))?;
        }
        let template = CString::new(name).map_err(|e| failed(e.to_string()))?;
        // Captures are the whole process's: another accelerator's closure may be the caller.
        let turn = TURN.try_lock().ok_or(ProfileError::Capturing { call: "capture" })?;
        // SAFETY: a string that lives to the end of the call.
        unsafe { (self.0.set_path_template)(template.as_ptr()) };
        // SAFETY: no preconditions.
        let earlier = unsafe { (self.0.get_capture_count)() };
        let handle = instance.raw.handle().as_raw() as *const *mut c_void;
        // SAFETY: contract 1; the first word of a dispatchable handle is the loader's table, which is how RenderDoc
        // knows an instance.
        let device = unsafe { *handle };
        // SAFETY: the instance lives; no window is asked for.
        unsafe { (self.0.start)(device, ptr::null_mut()) };
        Ok(Capture { renderdoc: self, device, earlier, target, ended: false, _turn: turn })
    }

    fn path_of(&self, index: u32) -> Option<PathBuf> {
        let mut length = 0;
        // SAFETY: only the length is asked for.
        let there = unsafe { (self.0.get_capture)(index, ptr::null_mut(), &mut length, ptr::null_mut()) };
        if there != 1 {
            return None;
        }
        let mut text = vec![0u8; length as usize + 1];
        // SAFETY: there is room for the length that RenderDoc gave, and a NUL more.
        let there =
            unsafe { (self.0.get_capture)(index, text.as_mut_ptr().cast(), &mut length, ptr::null_mut()) };
        let text = CStr::from_bytes_until_nul(&text).ok()?;
        (there == 1).then(|| PathBuf::from(text.to_string_lossy().into_owned()))
    }
}

/// A capture that is being made.
pub(crate) struct Capture<'a> {
    renderdoc: &'a RenderDoc,
    device: *mut c_void,
    earlier: u32,
    target: PathBuf,
    ended: bool,
    _turn: MutexGuard<'static, ()>,
}

impl Capture<'_> {
    /// Ends it, and gives the file.
    pub(crate) fn end(mut self) -> Result<PathBuf> {
        let failed = |detail: &str| ProfileError::CaptureFailed { detail: detail.to_owned() };
        let made = self.stop()?;
        rename(&made, &self.target).map_err(|e| failed(&format!("{}: {e}", self.target.display())))?;
        Ok(self.target.clone())
    }

    /// Ends it, and gives the file under RenderDoc's own name.
    fn stop(&mut self) -> Result<PathBuf> {
        let failed = |detail: &str| ProfileError::CaptureFailed { detail: detail.to_owned() };
        self.ended = true;
        // SAFETY: begun with the same arguments.
        if unsafe { (self.renderdoc.0.end)(self.device, ptr::null_mut()) } != 1 {
            return Err(failed("it says that nothing was captured; is its Vulkan layer registered?").into());
        }
        Ok(self.renderdoc.path_of(self.earlier).ok_or_else(|| failed("it does not name the file"))?)
    }
}

impl Drop for Capture<'_> {
    /// What was to be captured has failed: the file is not wanted.
    fn drop(&mut self) {
        if !self.ended
            && let Ok(file) = self.stop()
        {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// RenderDoc puts a frame's number into the name.
fn rename(from: &Path, to: &Path) -> std::io::Result<()> {
    if from == to { Ok(()) } else { std::fs::rename(from, to) }
}
