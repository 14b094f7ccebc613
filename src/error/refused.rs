//! Devices that were seen and not used.

use std::fmt;

/// A device that was seen and not used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedDevice {
    /// The device's name.
    pub name: String,
    /// Why it was not used.
    pub why: String,
}

/// Writes `name (why)` for each device.
pub(super) struct Refusals<'a>(pub(super) &'a [RefusedDevice]);

impl fmt::Display for Refusals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none at all");
        }
        for (i, device) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{} ({})", device.name, device.why)?;
        }
        Ok(())
    }
}

/// Writes why no device is used, and the way out where there is none at all.
pub(super) struct NoDevice<'a>(pub(super) &'a [RefusedDevice], pub(super) &'a str);

impl fmt::Display for NoDevice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoDevice(refused, search) = self;
        if refused.is_empty() {
            return write!(
                f,
                "no Vulkan device: the drivers that the loader found have none; {search}; install the driver of this \
                 machine's GPU, or Mesa's software driver, which needs no GPU (Debian/Ubuntu and Fedora \
                 `mesa-vulkan-drivers`)"
            );
        }
        write!(f, "no usable Vulkan device among {}: {}", refused.len(), Refusals(refused))
    }
}
