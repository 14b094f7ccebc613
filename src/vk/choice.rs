//! Which device to take.

use std::fmt;

use super::instance::driver_search;
use super::physical::{DeviceInfo, DeviceKind};
use crate::error::{Error, Result};

/// Which device an accelerator should take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceChoice {
    /// The best one: discrete before integrated before virtual before CPU. `TIDEMILL_DEVICE` overrides it.
    #[default]
    Best,
    /// The device with this index in [`Accelerator::devices`](crate::Accelerator::devices).
    Index(usize),
    /// The first device whose name contains this text, whatever the case.
    Name(String),
    /// The first device of this kind.
    Kind(DeviceKind),
}

impl DeviceChoice {
    /// Parses the value of `TIDEMILL_DEVICE`: an index, a kind, or a part of a name.
    pub fn parse(text: &str) -> DeviceChoice {
        if let Ok(index) = text.parse() {
            return DeviceChoice::Index(index);
        }
        match DeviceKind::from_name(text) {
            Some(kind) => DeviceChoice::Kind(kind),
            None => DeviceChoice::Name(text.to_owned()),
        }
    }

    fn matches(&self, device: &DeviceInfo) -> bool {
        match self {
            DeviceChoice::Best => true,
            DeviceChoice::Index(index) => device.index == *index,
            DeviceChoice::Name(part) => device.name.to_lowercase().contains(&part.to_lowercase()),
            DeviceChoice::Kind(kind) => device.kind == *kind,
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Best => f.write_str("the best device"),
            DeviceChoice::Index(index) => write!(f, "index {index}"),
            DeviceChoice::Name(part) => write!(f, "a name with {part:?}"),
            DeviceChoice::Kind(kind) => write!(f, "kind {kind}"),
        }
    }
}

/// The device to use, or why there is none.
pub(crate) fn choose(devices: &[DeviceInfo], choice: &DeviceChoice) -> Result<DeviceInfo> {
    let best = devices
        .iter()
        .filter(|d| d.is_usable() && choice.matches(d))
        // Among equals, the loader's order holds.
        .max_by_key(|d| (d.kind.score(), std::cmp::Reverse(d.index)));
    if let Some(best) = best {
        return Ok(best.clone());
    }
    let list = |otherwise: &str| devices.iter().map(|d| d.refusal(otherwise)).collect();
    Err(match choice {
        DeviceChoice::Best => Error::NoUsableDevice { refused: list("usable"), search: driver_search() },
        _ => Error::DeviceNotFound { wanted: choice.to_string(), available: list("does not match") },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_choice_is_read_from_text() {
        assert_eq!(DeviceChoice::parse("1"), DeviceChoice::Index(1));
        assert_eq!(DeviceChoice::parse("Discrete"), DeviceChoice::Kind(DeviceKind::Discrete));
        assert_eq!(DeviceChoice::parse("RTX"), DeviceChoice::Name("RTX".into()));
    }
}
