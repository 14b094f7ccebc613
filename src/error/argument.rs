//! What can be wrong with an argument of a plan.

use super::List;
use crate::shape::DType;

/// What is wrong with an [argument](crate::Recording::argument) of a plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// A number outside of the range that the argument was declared with.
    #[error(
        "argument {name:?} is {value}; it was declared from {least} to {most}, so set a number of that range"
    )]
    OutOfRange {
        /// The argument.
        name: String,
        /// What was given.
        value: f64,
        /// The least that it may be.
        least: f64,
        /// The most that it may be.
        most: f64,
    },
    /// A range without any number.
    #[error(
        "argument {name:?}: no number lies from {least} to {most}; declare the range from the least to the most"
    )]
    EmptyRange {
        /// The argument.
        name: String,
        /// The first end of the range.
        least: f64,
        /// The other end.
        most: f64,
    },
    /// An argument of a type that there is none of.
    #[error("argument {name:?} is {got}; arguments are f32, i32 or u32")]
    Type {
        /// The argument.
        name: String,
        /// The type asked for.
        got: DType,
    },
    /// A number that the argument's type has not.
    #[error("argument {name:?} is {dtype}, which has no {value}")]
    NoSuchNumber {
        /// The argument.
        name: String,
        /// Its type.
        dtype: DType,
        /// What was given.
        value: f64,
    },
    /// A plan is given an argument of another recording.
    #[error("the argument was declared in another recording than the plan was made of")]
    Foreign,
    /// A plan is submitted before an argument has a value.
    #[error("argument {name:?} was never set; call Plan::set before the first submission")]
    NotSet {
        /// The argument.
        name: String,
    },
    /// Two arguments of one name.
    #[error("there is an argument {name:?} already; each argument of a recording has a name of its own")]
    Twice {
        /// The name.
        name: String,
    },
    /// A plan has no such argument.
    #[error("the plan has no argument {name:?}; it has: {}", List(.known))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The arguments that there are.
        known: Vec<String>,
    },
    /// Only a plan's arguments can be set.
    #[error(
        "{op}: argument {name:?} has no value here; end the recording with into_plan and set it there, or record a number"
    )]
    NoPlan {
        /// What would have ended the recording.
        op: &'static str,
        /// The argument.
        name: String,
    },
    /// A part that begins at an argument may reach out of its axis.
    #[error(
        "{op}: {length} elements from argument {name:?} on, which is {least} to {most}, reach out of axis {axis} of {extent}; \
         declare it within {}", Starts(*.extent, *.length)
    )]
    Start {
        /// The operation.
        op: &'static str,
        /// The argument.
        name: String,
        /// The least that it may be.
        least: f64,
        /// The most that it may be.
        most: f64,
        /// The axis.
        axis: usize,
        /// Elements along the axis.
        extent: usize,
        /// Elements of the part.
        length: usize,
    },
}

/// Writes where a part may begin.
struct Starts(usize, usize);

impl std::fmt::Display for Starts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "0..={}", self.0.saturating_sub(self.1))
    }
}
