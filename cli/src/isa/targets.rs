//! GPUs that kernels are compiled for without having them, and how a driver is made to start for one.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A GPU that every kernel must be compiled for.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) vendor: Vendor,
    /// How Mesa calls it.
    pub(super) code: &'static str,
    /// Whether the system's own driver is asked first, and then the newer one in the cache; or the other way round.
    installed_first: bool,
    /// Whether `./dev test` judges it: one for each back end. `./dev test --long` judges all.
    pub(super) often: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Vendor {
    /// RADV starts without hardware if it is told which one to take for there.
    Amd,
    /// ANV asks the kernel, for which Mesa's drm-shim answers.
    Intel,
}

const fn amd(code: &'static str, installed_first: bool) -> Target {
    Target { vendor: Vendor::Amd, code, installed_first, often: true }
}

const fn intel(code: &'static str, often: bool) -> Target {
    Target { vendor: Vendor::Intel, code, installed_first: false, often }
}

/// NAVI21 by both releases of RADV. Of Intel's, DG2 has the back end of Xe and BMG that of Xe2, as the others have one
/// of them.
pub(super) const TARGETS: [Target; 8] = [
    amd("navi21", true),
    amd("navi21", false),
    amd("navi31", false),
    intel("tgl", false),
    intel("dg2", true),
    intel("mtl", false),
    intel("lnl", false),
    intel("bmg", true),
];

/// The devices whose compilers are not asked yet, and why.
pub(super) const NOT_JUDGED: [(&str, &str); 4] = [
    ("AMD GFX12", "Mesa 25.0.7 compiles for RDNA4 only with a drm-shim from newer sources"),
    ("NVIDIA (NVK)", "Debian 12 has no such driver; that of Debian 13 is not used yet"),
    ("Qualcomm (Turnip)", "no package of Debian 12 or 13 has the driver for this processor"),
    ("Apple (Honeykrisp)", "no package of Debian 12 or 13 has the driver for this processor"),
];

impl Vendor {
    pub(super) fn name(self) -> &'static str {
        match self {
            Vendor::Amd => "AMD",
            Vendor::Intel => "Intel",
        }
    }
}

impl Target {
    /// The manifests of the drivers that may know it, the better one first.
    pub(super) fn drivers(self) -> Vec<PathBuf> {
        let name = match self.vendor {
            Vendor::Amd => "radeon_icd",
            Vendor::Intel => "intel_icd",
        };
        let cached = cached(&format!("mesa/{name}.json"));
        match self.installed_first {
            true => installed(name).into_iter().chain(cached).collect(),
            false => cached.into_iter().chain(installed(name)).collect(),
        }
    }

    /// Makes Vulkan have this GPU and no other in a command's process. Environments are read once: each GPU needs a
    /// process of its own.
    pub(super) fn set(self, command: &mut Command, driver: &Path) -> Result<(), String> {
        for name in ["VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES", "TIDEMILL_DEVICE"] {
            command.env_remove(name);
        }
        command.env("NODEVICE_SELECT", "1").env("VK_DRIVER_FILES", driver);
        // What is compiled is asked for with its instructions, which no cache has.
        command.env("MESA_SHADER_CACHE_DISABLE", "true");
        match self.vendor {
            Vendor::Amd => command.env("RADV_FORCE_FAMILY", self.code),
            Vendor::Intel => {
                let shim = cached("drm-shim/intel.so").ok_or("Mesa's drm-shim is not there")?;
                command.env("LD_PRELOAD", shim).env("INTEL_STUB_GPU_PLATFORM", self.code)
            }
        };
        Ok(())
    }
}

/// The manifests of the system's driver of this name.
fn installed(name: &str) -> Vec<PathBuf> {
    let folders = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];
    let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let is_meant = |file: &PathBuf| {
        let file = file.file_name().unwrap_or_default().to_string_lossy();
        file.starts_with(name) && !file.contains("i686")
    };
    files.map(|file| file.path()).filter(is_meant).collect()
}

/// A file that `./dev isa` and `./dev setup --ci` put into the cache, if it is there.
fn cached(file: &str) -> Option<PathBuf> {
    let var = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = || var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|home| home.join(".cache")));
    let cache = var("TIDEMILL_CACHE").or_else(|| caches().map(|caches| caches.join("tidemill")))?;
    Some(cache.join(file)).filter(|file| file.exists())
}
