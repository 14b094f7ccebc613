//! The engine.

#[allow(dead_code, reason = "the catalog is going to look modules up")]
pub(crate) mod modules;
