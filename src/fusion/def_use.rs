//! Who makes a value and who reads it, and the walk over the nodes that every pass of fusion is.

use smallvec::SmallVec;

use crate::ir::branches::branch;
use crate::ir::graph::{Graph, Node};
use crate::ir::op::Op;
use crate::ir::value::{Origin, StateId, ValueId};

/// Visits every node in order. A visit may join a node before it into this one, and says so by [`DefUse::move_to`];
/// what was joined is dropped in the end. The order of nodes is kept otherwise.
pub(super) fn each_node(graph: &mut Graph, mut visit: impl FnMut(&Graph, &mut [Node], &mut DefUse, usize)) {
    let mut nodes = std::mem::take(&mut graph.nodes);
    let mut def_use = DefUse::new(graph, &nodes);
    for i in 0..nodes.len() {
        visit(graph, &mut nodes, &mut def_use, i);
    }
    def_use.retain_places(&mut nodes);
    graph.nodes = nodes;
}

/// Who reads and writes a value, and where nodes have moved to.
pub(super) struct DefUse {
    /// The node that a node was joined into; itself if it was not.
    moved: Vec<u32>,
    readers: Vec<SmallVec<[u32; 2]>>,
    /// The one node that writes a value; none if there are several, or it comes from outside.
    writer: Vec<Option<u32>>,
    /// For each tensor that is updated, the nodes that write it. No pass moves those.
    updates: Vec<SmallVec<[u32; 2]>>,
}

impl DefUse {
    pub(super) fn new(graph: &Graph, nodes: &[Node]) -> DefUse {
        let values = graph.values.len();
        let mut def_use = DefUse {
            moved: (0..nodes.len() as u32).collect(),
            readers: vec![SmallVec::new(); values],
            writer: vec![None; values],
            updates: vec![SmallVec::new(); graph.values.states().len()],
        };
        let mut written = vec![false; values];
        for (i, node) in nodes.iter().enumerate() {
            node.op.touches(|value, write| {
                let root = graph.root(value) as usize;
                if let Origin::State(state) = graph.values[root].origin
                    && write
                {
                    def_use.updates[state as usize].push(i as u32);
                }
                if !write {
                    def_use.readers[root].push(i as u32);
                } else if branch!("fuse: written again", std::mem::replace(&mut written[root], true)) {
                    def_use.writer[root] = None;
                } else {
                    def_use.writer[root] = Some(i as u32);
                }
            });
        }
        def_use
    }

    /// Whether an operation finds what it reads and writes the same at both places: none in between updates a tensor of
    /// which it reads or writes a version.
    pub(super) fn is_movable(&self, graph: &Graph, op: &Op, from: u32, to: u32) -> bool {
        if self.updates.is_empty() {
            return true;
        }
        let mut movable = true;
        op.touches(|value, _| {
            let updates = graph.values.state_of(value).map(|state| &self.updates[state as usize]);
            movable &= updates.into_iter().flatten().all(|&update| update <= from || update >= to);
        });
        branch!("fuse: past an update", !movable);
        movable
    }

    /// The first place behind another at which a tensor is updated.
    pub(super) fn next_update(&self, state: StateId, after: u32) -> u32 {
        self.updates[state as usize]
            .iter()
            .copied()
            .filter(|&update| update > after)
            .min()
            .unwrap_or(u32::MAX)
    }

    /// Where the readers of a value are by now.
    pub(super) fn reader_places(&self, root: ValueId) -> impl Iterator<Item = u32> {
        self.readers[root as usize].iter().map(|&reader| self.find(reader))
    }

    /// Readers of one value read another instead.
    pub(super) fn rename(&mut self, from: ValueId, to: ValueId) {
        let readers = std::mem::take(&mut self.readers[from as usize]);
        self.readers[to as usize].extend(readers);
    }

    fn find(&self, node: u32) -> u32 {
        let mut place = node;
        while self.moved[place as usize] != place {
            place = self.moved[place as usize];
        }
        place
    }

    /// Where the one node is by now that writes the value; none if there are several, or it comes from outside.
    pub(super) fn place_of_writer(&self, root: ValueId) -> Option<u32> {
        self.writer[root as usize].map(|writer| self.find(writer))
    }

    pub(super) fn move_to(&mut self, from: usize, to: usize) {
        self.moved[from] = to as u32;
    }

    /// Drops the nodes that were joined into others.
    pub(super) fn retain_places(&self, nodes: &mut Vec<Node>) {
        let mut own = (0..).zip(&self.moved).map(|(i, place)| i == *place);
        nodes.retain(|_| own.next().unwrap_or(true));
    }

    /// Whether the value is read by a node other than those at these two places.
    pub(super) fn read_elsewhere(&self, root: ValueId, here: [u32; 2]) -> bool {
        self.readers[root as usize].iter().any(|&reader| !here.contains(&self.find(reader)))
    }

    /// Whether every reader is at one of the two places, or comes after the later one.
    pub(super) fn waits_for(&self, root: ValueId, earlier: u32, later: u32) -> bool {
        self.readers[root as usize].iter().all(|&reader| {
            let place = self.find(reader);
            place == earlier || place >= later
        })
    }
}
