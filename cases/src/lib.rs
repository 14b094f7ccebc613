//! One table of cases for every operation: operands, how the operation is recorded, what must come out by a reference
//! in f64 and how near, and how much is moved and computed. The tests run it, `tidemill cases` runs it, the accuracy
//! statement in the docs is its output, and `tidemill bench` times those of its cases that have a name for it.

pub mod array;
mod attention;
pub mod compare;
mod conv2d;
pub mod crossover;
pub mod data;
pub mod elementwise;
mod generate;
mod half;
mod index;
mod layout;
mod matmul;
mod norm;
mod packed;
mod pairs;
mod pool;
mod reduce;
pub mod reference;
pub mod report;
mod resize;
mod softmax;
mod sort;
mod twin;
mod unary;

use std::collections::BTreeMap;
use std::sync::Arc;

use tidemill::{Accelerator, Error, Recording, Result, Shape, Tensor, Value};

pub use array::{Array, Input, Kind};
pub use compare::{Bound, Check, Expected};

/// An operation on one set of operands.
#[allow(missing_debug_implementations, reason = "it holds closures")]
pub struct Case {
    /// The operation, as the report's rows name it.
    pub op: &'static str,
    /// The kernel family that serves it: its variants all run the case.
    pub family: &'static str,
    /// Shapes and whatever else tells the case apart.
    pub what: String,
    /// The operands.
    pub inputs: Vec<Input>,
    /// The type and shape of the result.
    pub result: Kind,
    /// How far it may be from the reference.
    pub bound: Bound,
    /// How much is computed: two for each multiplication with its addition in products and convolutions, one for each
    /// element and operation otherwise (a function counts as one), nothing for what only moves.
    pub flops: u64,
    /// Too slow for variants that were made for another kind of device.
    pub large: bool,
    /// The name of the work that times it.
    pub bench: Option<String>,
    /// Whether its operands are numbers that break things: denormals, infinities, NaN.
    special: bool,
    /// By how much a denormal on the way, which a device may take for a zero, is multiplied in the result.
    amplifies: f64,
    /// Whether it runs twice, and must give the same bits.
    repeated: bool,
    prepare: Box<Prepare>,
    twin: Option<Box<Twin>>,
    expected: Box<Reference>,
}

/// Records the operation, as often as one likes.
pub type Record = Box<dyn Fn(&Recording) -> Result<Value>>;

/// Makes what records the operation on the operands; what is made once for many runs, like a convolution's weights, is
/// made here.
type Prepare = dyn Fn(&Accelerator, Vec<Tensor>) -> Result<Record> + Send + Sync;

/// The operation on the CPU: into a place for the result, whose shape it tells.
type Twin = dyn Fn(&[Array], &mut Array) -> Result<Shape> + Send + Sync;

/// The reference.
type Reference = dyn Fn(&[Array]) -> Expected + Send + Sync;

/// Where a case is carried out.
#[derive(Clone, Copy, Debug)]
pub enum On<'a> {
    /// On a device.
    Gpu(&'a Accelerator),
    /// By its twin on the CPU.
    Cpu,
}

impl On<'_> {
    /// Whether denormals may be zeros there: on devices that do not offer to keep them. The CPU keeps them.
    fn may_flush_denormals(self) -> bool {
        matches!(self, On::Gpu(gpu) if !gpu.device().features.preserves_denormals)
    }
}

impl Case {
    /// A case that is exact, computes nothing and has no twin on the CPU, unless more is said.
    pub fn new(
        op: &'static str,
        family: &'static str,
        what: String,
        inputs: Vec<Input>,
        result: Kind,
        record: impl Fn(&Recording, &[Tensor]) -> Result<Value> + Send + Sync + 'static,
        expected: impl Fn(&[Array]) -> Expected + Send + Sync + 'static,
    ) -> Case {
        let record = Arc::new(record);
        let prepare = move |_: &Accelerator, tensors: Vec<Tensor>| -> Result<Record> {
            let record = record.clone();
            Ok(Box::new(move |r| record(r, &tensors)))
        };
        Case::prepared(op, family, what, inputs, result, prepare, expected)
    }

    /// Likewise, where something is made ahead of the recording.
    pub fn prepared(
        op: &'static str,
        family: &'static str,
        what: String,
        inputs: Vec<Input>,
        result: Kind,
        prepare: impl Fn(&Accelerator, Vec<Tensor>) -> Result<Record> + Send + Sync + 'static,
        expected: impl Fn(&[Array]) -> Expected + Send + Sync + 'static,
    ) -> Case {
        Case {
            op,
            family,
            what,
            inputs,
            result,
            bound: Bound::Exact,
            flops: 0,
            large: false,
            bench: None,
            special: false,
            amplifies: 1.0,
            repeated: false,
            prepare: Box::new(prepare),
            twin: None,
            expected: Box::new(expected),
        }
    }

    /// Says how far the result may be off.
    pub fn bound(self, bound: Bound) -> Case {
        Case { bound, ..self }
    }

