//! The numbers of the elementwise operations.

use crate::elementwise_ops::Cost;

macro_rules! op_codes {
    (one_operand { $($section:ident {
        $($(#[$doc:meta])* $name:ident($variant:ident) {
            cost: $cost:ident, codes: [$($code:ident = $number:literal),*], $($row:tt)*
        })*
    })* } other_codes { $($other:ident = $other_number:literal $other_cost:ident;)* }) => {
        /// An operation of `glsl/lib/ops.glsl`, by its number there. `Int` serves i32 and u32 alike.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub(crate) enum OpCode {
            $($other = $other_number,)*
            $($($($code = $number,)*)*)*
        }

        impl OpCode {
            /// Every operation.
            pub(crate) const ALL: &[OpCode] = &[$(OpCode::$other,)* $($($(OpCode::$code,)*)*)*];

            fn cost(self) -> Cost {
                match self {
                    $(OpCode::$other => Cost::$other_cost,)*
                    $($($(OpCode::$code => Cost::$cost,)*)*)*
                }
            }
        }
    };
}

crate::elementwise_ops!(op_codes);

/// The operations that a module has; `OPS` in `glsl/lib/ops.glsl`. Each set holds those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OpSet {
    /// The few that are used most.
    Plain,
    /// Without those that take long to compile.
    Light,
    /// Without those that are rare.
    All,
    Every,
}

impl OpCode {
    /// The smallest set that has it.
    pub(crate) fn set(self) -> OpSet {
        match self.cost() {
            Cost::Plain => OpSet::Plain,
            Cost::Light => OpSet::Light,
            Cost::Heavy => OpSet::All,
            Cost::Rare => OpSet::Every,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use rspirv::spirv::{Decoration, Op};

    use super::*;
    use crate::kernels::modules::Module;

    #[test]
    fn op_codes_are_those_of_the_shader() {
        let source = include_str!("../../glsl/lib/ops.glsl");
        let mut in_shader: Vec<(String, u32)> = source
            .lines()
            .filter_map(|line| {
                let mut words = line.strip_prefix("#define OP_")?.split_whitespace();
                Some((words.next()?.replace('_', "").to_lowercase(), words.next()?.parse().ok()?))
            })
            .collect();
        let mut ours: Vec<_> =
            OpCode::ALL.iter().map(|op| (format!("{op:?}").to_lowercase(), *op as u32)).collect();
        in_shader.sort_by_key(|(_, number)| *number);
        ours.sort_by_key(|(_, number)| *number);
        assert_eq!(in_shader, ours);
        assert!(ours.iter().map(|(_, number)| *number).eq(0..ours.len() as u32), "no number is left out");
    }

    /// Fused and unfused results are the same bits only if no driver may contract: lavapipe never does, so that no
    /// result would tell. Matmuls may be contracted where they are added up, which is the same code in any case.
    #[test]
    fn no_driver_may_contract_what_an_op_computes() {
        const ADDING_UP: [&str; 5] =
            ["main", "multiply_tiles(", "multiply(u1;", "add_terms(u1;vf4;", "sum_over_lanes("];
        let kernels: [(&str, &[&str]); 6] = [
            ("elementwise.", &[]),
            ("reduce_", &[]),
            ("softmax_", &[]),
            ("generate", &[]),
            ("matmul_", &ADDING_UP),
            ("conv_", &ADDING_UP),
        ];
        for (kernel, may_contract) in kernels {
            let mut found = 0;
            for module in Module::all().filter(|module| module.name().starts_with(kernel)) {
                for Computed { function, protected } in float_operations(module) {
                    let may = may_contract.contains(&function.as_str());
                    found += usize::from(!may);
                    assert!(protected || may, "{}: {function} may be contracted", module.name());
                }
            }
            assert!(found > 40, "{found} float operations in {kernel}: is anything looked at?");
        }
    }

    /// A float operation of a module.
    struct Computed {
        /// As glslang names it: `main`, or the name and its parameters' types.
        function: String,
        protected: bool,
    }

    fn float_operations(module: Module) -> Vec<Computed> {
        let arithmetic = [
            Op::FAdd,
            Op::FSub,
            Op::FMul,
            Op::FDiv,
            Op::FNegate,
            Op::FRem,
            Op::FMod,
            Op::VectorTimesScalar,
            Op::Dot,
        ];
        let (mut protected, mut names, mut computed) = (HashSet::new(), HashMap::new(), Vec::new());
        let mut function = 0;
        for (op, words) in module.instructions() {
            if op == Op::Decorate && words[2] == Decoration::NoContraction as u32 {
                protected.insert(words[1]);
            } else if op == Op::Name {
                let bytes: Vec<u8> = words[2..].iter().flat_map(|word| word.to_le_bytes()).collect();
                let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
                names.insert(words[1], String::from_utf8_lossy(text).into_owned());
            } else if op == Op::Function {
                function = words[2];
            } else if arithmetic.contains(&op) {
                computed.push((function, words[2]));
            }
        }
        let named = |(function, id)| Computed {
            function: names.get(&function).cloned().unwrap_or_default(),
            protected: protected.contains(&id),
        };
        computed.into_iter().map(named).collect()
    }
}
