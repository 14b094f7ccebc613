//! What a call does, in the terms in which it is priced.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::elementwise_ops::Cost;

/// Operations that cost alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Limited by memory: additions, comparisons, copies. Counted in additions of two vectors (12 bytes each).
    Memory,
    /// Some tens of instructions per element. Counted in elements.
    Transcendental,
    /// Many elements to few. Counted in elements that are read.
    Reduction,
    /// Softmax and its logarithm. Counted in elements.
    Softmax,
    /// Matrix products. Counted in multiplications.
    Matmul,
    /// Convolutions. Counted in multiplications.
    Conv,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 6] =
        [Class::Memory, Class::Transcendental, Class::Reduction, Class::Softmax, Class::Matmul, Class::Conv];

    /// That of an elementwise operation.
    const fn of(cost: Cost) -> Class {
        match cost {
            Cost::Plain | Cost::Light => Class::Memory,
            Cost::Heavy | Cost::Rare => Class::Transcendental,
        }
    }

    /// As files and tables have it.
    pub fn name(self) -> &'static str {
        match self {
            Class::Memory => "memory",
            Class::Transcendental => "transcendental",
            Class::Reduction => "reduction",
            Class::Softmax => "softmax",
            Class::Matmul => "matmul",
            Class::Conv => "conv",
        }
    }
}

macro_rules! ops {
    ($($(#[$doc:meta])* $op:ident $name:ident $class:expr;)*) => {
        /// The operations that [`Hybrid`](super::Hybrid) has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "the operations of the same names")]
        pub enum Op {
            $($(#[$doc])* $op,)*
        }

        impl Op {
            /// Every operation.
            pub const ALL: &[Op] = &[$(Op::$op,)*];

            /// As the method that does it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Op::$op => stringify!($name),)*
                }
            }

            /// What it costs like.
            pub fn class(self) -> Class {
                match self {
                    $(Op::$op => $class,)*
                }
            }
        }
    };
}

macro_rules! from_the_table {
    (one_operand { $($section:ident {
        $($(#[$doc:meta])* $name:ident($op:ident) { cost: $cost:ident, $($row:tt)* })*
    })* } other_codes $codes:tt) => {
        ops! {
            $($($op $name Class::of(Cost::$cost);)*)*
            Add add Class::Memory;
            Sub sub Class::Memory;
            Mul mul Class::Memory;
            Div div Class::Memory;
            Min min Class::Memory;
            Max max Class::Memory;
            Pow pow Class::Transcendental;
            AddScalar add_scalar Class::Memory;
            SubScalar sub_scalar Class::Memory;
            Scale scale Class::Memory;
            DivScalar div_scalar Class::Memory;
            MinScalar min_scalar Class::Memory;
            MaxScalar max_scalar Class::Memory;
            PowScalar pow_scalar Class::Transcendental;
            LeakyRelu leaky_relu Class::Memory;
            Elu elu Class::Transcendental;
            Celu celu Class::Transcendental;
            Clip clip Class::Memory;
            Sum sum Class::Reduction;
            Mean mean Class::Reduction;
            Prod prod Class::Reduction;
            Amax amax Class::Reduction;
            Amin amin Class::Reduction;
            Norm norm Class::Reduction;
            Variance variance Class::Reduction;
            Dot dot Class::Reduction;
            Softmax softmax Class::Softmax;
            LogSoftmax log_softmax Class::Softmax;
            Argmax argmax Class::Reduction;
            Argmin argmin Class::Reduction;
            Eq eq Class::Memory;
            Ne ne Class::Memory;
            Lt lt Class::Memory;
            Le le Class::Memory;
            Gt gt Class::Memory;
            Ge ge Class::Memory;
            EqScalar eq_scalar Class::Memory;
            NeScalar ne_scalar Class::Memory;
            LtScalar lt_scalar Class::Memory;
            LeScalar le_scalar Class::Memory;
            GtScalar gt_scalar Class::Memory;
            GeScalar ge_scalar Class::Memory;
            Select select Class::Memory;
            Cast cast Class::Memory;
            Permute permute Class::Memory;
            Transpose transpose Class::Memory;
            Slice slice Class::Memory;
            BroadcastTo broadcast_to Class::Memory;
            Concat concat Class::Memory;
            Stack stack Class::Memory;
            Pad pad Class::Memory;
            GatherRows gather_rows Class::Memory;
            Iota iota Class::Memory;
            RandomUniform random_uniform Class::Transcendental;
            RandomNormal random_normal Class::Transcendental;
            Matmul matmul Class::Matmul;
            Conv2d conv2d Class::Conv;
            /// Several of the others, priced as a whole.
            Chain chain Class::Memory;
        }
    };
}

crate::elementwise_ops!(from_the_table);

/// One operation on operands of a size, and what has to be moved for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// The operation.
    pub op: Op,
    /// Tells chains of other operations apart ([`Work::of_chain`]); 0 for single operations.
    pub kind: u64,
    /// How much of it, in the units of its [`Class`].
    pub amount: f64,
    /// Bytes of the operands that are in the host's memory, and of those that are in the device's.
    pub host_bytes: usize,
    /// Bytes of the operands that are in the device's memory.
    pub device_bytes: usize,
    /// Bytes of the result, which goes to the host's memory.
    pub result_bytes: usize,
}

impl Work {
    /// Operands and result all in the host's memory; `inputs` and `output` count elements of four bytes. `products` is
    /// the number of multiplications of a matrix product or a convolution.
    pub fn on_host(op: Op, inputs: usize, output: usize, multiply_adds: f64) -> Work {
        let amount = match op.class() {
            // They read as much as they write, however large what they read from is.
            Class::Memory if matches!(op, Op::Slice | Op::GatherRows) => 2.0 * output as f64 / 3.0,
            Class::Memory => (inputs + output) as f64 / 3.0,
            Class::Transcendental | Class::Softmax => output as f64,
            Class::Reduction => inputs as f64,
            Class::Matmul | Class::Conv => multiply_adds,
        };
        Work { op, kind: 0, amount, host_bytes: 4 * inputs, device_bytes: 0, result_bytes: 4 * output }
    }

    /// All of a chain's operations as one. What it moves is still to be said.
    pub fn of_chain(steps: &[Work]) -> Work {
        let mut operations = FxHasher::default();
        steps.iter().for_each(|step| step.op.hash(&mut operations));
        Work {
            kind: operations.finish(),
            amount: steps.iter().map(|step| step.amount).sum(),
            ..Work::on_host(Op::Chain, 0, 0, 0.0)
        }
    }
}