    /// Says how much is computed.
    pub fn flops(self, flops: usize) -> Case {
        Case { flops: flops as u64, ..self }
    }

    /// Gives it a twin on the CPU.
    pub fn twin(self, twin: impl Fn(&[Array], &mut Array) -> Result<Shape> + Send + Sync + 'static) -> Case {
        Case { twin: Some(Box::new(twin)), ..self }
    }

    /// Says that its operands are numbers that break things.
    pub fn special(self) -> Case {
        Case { special: true, ..self }
    }

    /// Says by how much a denormal on the way is multiplied in the result.
    pub fn amplifies(self, amplifies: f64) -> Case {
        Case { amplifies, ..self }
    }

    /// Runs it twice, for the same bits.
    pub fn repeated(self) -> Case {
        Case { repeated: true, ..self }
    }

    /// Marks the case as large.
    pub fn large(self) -> Case {
        Case { large: true, ..self }
    }

    /// Has it timed by this name, which makes it a large one.
    pub fn bench(self, name: impl Into<String>) -> Case {
        Case { bench: Some(name.into()), ..self.large() }
    }

    /// How much it moves at least: every operand is read once, and the result written.
    pub fn size_bytes(&self) -> u64 {
        let kinds = self.inputs.iter().map(|input| &input.kind).chain([&self.result]);
        kinds.map(|kind| kind.size_bytes() as u64).sum()
    }

    /// The operands, on the host.
    pub fn operands(&self) -> Vec<Array> {
        self.inputs.iter().map(Input::make).collect()
    }

    /// The expected result.
    pub fn expected(&self, operands: &[Array]) -> Expected {
        (self.expected)(operands)
    }

    /// Uploads the operands, and makes what records the operation on them.
    ///
    /// # Errors
    ///
    /// Those of uploading, and of preparing weights.
    pub fn upload(&self, gpu: &Accelerator, operands: &[Array]) -> Result<Record> {
        let tensors: Result<_> = operands.iter().map(|operand| operand.upload(gpu)).collect();
        (self.prepare)(gpu, tensors?)
    }

    /// Compares a result with what should have come out.
    pub fn check(&self, expected: &Expected, got: &Array) -> Check {
        if got.kind != self.result {
            let kinds = [got.kind, self.result].map(|kind| format!("{} {}", kind.dtype, kind.shape));
            return Check { worst: f64::INFINITY, at: kinds.join(" for "), bound: self.bound };
        }
        expected.check(got, self.bound)
    }

    /// Carries it out and compares.
    fn run(&self, on: On<'_>) -> Result<Check> {
        let operands = self.operands();
        let got = self.run_once(on, &operands)?;
        let mut check = self.check(&self.expected(&operands), &got);
        if !check.passed() && on.may_flush_denormals() && got.kind == self.result {
            let flushed: Vec<Array> = operands.iter().map(Array::flushed).collect();
            let expected = self.expected(&operands);
            let least = self.amplifies * f64::from(f32::MIN_POSITIVE);
            check = expected.check_flushing(&self.expected(&flushed), &got, self.bound, least);
        }
        if self.repeated {
            let again = Expected::Words(got.widened().into_owned())
                .check(&self.run_once(on, &operands)?, Bound::Exact);
            return Ok(if again.passed() { check } else { again });
        }
        Ok(check)
    }

    fn run_once(&self, on: On<'_>, operands: &[Array]) -> Result<Array> {
        match (on, &self.twin) {
            (On::Gpu(gpu), _) => {
                let record = self.upload(gpu, operands)?;
                Array::read(&gpu.run(|r| record(r))?)
            }
            (On::Cpu, Some(twin)) => {
                let mut out = Array::unwritten(self.result);
                out.kind.shape = twin(operands, &mut out)?;
                Ok(out)
            }
            (On::Cpu, None) => Err(Error::Closed),
        }
    }
}

/// A part of some cases: of every operation those at special values, and each eighth of the others, the first among
/// them; none that is large.
pub fn some(cases: Vec<Case>) -> Vec<Case> {
    let mut seen = BTreeMap::new();
    let mut is_taken = |case: &Case| {
        let count = seen.entry(case.op).or_insert(0usize);
        *count += 1;
        case.special || *count % 8 == 1
    };
    cases.into_iter().filter(|case| !case.large && is_taken(case)).collect()
}

/// Every case there is.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    elementwise::cases(&mut cases);
    pairs::cases(&mut cases);
    pool::cases(&mut cases);
    resize::cases(&mut cases);
    layout::cases(&mut cases);
    index::cases(&mut cases);
    sort::cases(&mut cases);
    generate::cases(&mut cases);
    reduce::cases(&mut cases);
    softmax::cases(&mut cases);
    norm::cases(&mut cases);
    matmul::cases(&mut cases);
    conv2d::cases(&mut cases);
    attention::cases(&mut cases);
    half::cases(&mut cases);
    packed::cases(&mut cases);
    cases
}
