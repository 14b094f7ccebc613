//! Profiles for people and tools: a table, a trace, a page. Reads the public fields of profiles, nothing else.

mod html;
mod json;
mod table;
mod trace;

pub use html::html_report;
