//! Models of machines, from figures that were published or measured: what the table of crossovers would take on them.
//!
//! A side's time is a fixed part, and the larger of what memory and arithmetic take. Operations of one class differ, as
//! they do in truth: calibration sees one of each class, the table has all.

use std::convert::Infallible;

use tidemill::hybrid::{Class, Op, Probe, Work};

/// The operations of the table.
const OPS: [Op; 14] = [
    Op::Add,
    Op::Dot,
    Op::Matmul,
    Op::Relu,
    Op::LeakyRelu,
    Op::Elu,
    Op::Clip,
    Op::Sigmoid,
    Op::Tanh,
    Op::Swish,
    Op::Gelu,
    Op::Softmax,
    Op::LogSoftmax,
    Op::Conv2d,
];

/// Elements of an operand.
const SIZES: [usize; 8] = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24];

/// Every cell: an operation, a size, and whether the operands are on the device.
pub fn table() -> impl Iterator<Item = (Op, usize, bool)> {
    let cells =
        |resident| OPS.into_iter().flat_map(move |op| SIZES.into_iter().map(move |n| (op, n, resident)));
    cells(false).chain(cells(true))
}

/// One side of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// Microseconds before anything happens.
    pub fixed_us: f64,
    /// Bytes per microsecond.
    pub memory: f64,
    /// Elements of a transcendental function per microsecond.
    pub functions: f64,
    /// Multiplications of a matrix product per microsecond, at best.
    pub products: f64,
    /// Multiplications at which half of that is reached.
    pub half_at: f64,
}

/// A machine.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    pub name: &'static str,
    pub cpu: Engine,
    pub gpu: Engine,
    /// Microseconds of a transfer of nothing, and bytes per microsecond.
    pub transfer: (f64, f64),
}

/// An RTX 4090 (1,008 GB/s and 82 TFLOP/s by its data sheet, half of which a product in f32 reaches; PCIe 4.0 x16, 25 GB/s)
/// beside a desktop CPU of 16 cores. Calls cost what the reports on wgpu-based vector libraries measure on such cards:
/// some tens of microseconds for a submission and its wait.
pub const DISCRETE: Model = Model {
    name: "discrete card",
    cpu: Engine { fixed_us: 0.05, memory: 40_000.0, functions: 3_000.0, products: 150_000.0, half_at: 1e5 },
    gpu: Engine {
        fixed_us: 25.0,
        memory: 900_000.0,
        functions: 200_000.0,
        products: 20_000_000.0,
        half_at: 3e8,
    },
    transfer: (8.0, 25_000.0),
};

/// An integrated GPU of a laptop (memory shared with the CPU, 60 GB/s; about 2 TFLOP/s) beside four cores.
pub const INTEGRATED: Model = Model {
    name: "integrated",
    cpu: Engine { fixed_us: 0.05, memory: 18_000.0, functions: 600.0, products: 60_000.0, half_at: 1e5 },
    gpu: Engine { fixed_us: 30.0, memory: 50_000.0, functions: 20_000.0, products: 600_000.0, half_at: 2e7 },
    transfer: (1.0, 60_000.0),
};

/// lavapipe as it was measured here (18 to 20 GB/s, 60 GFLOP/s, 29 us for a dispatch), beside code on the CPU that is one
/// scalar loop with the library's functions: what a program has that is not vectorised.
pub const LAVAPIPE: Model = Model {
    name: "lavapipe beside scalar code",
    cpu: Engine { fixed_us: 0.05, memory: 6_000.0, functions: 120.0, products: 1_000.0, half_at: 1e3 },
    gpu: Engine { fixed_us: 29.0, memory: 18_000.0, functions: 1_200.0, products: 31_000.0, half_at: 2e6 },
    transfer: (1.0, 12_000.0),
};

impl Engine {
    fn us(&self, op: Op, amount: f64) -> f64 {
        // Beside the one of its class that is calibrated.
        let relative = match op {
            Op::Tanh => 1.25,
            Op::Sigmoid | Op::Swish => 0.9,
            Op::Elu => 0.8,
            Op::LogSoftmax => 1.1,
            _ => 1.0,
        };
        let work = match op.class() {
            Class::Memory => 12.0 * amount / self.memory,
            Class::Reduction => 4.0 * amount / self.memory,
            Class::Transcendental => (relative * amount / self.functions).max(8.0 * amount / self.memory),
            Class::Softmax => (relative * amount / self.functions).max(16.0 * amount / self.memory),
            _ => amount / (self.products * amount / (amount + self.half_at)),
        };
        self.fixed_us + work
    }
}

impl Model {
    /// The work of a cell, and what it takes on either side with transfers. A matrix product has square operands of `n`.
    pub fn cell(&self, op: Op, n: usize, resident: bool) -> (Work, f64, f64) {
        let side = (n as f64).sqrt();
        let (inputs, outputs) = match op {
            Op::Add | Op::Matmul => (2 * n, n),
            Op::Dot => (2 * n, 1),
            _ => (n, n),
        };
        // A convolution has 16 channels before and after, and nine taps.
        let products = if op == Op::Conv2d { 144.0 * n as f64 } else { side * side * side };
        let mut work = Work::on_host(op, inputs, outputs, products);
        let (operands, result) = (self.move_us(work.host_bytes), self.move_us(work.result_bytes));
        let (mut cpu_us, mut gpu_us) = (self.cpu.us(op, work.amount), self.gpu.us(op, work.amount) + result);
        if resident {
            (work.host_bytes, work.device_bytes) = (0, work.host_bytes);
            cpu_us += operands;
        } else {
            gpu_us += operands;
        }
        (work, cpu_us, gpu_us)
    }

    fn move_us(&self, bytes: usize) -> f64 {
        self.transfer.0 + bytes as f64 / self.transfer.1
    }
}

/// The operation of a class that is calibrated.
fn typical(class: Class) -> Op {
    match class {
        Class::Transcendental => Op::Gelu,
        Class::Reduction => Op::Sum,
        Class::Softmax => Op::Softmax,
        Class::Matmul => Op::Matmul,
        Class::Conv => Op::Conv2d,
        _ => Op::Add,
    }
}

impl Probe for Model {
    type Error = Infallible;

    fn cpu_us(&mut self, class: Class, amount: usize) -> Result<f64, Infallible> {
        Ok(self.cpu.us(typical(class), amount as f64))
    }

    fn gpu_us(&mut self, class: Class, amount: usize) -> Result<Option<f64>, Infallible> {
        Ok(Some(self.gpu.us(typical(class), amount as f64)))
    }

    fn transfer_us(&mut self, bytes: usize) -> Result<Option<(f64, f64)>, Infallible> {
        Ok(Some((self.move_us(bytes), self.move_us(bytes))))
    }
}
