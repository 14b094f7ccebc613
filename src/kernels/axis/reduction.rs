//! Which reductions there are, and what the kernels call their parts.

use crate::ir::branches::branch;
use crate::ir::reduce::Reduction;
use crate::shape::DType;

/// How terms combine; numbers as in `glsl/lib/monoid.glsl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Monoid {
    Sum = 0,
    Deviations = 1,
    Product = 2,
    Wrapping = 3,
    Largest = 4,
    First = 5,
}

/// How an element becomes a term; numbers as there.
const AS_IT_IS: u32 = 0;
const SQUARE: u32 = 1;
const TIMES_SECOND: u32 = 2;
const LESS_MEAN: u32 = 3;
const KEY_F32: u32 = 4;
const KEY_I32: u32 = 5;
const KEY_U32: u32 = 6;
const REVERSED: u32 = 8;

/// How the total is finished; numbers as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    State = 0,
    Value = 1,
    Mean = 2,
    Root = 3,
}

impl Reduction {
    pub(crate) fn monoid(self, dtype: DType) -> Monoid {
        match self {
            Reduction::Sum if branch!("reduction: wraps", dtype != DType::F32) => Monoid::Wrapping,
            Reduction::Sum | Reduction::Mean | Reduction::Norm | Reduction::Dot => Monoid::Sum,
            Reduction::Variance => Monoid::Deviations,
            Reduction::Prod => Monoid::Product,
            Reduction::Max | Reduction::Min => Monoid::Largest,
            Reduction::ArgMax | Reduction::ArgMin => Monoid::First,
        }
    }

    pub(crate) fn term(self, dtype: DType) -> u32 {
        let key = match dtype {
            DType::F32 => KEY_F32,
            DType::I32 => KEY_I32,
            _ => KEY_U32,
        };
        match self {
            Reduction::Sum | Reduction::Mean | Reduction::Prod => AS_IT_IS,
            Reduction::Norm => SQUARE,
            Reduction::Dot => TIMES_SECOND,
            Reduction::Variance => LESS_MEAN,
            Reduction::Max | Reduction::ArgMax => key,
            Reduction::Min | Reduction::ArgMin => key + REVERSED,
        }
    }

    pub(crate) fn finish(self) -> Finish {
        match self {
            Reduction::Mean | Reduction::Variance => Finish::Mean,
            Reduction::Norm => Finish::Root,
            _ => Finish::Value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_shader() {
        let source = include_str!("../../../glsl/lib/monoid.glsl");
        let in_shader = |name: &str| {
            let mut lines = source.lines().filter_map(|line| line.strip_prefix("#define "));
            let found =
                lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).expect("it is defined");
            found
                .split_whitespace()
                .next()
                .and_then(|number| number.parse::<u32>().ok())
                .expect("it is a number")
        };
        let ours = [
            ("SUM", Monoid::Sum as u32),
            ("DEVIATIONS", Monoid::Deviations as u32),
            ("PRODUCT", Monoid::Product as u32),
            ("WRAPPING", Monoid::Wrapping as u32),
            ("LARGEST", Monoid::Largest as u32),
            ("FIRST", Monoid::First as u32),
            ("AS_IT_IS", AS_IT_IS),
            ("SQUARE", SQUARE),
            ("TIMES_SECOND", TIMES_SECOND),
            ("LESS_MEAN", LESS_MEAN),
            ("KEY_F32", KEY_F32),
            ("KEY_I32", KEY_I32),
            ("KEY_U32", KEY_U32),
            ("REVERSED", REVERSED),
            ("STATE", Finish::State as u32),
            ("VALUE", Finish::Value as u32),
            ("MEAN", Finish::Mean as u32),
            ("ROOT", Finish::Root as u32),
        ];
        for (name, number) in ours {
            assert_eq!(in_shader(name), number, "{name}");
        }
    }
}
