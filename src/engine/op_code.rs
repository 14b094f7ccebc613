//! The numbers of the elementwise operations.

/// Makes the enum and the list of all from one list of names, so that neither can miss one.
macro_rules! op_codes {
    ($($name:ident),* $(,)?) => {
        /// An operation of `glsl/lib/ops.glsl`, by its number there. `Int` serves i32 and u32 alike.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub(crate) enum OpCode {
            $($name),*
        }

        impl OpCode {
            /// Every operation, by number.
            #[cfg(test)]
            pub(crate) const ALL: &[OpCode] = &[$(OpCode::$name),*];
        }
    };
}

#[rustfmt::skip]
op_codes! {
    Copy,
    AddF32, SubF32, MulF32, DivF32, PowF32, MinF32, MaxF32,
    AddInt, SubInt, MulInt, DivI32, DivU32, MinI32, MaxI32, MinU32, MaxU32,
    EqF32, NeF32, LtF32, LeF32, EqInt, NeInt, LtI32, LeI32, LtU32, LeU32,
    Select,
    NegF32, AbsF32, SignF32, FloorF32, CeilF32, RoundF32, SqrtF32, RsqrtF32, RecipF32,
    ExpF32, LogF32, SinF32, CosF32,
    ReluF32, LeakyReluF32, EluF32, ClipF32,
    SigmoidF32, TanhF32, SwishF32, GeluF32, GeluErfF32, SoftplusF32,
    NegI32, AbsI32, SignI32,
    F32ToI32, F32ToU32, I32ToF32, U32ToF32,
}

impl OpCode {
    /// Whether `glsl/lib/ops.glsl` leaves it out of the light set, since it takes long to compile.
    pub(crate) fn is_heavy(self) -> bool {
        use OpCode::*;
        matches!(
            self,
            PowF32
                | ExpF32
                | LogF32
                | SinF32
                | CosF32
                | EluF32
                | SigmoidF32
                | TanhF32
                | SwishF32
                | GeluF32
                | GeluErfF32
                | SoftplusF32
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rspirv::spirv::{Decoration, Op};

    use super::*;
    use crate::engine::modules::MODULES;

    #[test]
    fn op_codes_are_those_of_the_shader() {
        let source = include_str!("../../glsl/lib/ops.glsl");
        let in_shader: Vec<(String, u32)> = source
            .lines()
            .filter_map(|line| {
                let mut words = line.strip_prefix("#define OP_")?.split_whitespace();
                Some((words.next()?.replace('_', "").to_lowercase(), words.next()?.parse().ok()?))
            })
            .collect();
        let ours: Vec<_> =
            OpCode::ALL.iter().map(|op| (format!("{op:?}").to_lowercase(), *op as u32)).collect();
        assert_eq!(in_shader, ours);
    }

    /// Fused and unfused results are the same bits only if no driver may contract: lavapipe never does, so that no
    /// result would tell.
    #[test]
    fn no_driver_may_contract_what_an_op_computes() {
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
        let of_map: Vec<_> = MODULES.iter().filter(|module| module.name.starts_with("map.")).collect();
        assert!(!of_map.is_empty());
        for module in of_map {
            let parsed = rspirv::dr::load_words(module.words()).unwrap();
            let protected: HashSet<u32> = parsed
                .annotations
                .iter()
                .filter(|i| i.class.opcode == Op::Decorate)
                .filter(|i| i.operands[1].unwrap_decoration() == Decoration::NoContraction)
                .map(|i| i.operands[0].unwrap_id_ref())
                .collect();
            let computed = parsed.all_inst_iter().filter(|i| arithmetic.contains(&i.class.opcode));
            let computed: Vec<u32> = computed.filter_map(|i| i.result_id).collect();
            assert!(computed.len() > 100, "{} has {} float operations", module.name, computed.len());
            let open: Vec<_> = computed.iter().filter(|id| !protected.contains(id)).collect();
            assert!(open.is_empty(), "{}: {open:?} may be contracted", module.name);
        }
    }
}
