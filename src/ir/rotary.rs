//! The angles of rotary embedding, as they are recorded.

use super::value::ValueId;

/// Cosines and sines for the positions of so many tokens: `[2, tokens, depth]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Angles {
    /// A number for each token, or that of the first.
    pub(crate) positions: ValueId,
    pub(crate) start: bool,
    pub(crate) interleaved: bool,
    pub(crate) base: f32,
    pub(crate) tokens: u32,
    pub(crate) depth: u32,
    pub(crate) output: ValueId,
}
