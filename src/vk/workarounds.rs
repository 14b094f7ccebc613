//! Workarounds for drivers beyond the specification: one struct, filled once from the device, its driver and the
//! driver's version.
//!
//! A flag says what to do, not for whom. Its comment names the drivers and versions, the reason, and the bench or test
//! that shows it. Nothing else asks whether a device is a software driver, apart from where devices are described and
//! chosen.

use ash::vk;

use super::kind::DeviceKind;

/// Workarounds on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Workarounds {
    /// Kernels read through storage texel buffers by default.
    ///
    /// Software drivers. lavapipe loads from storage buffers lane by lane: 66 ns for 8 floats with 22.3.6 and 12 with
    /// 25.0.7, where texel loads take 1.8 and 2.5. `bench elementwise`, `tidemill tune`.
    pub(crate) texel_loads: bool,
    /// Subgroups store through one uniform address by default (`glsl/lib/uniform_store.glsl`).
    ///
    /// lavapipe 22.3: its compiler proves the address uniform and stores whole vectors, 2.4 times as fast in `bench
    /// elementwise`. 25.0.7 and 26.1.6 have no such path, and take 2.4 times as long with it. Vulkan promises nothing
    /// here, so only versions that were measured and whose results were verified are listed.
    pub(crate) uniform_stores: bool,
    /// A pipeline is warmed by an empty dispatch.
    ///
    /// Software drivers, lavapipe of all versions: they compile at the first dispatch, not when the pipeline is made.
    /// SwiftShader does not. `tests/exit.rs` leaves a process in the middle of it.
    pub(crate) compiles_at_dispatch: bool,
    /// No two threads make pipelines for one caller.
    ///
    /// Qualcomm's own driver: emulators that compile on several threads report crashes up to version 512.615, and it
    /// does not tell its version in Vulkan's form. Nothing but time is lost. `tests/faults/pipelines.rs` counts the
    /// calls that overlap.
    pub(crate) one_pipeline_at_a_time: bool,
    /// Timestamps are read late, some submissions at a time.
    ///
    /// Software drivers: lavapipe may empty its queue before it answers. Asked between two submissions of many, it
    /// would keep the device waiting for the host.
    pub(crate) queries_drain_queue: bool,
    /// No buffer has a power of two for its size.
    ///
    /// lavapipe: 22.3 compiles a kernel anew for each combination of bound texel buffers whose sizes are powers of two
    /// and that are not.
    pub(crate) odd_buffer_sizes: bool,
    /// The device's speed is that of the host's cores: files of measurements name their number, and tuning takes small
    /// problems.
    ///
    /// Software drivers: their name does not tell how many cores they run on.
    pub(crate) runs_on_host_cores: bool,
}

impl Workarounds {
    /// For a kind of device, with what its driver says of itself.
    pub(crate) fn new(kind: DeviceKind, driver: vk::DriverId, info: &str) -> Workarounds {
        let software = kind == DeviceKind::Cpu;
        let lavapipe = driver == vk::DriverId::MESA_LLVMPIPE;
        Workarounds {
            texel_loads: software,
            uniform_stores: lavapipe && mesa_release(info) == Some([22, 3]),
            compiles_at_dispatch: software && driver != vk::DriverId::GOOGLE_SWIFTSHADER,
            one_pipeline_at_a_time: driver == vk::DriverId::QUALCOMM_PROPRIETARY,
            queries_drain_queue: software,
            odd_buffer_sizes: lavapipe,
            runs_on_host_cores: software,
        }
    }
}

/// Major and minor number of Mesa, which stand in the driver's text: `Mesa 22.3.6 (LLVM 15.0.6)`.
fn mesa_release(info: &str) -> Option<[u32; 2]> {
    let version = info.strip_prefix("Mesa ")?.split([' ', '-']).next()?;
    let mut numbers = version.split('.').map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_of_mesa_is_read() {
        for (info, release) in [
            ("Mesa 22.3.6 (LLVM 15.0.6)", Some([22, 3])),
            ("Mesa 25.0.7-2~bpo12+1 (LLVM 15.0.6)", Some([25, 0])),
            ("Mesa 26.2.0-devel (git-1234567890)", Some([26, 2])),
            ("Mesa 22", None),
            ("Mesa twenty.3", None),
            ("", None),
            ("SwiftShader 5.0.0", None),
        ] {
            assert_eq!(mesa_release(info), release, "{info}");
        }
    }

    #[test]
    fn only_the_release_that_was_measured_stores_through_one_address() {
        let of = |kind, driver, info| Workarounds::new(kind, driver, info);
        let lavapipe = vk::DriverId::MESA_LLVMPIPE;
        assert!(of(DeviceKind::Cpu, lavapipe, "Mesa 22.3.6 (LLVM 15.0.6)").uniform_stores);
        for info in ["Mesa 22.2.0", "Mesa 22.4.0", "Mesa 25.0.7-2 (LLVM 19.1.7)", "Mesa 26.1.6", ""] {
            let flags = of(DeviceKind::Cpu, lavapipe, info);
            assert!(!flags.uniform_stores && flags.texel_loads && flags.odd_buffer_sizes, "{info}");
        }
        let swiftshader = of(DeviceKind::Cpu, vk::DriverId::GOOGLE_SWIFTSHADER, "Mesa 22.3.6");
        assert!(!swiftshader.uniform_stores && !swiftshader.odd_buffer_sizes && swiftshader.texel_loads);
        assert!(!swiftshader.compiles_at_dispatch);
    }

    #[test]
    fn a_gpu_needs_none() {
        for driver in [vk::DriverId::MESA_RADV, vk::DriverId::NVIDIA_PROPRIETARY, vk::DriverId::MOLTENVK] {
            for kind in [DeviceKind::Discrete, DeviceKind::Integrated, DeviceKind::Virtual] {
                assert_eq!(Workarounds::new(kind, driver, "Mesa 22.3.6"), Workarounds::default());
            }
        }
    }
}
