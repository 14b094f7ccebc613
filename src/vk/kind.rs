//! Kinds of devices.

use std::fmt;

use ash::vk;

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// A card with memory of its own.
    Discrete,
    /// A GPU that shares the CPU's memory.
    Integrated,
    /// A GPU of a virtual machine.
    Virtual,
    /// A software driver.
    Cpu,
    /// Something else.
    Other,
}

impl DeviceKind {
    pub(super) fn of(kind: vk::PhysicalDeviceType) -> DeviceKind {
        match kind {
            vk::PhysicalDeviceType::DISCRETE_GPU => DeviceKind::Discrete,
            vk::PhysicalDeviceType::INTEGRATED_GPU => DeviceKind::Integrated,
            vk::PhysicalDeviceType::VIRTUAL_GPU => DeviceKind::Virtual,
            vk::PhysicalDeviceType::CPU => DeviceKind::Cpu,
            _ => DeviceKind::Other,
        }
    }

    pub(super) fn score(self) -> u32 {
        match self {
            DeviceKind::Discrete => 4,
            DeviceKind::Integrated => 3,
            DeviceKind::Virtual => 2,
            DeviceKind::Cpu => 1,
            DeviceKind::Other => 0,
        }
    }

    pub(super) fn from_name(name: &str) -> Option<DeviceKind> {
        [DeviceKind::Discrete, DeviceKind::Integrated, DeviceKind::Virtual, DeviceKind::Cpu]
            .into_iter()
            .find(|kind| kind.to_string().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceKind::Discrete => "discrete",
            DeviceKind::Integrated => "integrated",
            DeviceKind::Virtual => "virtual",
            DeviceKind::Cpu => "cpu",
            DeviceKind::Other => "other",
        })
    }
}
