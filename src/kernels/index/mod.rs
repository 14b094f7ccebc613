//! Operations by index: where updates go, and how often numbers occur. (What reads by index is `copy/gather.rs`.)

mod histogram;
mod locate;
mod scatter;
