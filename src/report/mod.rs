//! Profiles and explanations for people and tools: a table, a trace, a page, a text, a picture. Reads their public fields,
//! nothing else.

mod explain;
mod html;
mod json;
mod layout;
mod svg;
mod table;
mod trace;

pub use html::html_report;
