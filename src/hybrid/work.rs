//! What a call does, in the terms in which it is priced.

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
    Scale "scale" Memory;
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
            Class::Memory => (inputs + output) as f64 / 3.0,
            Class::Transcendental | Class::Softmax => output as f64,
            Class::Reduction => inputs as f64,
            Class::Matmul | Class::Conv => products,
        };
        Work { op, amount, host_bytes: 4 * inputs, device_bytes: 0, result_bytes: 4 * output }
    }
}
