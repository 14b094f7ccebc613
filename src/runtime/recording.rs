//! Recordings: plain data between `begin_recording` and `end_recording`.

use std::cell::{Ref, RefCell, RefMut};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::ir::copy::{Copy, Fill};
use crate::ir::graph::{Graph, Node};
use crate::ir::op::Op;
use crate::ir::value::{Label, LabelName, Origin, ValueId};
use crate::kernels::catalog::Catalog;
use crate::kernels::lower;
use crate::runtime::accelerator::Accelerator;
use crate::runtime::argument::Declared;
use crate::runtime::core::{Core, check_size, foreign_tensor};
use crate::runtime::execute::{Outside, execute};
use crate::runtime::operand::{IntoOperand, Scalar};
use crate::runtime::pool::Lease;
use crate::runtime::profile::Profiling;
use crate::runtime::profile::probe::ProfileRequest;
use crate::runtime::submission::Submission;
use crate::runtime::tensor::{Contents, Storage, Tensor};
use crate::runtime::updated::Updated;
use crate::schedule::compiled_graph::CompiledGraph;
use crate::schedule::explain::{ExplainedArgument, Explanation};
use crate::shape::{DType, Element, Shape};
use crate::vk::process;
use crate::vk::raw::HostSync;

pub(crate) use crate::runtime::operand::{Operand, Value};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A list of operations between [`begin_recording`](crate::Accelerator::begin_recording) and
/// [`end_recording`](Recording::end_recording), which become one submission.
///
/// Dropping it discards it. An operation that fails leaves it unchanged. Operations without a kept result do not run;
/// [`explain`](Recording::explain) lists them.
///
/// Operations take `&self`, so calls nest. They are recorded in the order in which they are called: arguments are
/// evaluated first, from left to right, then the operation itself. That order is also why a recording is [`Send`] but
/// not [`Sync`]: it may move to another thread, but only one thread records at a time.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// let gpu = tidemill::Accelerator::global()?;
/// let a = gpu.upload(&[1.0f32, 2.0], [2])?;
/// let r = gpu.begin_recording()?;
/// let twice = r.add(&a, &a)?;
/// let square = r.mul(twice, twice)?;
/// let kept = r.keep(square)?;
/// r.end_recording()?.wait()?;
/// assert_eq!(kept.read::<f32>()?, [4.0, 16.0]);
/// # Ok(()) }
/// ```
pub struct Recording {
    pub(super) core: Arc<Core>,
    id: u64,
    /// The variants to be tried out, instead of those that the accelerator uses.
    trial: Option<Arc<Catalog>>,
    state: RefCell<State>,
}

/// The state that operations change. It is borrowed for single steps only, and never while code of the caller runs:
/// iterators and closures that the caller gives are called before a borrow begins, or after it has ended.
pub(super) struct State {
    pub(super) graph: Graph,
    /// The tensors that values become.
    pub(super) kept: Vec<Arc<Storage>>,
    pub(super) leases: Vec<Lease>,
    /// The tensor of each lease.
    pub(super) tensors: Vec<(Arc<Storage>, Shape)>,
    /// The tensors that are updated.
    pub(super) updated: Vec<Updated>,
    /// The arguments that a plan of it has.
    pub(super) arguments: Vec<Declared>,
    /// Nodes that were inserted before others.
    pub(super) inserted: usize,
    /// The value of each tensor, by its address and its lease's: what was written in between has another lease, and
    /// tensors that share one now may part before a plan is submitted.
    known: FxHashMap<(usize, usize), ValueId>,
    /// The host's memory that it is to write.
    pub(super) promised: SmallVec<[Lease; 1]>,
    /// Points that the submission waits for and signals for the host.
    pub(super) sync: HostSync,
    request: ProfileRequest,
    /// How it is profiled, if not as the accelerator is.
    pub(super) profiling: Option<Profiling>,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("nodes", &self.graph().nodes.len()).finish_non_exhaustive()
    }
}

/// # Recordings
impl Accelerator {
    /// Begins a recording.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`] or [`Error::Closed`].
    pub fn begin_recording(&self) -> Result<Recording> {
        self.core().open()?;
        Ok(Recording::new(self.core().clone()))
    }
}

