//! Scans, sorts and searches along an axis.

mod cut;
mod radix;
mod scan;
mod search;
mod segments;
