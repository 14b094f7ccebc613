//! A plan's arguments: what the next submission is given.

use super::Plan;
use crate::error::{ArgumentError, Result};
use crate::runtime::argument::{Argument, Declared};
use crate::runtime::commands::Word;
use crate::runtime::pool::Lease;
use crate::shape::Element;
use crate::vk::process;

/// An argument of a plan.
pub(super) struct PlanArgument {
    declared: Declared,
    /// What the next submission is to find.
    value: Option<u32>,
    /// What the last submission has found, and the next one would.
    submitted: Option<u32>,
}

impl Plan {
    /// Sets an argument for the submissions from now on, until it is set again; those in flight keep what they were
    /// given. The next submission begins with a fill of one word, and nothing is encoded again.
    ///
    /// [`Recording::argument`](crate::Recording::argument) declares them, and has an example.
    ///
    /// # Errors
    ///
    /// [`ArgumentError::OutOfRange`] outside of the range that was declared (NaN always is); [`ArgumentError::Foreign`]
    /// if it was declared in another recording. The argument is then what it was before.
    pub fn set<T: Element + Into<f64>>(&mut self, argument: Argument<T>, value: T) -> Result<()> {
        process::check()?;
        let found = self.arguments.iter_mut().find(|known| known.declared.handle == argument.value);
        let found = found.ok_or(ArgumentError::Foreign)?;
        found.value = Some(found.declared.bits_of(value.into())?);
        Ok(())
    }

    /// As [`set`](Plan::set), by the name of the argument, and with a number that becomes one of the argument's type: a
    /// float is rounded.
    ///
    /// # Errors
    ///
    /// [`ArgumentError::Unknown`], with the names that there are; [`ArgumentError::OutOfRange`];
    /// [`ArgumentError::NoSuchNumber`] if it is no number of the argument's type.
    pub fn set_named(&mut self, name: &str, value: f64) -> Result<()> {
        process::check()?;
        let Some(found) = self.arguments.iter_mut().find(|known| known.declared.name == name) else {
            let known = self.arguments.iter().map(|known| known.declared.name.clone()).collect();
            return Err(ArgumentError::Unknown { name: name.to_owned(), known }.into());
        };
        found.value = Some(found.declared.bits_of(value)?);
        Ok(())
    }

    /// Refuses to submit a plan of which an argument was never set.
    pub(super) fn check_arguments(&self) -> Result<()> {
        match self.arguments.iter().find(|argument| argument.value.is_none()) {
            Some(PlanArgument { declared, .. }) => {
                Err(ArgumentError::NotSet { name: declared.name.clone() }.into())
            }
            None => Ok(()),
        }
    }
}

/// Those that were declared.
pub(super) fn of_plan(declared: Vec<Declared>) -> Vec<PlanArgument> {
    let unset = |declared| PlanArgument { declared, value: None, submitted: None };
    declared.into_iter().map(unset).collect()
}

/// The words that a submission must bring to its blocks.
pub(super) fn changed(arguments: &[PlanArgument], blocks: &[Option<Lease>]) -> Vec<Word> {
    let changed = arguments.iter().filter(|argument| argument.value != argument.submitted);
    let word = |argument: &PlanArgument| {
        let to = blocks[argument.declared.tensor as usize].as_ref()?.hold();
        Some(Word { to, bits: argument.value? })
    };
    changed.filter_map(word).collect()
}

/// Notes that a submission has brought them.
pub(super) fn were_submitted(arguments: &mut [PlanArgument]) {
    arguments.iter_mut().for_each(|argument| argument.submitted = argument.value);
}