impl Recording {
    pub(crate) fn new(core: Arc<Core>) -> Recording {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let mode = core.profiler.mode();
        let begun_ns = (mode != Profiling::Off).then(|| core.profiler.now_ns());
        let request = ProfileRequest { mode, host_only: false, begun_ns };
        let graph = Graph::with_room(core.recorded.load(Ordering::Relaxed));
        let state = State {
            graph,
            kept: Vec::new(),
            leases: Vec::new(),
            tensors: Vec::new(),
            updated: Vec::new(),
            arguments: Vec::new(),
            inserted: 0,
            known: FxHashMap::default(),
            promised: SmallVec::new(),
            sync: HostSync::default(),
            request,
            profiling: None,
        };
        Recording { core, id, trial: None, state: RefCell::new(state) }
    }

    /// The shape of an operand.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignValue`] if it is a value of another recording.
    pub fn shape<'a>(&self, operand: impl IntoOperand<'a>) -> Result<Shape> {
        match operand.into() {
            Operand::Tensor(tensor) => Ok(tensor.shape()),
            Operand::Scalar(_) => Ok(Shape::default()),
            Operand::Value(value) => Ok(self.kind(self.own("shape", value)?).0),
        }
    }

    /// The element type of an operand.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignValue`] if it is a value of another recording.
    pub fn dtype<'a>(&self, operand: impl IntoOperand<'a>) -> Result<DType> {
        match operand.into() {
            Operand::Tensor(tensor) => Ok(tensor.dtype()),
            Operand::Scalar(scalar) => Ok(scalar.dtype),
            Operand::Value(value) => Ok(self.kind(self.own("dtype", value)?).1),
        }
    }

    /// Keeps values so that each becomes a tensor of its own: what is a tensor's contents as they are, or is among them
    /// before, is copied.
    pub(crate) fn keep_apart(&self, values: impl IntoIterator<Item = Value>) -> Result<Vec<Tensor>> {
        let mut kept = Vec::new();
        for value in values {
            let (_, apart) = self.keepable(self.own("keep", value)?);
            let value = if apart { value } else { self.copy(value)? };
            kept.push(self.keep(value)?);
        }
        Ok(kept)
    }

    /// Makes a value a tensor that outlives the recording. It has contents once the recording has ended. A value that
    /// is kept twice is two tensors, the second one a copy.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignValue`] if the value belongs to another recording.
    pub fn keep(&self, value: Value) -> Result<Tensor> {
        let id = self.own("keep", value)?;
        let root = self.graph().root(id);
        // Neither can a tensor be a view of one that is updated, or of an argument.
        let apart = self.graph().value(root).kept.is_some() || self.graph().values.state_of(root).is_some();
        if apart || self.declared(root).is_some() {
            return self.keep(self.copy(value)?);
        }
        let (shape, dtype) = self.kind(id);
        let storage = Storage::new(&self.core, dtype, None, Contents::Recorded);
        self.keep_as(root, storage.clone());
        Ok(Tensor::from_parts(storage, shape))
    }

    /// Ends the recording and submits it. Does not wait, unless too many submissions are in flight or memory is short.
    ///
    /// # Errors
    ///
    /// Errors of memory and of the device, and [`ArgumentError::NoPlan`](crate::error::ArgumentError::NoPlan) if the
    /// recording has arguments. Kept tensors are then [`Error::Discarded`].
    pub fn end_recording(mut self) -> Result<Submission> {
        self.refuse_arguments("end_recording")?;
        let state = self.state_mut();
        let (graph, request) = (std::mem::take(&mut state.graph), state.request);
        let (kept, leases) = (std::mem::take(&mut state.kept), std::mem::take(&mut state.leases));
        let (sync, updated) = (std::mem::take(&mut state.sync), std::mem::take(&mut state.updated));
        self.core.recorded.store(graph.nodes.len(), Ordering::Relaxed);
        let outside = Outside { leases, states: &updated };
        let submitted = CompiledGraph::new(self.catalog(), self.core.fusion, graph, outside.leases.len())
            .and_then(|compiled| execute(&self.core, compiled, &kept, outside, request, sync));
        if submitted.is_err() {
            discard(&kept);
        }
        Ok(Submission::new(self.core.clone(), submitted?))
    }

    /// Explains what will run if the recording ends now: which operations become one dispatch, where barriers stand,
    /// and which values are stored where. Nothing is done yet, and the recording goes on.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32; 64 * 64], [64, 64])?;
    /// let r = gpu.begin_recording()?;
    /// let h = r.matmul(&x, &x)?;
    /// let h = r.relu(h)?;
    /// let _kept = r.keep(h)?;
    /// let explanation = r.explain()?;
    /// assert_eq!((explanation.recorded.len(), explanation.run.len()), (2, 1));
    /// println!("{explanation}");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BindingTooLarge`] if an operand is too large for the device's bindings.
    pub fn explain(&self) -> Result<Explanation> {
        process::check()?;
        // Tensors that share a block are numbered apart, and told by the number of the first.
        let State { graph, leases, arguments, .. } = &*self.state();
        let first = |lease: &Lease| leases.iter().position(|l| l.address() == lease.address());
        let shared: Vec<Option<usize>> = leases.iter().map(first).collect();
        let argument = |version| {
            let found = arguments.iter().find(|argument| argument.tensor == version)?;
            Some(ExplainedArgument::new(found.name.clone(), found.least, found.most))
        };
        Explanation::new(self.catalog(), self.core.fusion, graph, &shared, argument)
    }

    /// Sets how this recording is profiled, independently of the accelerator.
    pub fn profiling(&self, mode: Profiling) {
        let State { request, profiling, .. } = &mut *self.edit();
        request.mode = mode;
        *profiling = Some(mode);
        request.begun_ns.get_or_insert_with(|| self.core.profiler.now_ns());
    }

    /// Uses another catalog's variants.
    pub(crate) fn try_out(&mut self, catalog: Arc<Catalog>) {
        self.trial = Some(catalog);
    }

    /// The same contents with another shape of as many elements; nothing is copied.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if the number of elements differs.
    pub fn reshape<'a>(&self, operand: impl IntoOperand<'a>, shape: impl Into<Shape>) -> Result<Value> {
        let (op, shape) = ("reshape", shape.into());
        let id = self.resolve(op, operand)?;
        let (from, dtype) = self.kind(id);
        if from.elements() != shape.elements() {
            return Err(Error::Length { op, shape, got: from.elements() });
        }
        let graph = &mut self.edit().graph;
        let root = graph.root(id);
        let alias = graph.add_value(shape, dtype, Origin::Alias(root));
        Ok(self.handle(alias))
    }

    /// A tensor of equal elements.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`].
    pub fn fill<T: Element>(&self, shape: impl Into<Shape>, element: T) -> Result<Value> {
        self.fill_as("fill", shape.into(), element)
    }

    /// The same, by the name of what the user has called.
    pub(super) fn fill_as<T: Element>(&self, op: &'static str, shape: Shape, element: T) -> Result<Value> {
        let id = self.produce(op, shape, T::DTYPE)?;
        if self.bytes(id) > 0 {
            let fill = Fill { word: element.fill_word(), output: id };
            self.push(self.label(op, id), fill)?;
        }
        Ok(self.handle(id))
    }

    /// A copy in memory of its own.
    ///
    /// # Errors
    ///
    /// Those of the operand.
    pub fn copy<'a>(&self, operand: impl IntoOperand<'a>) -> Result<Value> {
        let op = "copy";
        let from = self.resolve(op, operand)?;
        let (shape, dtype) = self.kind(from);
        let to = self.produce(op, shape, dtype)?;
        if self.bytes(to) > 0 {
            self.push(self.label(op, to), Copy { input: from, output: to })?;
        }
        Ok(self.handle(to))
    }
}

