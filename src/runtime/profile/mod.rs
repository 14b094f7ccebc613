//! Profiles: what the device did when, on its own clock; and what may be said about it.

pub(crate) mod clock;
pub(crate) mod guard;
pub(crate) mod probe;
pub(crate) mod profiler;
pub(crate) mod row;
pub(crate) mod ticket;

/// Whether the device takes the time of every dispatch, and how.
///
/// The two ways are never mixed: a profile is of one or of the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profiling {
    /// No timestamps. Costs nothing.
    #[default]
    Off,
    /// Timestamps around every dispatch, and nothing else: the work runs as it always does. Dispatches between two
    /// barriers may overlap on the device; such rows are marked. For finding gaps, not for speeds: no row has a
    /// throughput.
    Timeline,
    /// A barrier around every dispatch, so that each runs alone. The only source of GFLOP/s, GB/s and shares of the
    /// roofline. The whole takes longer than it would.
    Isolated,
}

impl std::fmt::Display for Profiling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Profiling::Off => "off",
            Profiling::Timeline => "timeline",
            Profiling::Isolated => "isolated",
        })
    }
}
