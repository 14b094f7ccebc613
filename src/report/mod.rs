//! Profiles and explanations for people and tools: a table, a trace, a page, a text, a picture. Reads their public
//! fields, nothing else.
//!
//! This module owns how figures and graphs are shown, and no figure. It takes a [`Profile`](crate::profile::Profile) or
//! an [`Explanation`](crate::explain::Explanation), and gives text. It asks no device.

mod explain;
mod html;
mod json;
mod layout;
mod svg;
mod table;
mod trace;

pub use html::html_report;
