//! Details of the loss of a device.

use std::fmt;

/// The driver's report on the fault that lost the device, where it has `VK_EXT_device_fault`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceFault {
    /// The driver's own words.
    pub description: String,
    /// Addresses that have to do with it.
    pub addresses: Vec<FaultAddress>,
    /// Codes for the vendor's tools.
    pub codes: Vec<FaultCode>,
}

/// An address that has to do with the loss of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultAddress {
    /// The kind of access.
    pub kind: &'static str,
    /// The device's address.
    pub address: u64,
    /// A power of two: the address is right up to a multiple of it.
    pub precision: u64,
}

/// A vendor's code of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultCode {
    /// The driver's own words.
    pub description: String,
    /// The vendor's number of the fault.
    pub code: u64,
    /// The vendor's data.
    pub data: u64,
}

impl fmt::Display for DeviceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)?;
        for FaultAddress { kind, address, precision } in &self.addresses {
            write!(f, ", {kind} at {address:#x} (to {precision} bytes)")?;
        }
        for FaultCode { description, code, data } in &self.codes {
            write!(f, ", {description} ({code:#x}, {data:#x})")?;
        }
        Ok(())
    }
}

/// Writes what was in flight at an earlier loss, too, and what the driver says.
pub(super) struct Causes<'a>(pub(super) &'a [String], pub(super) Option<&'a DeviceFault>);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty() {
            write!(f, "; also in flight at an earlier loss: {}, the likely cause", super::List(self.0))?;
        }
        self.1.map_or(Ok(()), |fault| write!(f, "; the driver says: {fault}"))
    }
}
