//! Measuring with the engine itself: a figure of some work, a run of many submissions, the peaks of the device. It
//! records and submits as a user does; what a submission's times mean is in [`profile`](super::profile).

pub(crate) mod measurement;
pub(crate) mod peaks;
pub(crate) mod run;
