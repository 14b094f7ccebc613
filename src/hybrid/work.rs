//! What a call does, in the terms in which it is priced.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

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
    ($($(#[$doc:meta])* $op:ident $name:literal $class:ident;)*) => {
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
                    $(Op::$op => $name,)*
                }
            }

            /// What it costs like.
            pub fn class(self) -> Class {
                match self {
                    $(Op::$op => Class::$class,)*
                }
            }
        }
    };
}

ops! {
    Add "add" Memory;
    Sub "sub" Memory;
    Mul "mul" Memory;
    Div "div" Memory;
    Min "min" Memory;
    Max "max" Memory;
    Pow "pow" Transcendental;
    AddScalar "add_scalar" Memory;
    SubScalar "sub_scalar" Memory;
    Scale "scale" Memory;
    DivScalar "div_scalar" Memory;
    MinScalar "min_scalar" Memory;
    MaxScalar "max_scalar" Memory;
    PowScalar "pow_scalar" Transcendental;
    Neg "neg" Memory;
    Abs "abs" Memory;
    Sign "sign" Memory;
    Floor "floor" Memory;
    Ceil "ceil" Memory;
    Round "round" Memory;
    Sqrt "sqrt" Memory;
    Rsqrt "rsqrt" Memory;
    Recip "recip" Memory;
    Exp "exp" Transcendental;
    Log "log" Transcendental;
    Sin "sin" Transcendental;
    Cos "cos" Transcendental;
    Relu "relu" Memory;
    LeakyRelu "leaky_relu" Memory;
    Elu "elu" Transcendental;
    Clip "clip" Memory;
    Sigmoid "sigmoid" Transcendental;
    Tanh "tanh" Transcendental;
    Swish "swish" Transcendental;
    Gelu "gelu" Transcendental;
    GeluErf "gelu_erf" Transcendental;
    Softplus "softplus" Transcendental;
    Sum "sum" Reduction;
    Mean "mean" Reduction;
    Prod "prod" Reduction;
    Amax "amax" Reduction;
    Amin "amin" Reduction;
    Norm "norm" Reduction;
    Variance "variance" Reduction;
    Dot "dot" Reduction;
    Softmax "softmax" Softmax;
    LogSoftmax "log_softmax" Softmax;
    Argmax "argmax" Reduction;
    Argmin "argmin" Reduction;
    Eq "eq" Memory;
    Ne "ne" Memory;
    Lt "lt" Memory;
    Le "le" Memory;
    Gt "gt" Memory;
    Ge "ge" Memory;
    EqScalar "eq_scalar" Memory;
    NeScalar "ne_scalar" Memory;
    LtScalar "lt_scalar" Memory;
    LeScalar "le_scalar" Memory;
    GtScalar "gt_scalar" Memory;
    GeScalar "ge_scalar" Memory;
    Select "select" Memory;
    Cast "cast" Memory;
    Permute "permute" Memory;
    Transpose "transpose" Memory;
    Slice "slice" Memory;
    BroadcastTo "broadcast_to" Memory;
    Concat "concat" Memory;
    Stack "stack" Memory;
    Pad "pad" Memory;
    GatherRows "gather_rows" Memory;
    Iota "iota" Memory;
    RandomUniform "random_uniform" Transcendental;
    RandomNormal "random_normal" Transcendental;
    Matmul "matmul" Matmul;
    Conv2d "conv2d" Conv;
    /// Several of the others, priced as a whole.
    Chain "chain" Memory;
}

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
    pub fn on_host(op: Op, inputs: usize, output: usize, products: f64) -> Work {
        let amount = match op.class() {
            // They read as much as they write, however large what they read from is.
            Class::Memory if matches!(op, Op::Slice | Op::GatherRows) => 2.0 * output as f64 / 3.0,
            Class::Memory => (inputs + output) as f64 / 3.0,
            Class::Transcendental | Class::Softmax => output as f64,
            Class::Reduction => inputs as f64,
            Class::Matmul | Class::Conv => products,
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
