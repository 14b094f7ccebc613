//! Scans, sorts and searches along an axis.

mod radix;
mod scan;
mod search;
mod segments;
mod split;
