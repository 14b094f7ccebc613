//! Which calls fail.

use std::collections::{HashMap, VecDeque};

use ash::vk;

use super::{Seam, state};

/// Fails a function: `skip` calls go through, then `times` fail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    call: &'static str,
    skip: u64,
    times: u64,
    error: vk::Result,
}

#[derive(Default)]
pub(super) struct Faults {
    /// Calls that can fail, since the last `fail_in_turn`.
    fallible: HashMap<&'static str, u64>,
    /// What is to fail, the first of these first: a function or [`Seam::ANY`], and how many calls of it are left until
    /// then.
    in_turn: VecDeque<(&'static str, u64)>,
    failures: Vec<&'static str>,
    rules: Vec<Rule>,
}

impl Faults {
    /// Whether it is this call that must fail. Takes note of it.
    fn is_next(&mut self, call: &'static str) -> bool {
        let Some((_, left)) = self.in_turn.front_mut().filter(|(name, _)| [call, Seam::ANY].contains(name))
        else {
            return false;
        };
        *left -= 1;
        let is_now = *left == 0;
        if is_now {
            self.in_turn.pop_front();
        }
        is_now
    }
}

impl Seam {
    /// Any function that can fail.
    pub const ANY: &'static str = "any function";

    /// The functions that could have failed, and how often, since the last [`fail_in_turn`](Seam::fail_in_turn).
    pub fn fallible_calls(&self) -> HashMap<&'static str, u64> {
        state(|s| s.faults.fallible.clone())
    }

    /// Fails the next `times` calls of a function after `skip` of them.
    pub fn fail(&self, call: &'static str, skip: u64, times: u64, error: vk::Result) {
        state(|s| s.faults.rules.push(Rule { call, skip, times, error }));
    }

    /// No more failures.
    pub fn heal(&self) {
        state(|s| {
            s.faults.rules.clear();
            s.faults.in_turn.clear();
        });
    }

    /// Fails the n-th call of a function, from now on and counted from 1.
    pub fn fail_nth(&self, call: &'static str, n: u64) {
        self.fail_in_turn(&[(call, n)]);
    }

    /// Fails the n-th call of a function, or of [`Seam::ANY`], and then the next fault's n-th, counted from there.
    pub fn fail_in_turn(&self, faults: &[(&'static str, u64)]) {
        state(|s| {
            s.faults.fallible.clear();
            s.faults.in_turn = faults.iter().copied().collect();
            s.faults.failures.clear();
        });
    }

    /// What failed since the last [`fail_in_turn`](Seam::fail_in_turn), in order.
    pub fn failures(&self) -> Vec<&'static str> {
        state(|s| s.faults.failures.clone())
    }
}

/// Takes note of a call; the error it must end with, if any.
pub(super) fn enter(call: &'static str, fallible: bool) -> Option<vk::Result> {
    state(|s| {
        *s.calls.entry(call).or_default() += 1;
        if !fallible {
            return None;
        }
        *s.faults.fallible.entry(call).or_default() += 1;
        if s.faults.is_next(call) {
            s.faults.failures.push(call);
            return Some(match call {
                "vkAllocateMemory" | "vkCreateBuffer" => vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
                "vkMapMemory" => vk::Result::ERROR_MEMORY_MAP_FAILED,
                _ => vk::Result::ERROR_OUT_OF_HOST_MEMORY,
            });
        }
        let rule = s.faults.rules.iter_mut().find(|rule| rule.call == call && rule.skip + rule.times > 0)?;
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        rule.times -= 1;
        Some(rule.error)
    })
}
