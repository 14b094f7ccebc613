//! The device's clock, read by the host.

use std::ffi::CStr;
use std::fmt;
use std::time::Instant;

use ash::prelude::VkResult;
use ash::vk;

use super::check;
use super::instance::Instance;
use super::loader;
use super::physical::DeviceInfo;
use crate::error::Result;

/// `VK_EXT_calibrated_timestamps`, or the KHR one that it became: the same under two names.
pub(crate) enum Calibration {
    Khr(ash::khr::calibrated_timestamps::Device),
    Ext(ash::ext::calibrated_timestamps::Device),
}

impl fmt::Debug for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calibration")
    }
}

/// The device's clock and the host's at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockSample {
    pub(crate) ticks: u64,
    pub(crate) host: Instant,
    /// The device's clock was read within this many nanoseconds of `host`.
    pub(crate) uncertainty_ns: u64,
}

/// Readings of which the tightest is taken.
const READINGS: usize = 4;

/// The extension, if it can read the clock of the timestamps.
pub(super) fn readable(instance: &Instance, info: &DeviceInfo) -> Result<Option<&'static CStr>> {
    let Some(name) = info.calibration else { return Ok(None) };
    let (entry, raw) = (instance.entry(), &instance.raw);
    let domains = loader::searching(|| {
        if name == ash::khr::calibrated_timestamps::NAME {
            let khr = ash::khr::calibrated_timestamps::Instance::new(entry, raw);
            // SAFETY: contract 1.
            unsafe { khr.get_physical_device_calibrateable_time_domains(info.raw) }
        } else {
            let ext = ash::ext::calibrated_timestamps::Instance::new(entry, raw);
            // SAFETY: contract 1.
            unsafe { ext.get_physical_device_calibrateable_time_domains(info.raw) }
        }
    });
    let domains = check("vkGetPhysicalDeviceCalibrateableTimeDomains", domains)?;
    Ok(domains.contains(&vk::TimeDomainKHR::DEVICE).then_some(name))
}

impl Calibration {
    /// `None` unless the clock is [`readable`].
    pub(super) fn new(
        instance: &Instance,
        device: &ash::Device,
        name: Option<&'static CStr>,
    ) -> Option<Calibration> {
        let raw = &instance.raw;
        Some(if name? == ash::khr::calibrated_timestamps::NAME {
            Calibration::Khr(ash::khr::calibrated_timestamps::Device::new(raw, device))
        } else {
            Calibration::Ext(ash::ext::calibrated_timestamps::Device::new(raw, device))
        })
    }

    fn ticks(&self) -> VkResult<u64> {
        let info = [vk::CalibratedTimestampInfoKHR::default().time_domain(vk::TimeDomainKHR::DEVICE)];
        let read = match self {
            // SAFETY: contracts 1, 6 and 7.
            Calibration::Khr(khr) => unsafe { khr.get_calibrated_timestamps(&info) },
            // SAFETY: contracts 1, 6 and 7.
            Calibration::Ext(ext) => unsafe { ext.get_calibrated_timestamps(&info) },
        };
        read.map(|(ticks, _)| ticks[0])
    }

    /// Both clocks at one moment.
    ///
    /// Only the device's clock is asked for, and the host's is read before and after: so the pair is in terms of
    /// `Instant`, whatever clock that is on this platform, and its error is known.
    pub(super) fn sample(&self) -> Result<ClockSample> {
        let mut best = self.read_both()?;
        for _ in 1..READINGS {
            let read = self.read_both()?;
            if read.uncertainty_ns < best.uncertainty_ns {
                best = read;
            }
        }
        Ok(best)
    }

    fn read_both(&self) -> Result<ClockSample> {
        let before = Instant::now();
        let ticks = self.ticks();
        let took = before.elapsed();
        let ticks = check("vkGetCalibratedTimestamps", ticks)?;
        Ok(ClockSample { ticks, host: before + took / 2, uncertainty_ns: (took.as_nanos() / 2) as u64 })
    }
}