/// For the ops.
impl Recording {
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    pub(super) fn shared_core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(super) fn state(&self) -> Ref<'_, State> {
        self.state.borrow()
    }

    pub(super) fn edit(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }

    pub(super) fn state_mut(&mut self) -> &mut State {
        self.state.get_mut()
    }

    pub(super) fn graph(&self) -> Ref<'_, Graph> {
        Ref::map(self.state(), |state| &state.graph)
    }

    /// A value's size.
    pub(crate) fn bytes(&self, id: ValueId) -> u64 {
        self.graph().bytes(id)
    }

    /// The value whose memory this one has, and whether that memory can become a tensor's: an operation writes it, and
    /// no tensor has it yet.
    pub(super) fn keepable(&self, id: ValueId) -> (ValueId, bool) {
        let graph = self.graph();
        let root = graph.root(id);
        let info = graph.value(root);
        (root, info.kept.is_none() && info.origin == Origin::Produced)
    }

    pub(crate) fn own(&self, op: &'static str, value: Value) -> Result<ValueId> {
        process::check()?;
        if value.recording == self.id { Ok(value.id) } else { Err(Error::ForeignValue { op }) }
    }

    /// The operand as a value of this recording.
    pub(crate) fn resolve<'a>(&self, op: &'static str, operand: impl IntoOperand<'a>) -> Result<ValueId> {
        let tensor = match operand.into() {
            Operand::Value(value) => return self.as_of_call(self.own(op, value)?),
            Operand::Tensor(tensor) => tensor,
            Operand::Scalar(scalar) => return self.scalar(op, scalar),
        };
        if !Arc::ptr_eq(&tensor.storage.core, &self.core) {
            return Err(foreign_tensor(op, &tensor.storage.core, &self.core));
        }
        if let Some(state) = self.known_state(&tensor.storage) {
            return Ok(self.shaped(self.current(state), tensor.shape()));
        }
        let (lease, _) = tensor.storage.settled(op, tensor.shape())?;
        let (shape, dtype) = (tensor.shape(), tensor.dtype());
        self.check_views(op, &tensor.storage, &lease, shape)?;
        let mut state = self.edit();
        let State { graph, leases, tensors, known, promised, .. } = &mut *state;
        if promised.iter().any(|promised| promised.address() == lease.address()) {
            return Err(Error::NotSubmitted { op, shape });
        }
        let key = (Arc::as_ptr(&tensor.storage).addr(), lease.address());
        let id = *known.entry(key).or_insert_with(|| {
            leases.push(lease);
            tensors.push((tensor.storage.clone(), shape));
            graph.add_value(shape, dtype, Origin::Tensor((leases.len() - 1) as u32))
        });
        drop(state);
        Ok(self.shaped(id, shape))
    }

    /// A value that is no alias, in a shape of as many elements.
    pub(super) fn shaped(&self, id: ValueId, shape: Shape) -> ValueId {
        let graph = &mut self.edit().graph;
        let info = graph.value(id);
        if info.shape == shape {
            return id;
        }
        let dtype = info.dtype;
        graph.add_value(shape, dtype, Origin::Alias(id))
    }

    /// A scalar as a value of shape `[]`.
    fn scalar(&self, op: &'static str, scalar: Scalar) -> Result<ValueId> {
        let output = self.produce(op, Shape::default(), scalar.dtype)?;
        self.push(self.label("fill", output), Fill { word: scalar.word, output })?;
        Ok(output)
    }

    /// A value's shape and type.
    pub(crate) fn kind(&self, id: ValueId) -> (Shape, DType) {
        let graph = self.graph();
        let info = graph.value(id);
        (info.shape, info.dtype)
    }

    /// A new value that a node of this recording will write.
    pub(crate) fn produce(&self, op: &'static str, shape: Shape, dtype: DType) -> Result<ValueId> {
        process::check()?;
        check_size(&self.core, op, shape, dtype)?;
        Ok(self.produce_unchecked(shape, dtype))
    }

    /// The same, where another limit is checked when its operation is appended.
    pub(crate) fn produce_unchecked(&self, shape: Shape, dtype: DType) -> ValueId {
        self.edit().graph.add_value(shape, dtype, Origin::Produced)
    }

    pub(crate) fn label(&self, op: &'static str, id: ValueId) -> Label {
        let (shape, dtype) = self.kind(id);
        Label { op: LabelName::Op(op), shape, dtype }
    }

    /// Appends an operation, unless a binding can't span what it must see.
    pub(crate) fn push(&self, label: Label, op: impl Into<Op>) -> Result<()> {
        let node = Node::new(label, op);
        let graph = &mut self.edit().graph;
        lower::check(&node, &graph.values, self.catalog())?;
        graph.nodes.push(node);
        Ok(())
    }

    /// Makes a value that tensor.
    pub(super) fn keep_as(&self, id: ValueId, tensor: Arc<Storage>) {
        let State { graph, kept, .. } = &mut *self.edit();
        graph.values[id as usize].kept = Some(kept.len() as u32);
        kept.push(tensor);
    }

    /// The kernels, in the variants that will run.
    pub(crate) fn catalog(&self) -> &Catalog {
        self.trial.as_deref().unwrap_or(&self.core.catalog)
    }

    /// For what appends several nodes: if it fails, none of them stays.
    pub(crate) fn all_or_nothing<R>(&self, record: impl FnOnce(&Recording) -> Result<R>) -> Result<R> {
        let before = self.graph().nodes.len() - self.state().inserted;
        let result = record(self);
        if result.is_err() {
            // What was inserted among earlier nodes stays.
            let State { graph, inserted, .. } = &mut *self.edit();
            graph.nodes.truncate(before + *inserted);
        }
        result
    }

    /// The value as users hold it.
    pub(crate) fn handle(&self, id: ValueId) -> Value {
        Value { recording: self.id, id }
    }
}

pub(super) fn discard(kept: &[Arc<Storage>]) {
    for storage in kept {
        storage.settle(None, Contents::Discarded);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        discard(&self.state_mut().kept);
    }
}
