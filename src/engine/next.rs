//! Products that feed products: one whose result is the left-hand side of another one with few columns, and nothing else, becomes one
//! node with it, and that result is never stored. A pure function from nodes to nodes; the device says which are worth it.

use super::epilogue::{Epilogue, Source};
use super::fuse::{Places, joined_label};
use super::graph::{Graph, Label, Node, Work};
use super::op_code::OpCode;
use super::product::shape::simplified;
use super::product::{Next, Product};

/// Joins every pair that can be joined and that `pays`, at the place of the second one: all that it reads is there by then.
pub(crate) fn absorb_next(graph: &mut Graph, pays: impl Fn(&Graph, &Product, &Product) -> bool) {
    let mut nodes = std::mem::take(&mut graph.nodes);
    if nodes.iter().filter(|node| matches!(node.work, Work::Product(_))).nth(1).is_some() {
        let mut places = Places::new(graph, &nodes);
        for i in 0..nodes.len() {
            if let Some((place, joined)) = absorb_one(graph, &nodes, &places, i, &pays) {
                nodes[i] = joined;
                places.move_to(place, i);
            }
        }
        places.retain_places(&mut nodes);
    }
    graph.nodes = nodes;
}

/// The product at `i` together with the one that it reads from, and that one's place.
fn absorb_one(
    graph: &Graph,
    nodes: &[Node],
    places: &Places,
    i: usize,
    pays: impl Fn(&Graph, &Product, &Product) -> bool,
) -> Option<(usize, Node)> {
    let Work::Product(second) = &nodes[i].work else { return None };
    let root = graph.root(second.lhs.value);
    let place = places.place_of_writer(root)? as usize;
    let Work::Product(first) = &nodes[place].work else { return None };
    let only_here = graph.value(root).kept.is_none() && !places.read_elsewhere(root, [i as u32; 2]);
    let as_lhs = nodes[i].accesses.iter().filter(|access| graph.root(access.value) == root).count() == 1;
    if !only_here || !as_lhs || first.next.is_some() || second.next.is_some() {
        return None;
    }
    // A batch that shares its right-hand side is one tall matrix.
    let (first, second) = (simplified(first), simplified(second));
    let meet = first.batch == [1; 2]
        && second.batch == [1; 2]
        && second.lhs.along_k
        && graph.root(second.lhs.value) == root
        && [second.m, second.k] == [first.m, first.n];
    if !meet
        || second.alpha != 1.0
        || !adds_a_row(&second.epilogue, second.n)
        || !pays(graph, &first, &second)
    {
        return None;
    }
    let label = &nodes[place].label;
    let label = Label { op: joined_label(label, &nodes[i].label).op, ..label.clone() };
    let mut accesses = nodes[place].accesses.clone();
    accesses.retain(|access| !access.write);
    accesses.extend(nodes[i].accesses.iter().filter(|access| graph.root(access.value) != root).copied());
    let Product { n, rhs, epilogue, output, .. } = second;
    let joined = Product { next: Some(Next { n, rhs, epilogue }), output, ..first };
    Some((place, Node::new(label, Work::Product(Box::new(joined)), accesses)))
}

/// Whether that is all that the epilogue of a product with so many columns does, if anything.
fn adds_a_row(epilogue: &Epilogue, n: u32) -> bool {
    match (&epilogue.steps[..], &epilogue.extras[..]) {
        ([], []) => true,
        ([step], [row]) => {
            let operands = [step.operands[0], step.operands[1]];
            let added = step.op == OpCode::AddF32 && operands == [Source::Product, Source::Extra(0)];
            let is_row = row.row == 0 && (row.column == 1 || n == 1) && row.batch == [0; 2];
            added && is_row && !row.half
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use smallvec::{SmallVec, smallvec};

    use super::*;
    use crate::engine::epilogue::{Extra, Step};
    use crate::engine::graph::{LabelName, Origin, ValueId};
    use crate::engine::product::Factor;
    use crate::shape::{DType, Shape};

    const M: usize = 6;

    struct Build(Graph);

    impl Build {
        fn tensor(&mut self, shape: impl Into<Shape>) -> ValueId {
            self.0.add_value(shape.into(), DType::F32, Origin::Tensor(0))
        }

        fn label(op: &'static str) -> Label {
            Label { op: LabelName::Op(op), shape: [M].into(), dtype: DType::F32 }
        }

        /// A value of M rows times a tensor.
        fn product(&mut self, lhs: ValueId, [n, k]: [usize; 2], epilogue: Epilogue) -> ValueId {
            let rhs = self.tensor([k, n]);
            let output = self.0.add_value([M, n].into(), DType::F32, Origin::Produced);
            let factor = |value, along_k| Factor { value, along_k, batch: [0; 2] };
            let product = Product {
                m: M as u32,
                n: n as u32,
                k: k as u32,
                batch: [1; 2],
                lhs: factor(lhs, true),
                rhs: factor(rhs, false),
                alpha: 1.0,
                epilogue,
                next: None,
                output,
            };
            let inputs =
                [lhs, rhs].into_iter().chain(product.epilogue.extras.iter().map(|extra| extra.value));
            let mut accesses: SmallVec<_> = inputs.map(|value| self.0.whole(value, false)).collect();
            accesses.push(self.0.whole(output, true));
            self.0.nodes.push(Node::new(Self::label("matmul"), Work::Product(Box::new(product)), accesses));
            output
        }

        fn joined(mut self) -> Vec<Node> {
            absorb_next(&mut self.0, |_, _, _| true);
            self.0.nodes
        }
    }

    fn added(value: ValueId, row: u32) -> Epilogue {
        let step =
            Step { op: OpCode::AddF32, operands: [Source::Product, Source::Extra(0), Source::Product] };
        let extra = Extra { value, batch: [0; 2], row, column: 1, half: false };
        Epilogue { steps: smallvec![step], extras: smallvec![extra], ..Epilogue::default() }
    }

    fn next(node: &Node) -> Option<&Next> {
        match &node.work {
            Work::Product(product) => product.next.as_ref(),
            _ => panic!("not a product"),
        }
    }

    #[test]
    fn two_products_become_one_node_that_never_stores_the_first() {
        let mut b = Build(Graph::default());
        let (x, bias) = (b.tensor([M, 8]), b.tensor([3]));
        let first = b.product(x, [4, 8], Epilogue::default());
        let second = b.product(first, [3, 4], added(bias, 0));
        let nodes = b.joined();
        assert_eq!((nodes.len(), nodes[0].label.to_string().as_str()), (1, "matmul+matmul 6 f32"));
        assert_eq!(next(&nodes[0]).map(|next| (next.n, next.epilogue.extras.len())), Some((3, 1)));
        let of = |write| move |access: &&crate::engine::graph::Access| access.write == write;
        let written: Vec<_> = nodes[0].accesses.iter().filter(of(true)).map(|a| a.value).collect();
        assert_eq!(written, [second]);
        let reads: Vec<_> = nodes[0].accesses.iter().filter(of(false)).map(|a| a.value).collect();
        assert!(reads.len() == 4 && reads.contains(&bias) && !reads.contains(&first), "{reads:?}");
    }

    #[test]
    fn a_third_product_stays_by_itself() {
        let mut b = Build(Graph::default());
        let mut last = b.tensor([M, 4]);
        for _ in 0..3 {
            last = b.product(last, [4, 4], Epilogue::default());
        }
        let nodes = b.joined();
        assert_eq!(nodes.iter().map(|node| next(node).is_some()).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn what_others_need_is_stored() {
        let pair = |then: &dyn Fn(&mut Build, ValueId)| {
            let mut b = Build(Graph::default());
            let x = b.tensor([M, 8]);
            let first = b.product(x, [M, 8], Epilogue::default());
            b.product(first, [3, M], Epilogue::default());
            then(&mut b, first);
            b.joined().iter().filter(|node| matches!(node.work, Work::Product(_))).count()
        };
        assert_eq!(pair(&|_, _| ()), 1);
        assert_eq!(pair(&|b, first| b.0.values[first as usize].kept = Some(0)), 2, "kept");
        let read = |b: &mut Build, first| {
            let accesses = smallvec![b.0.whole(first, false)];
            b.0.nodes.push(Node::new(Build::label("reader"), Work::Copy, accesses));
        };
        assert_eq!(pair(&read), 2, "read by another one");
        let twice = |b: &mut Build, first| {
            let Some(Node { work: Work::Product(second), accesses, .. }) = b.0.nodes.last_mut() else {
                return;
            };
            second.epilogue = added(first, 0);
            let access = accesses[0];
            accesses.insert(1, access);
        };
        assert_eq!(pair(&twice), 2, "read by its epilogue, too");
    }

    #[test]
    fn only_a_row_may_be_added_behind_the_second() {
        let behind = |epilogue: &dyn Fn(&mut Build) -> Epilogue| {
            let mut b = Build(Graph::default());
            let x = b.tensor([M, 8]);
            let first = b.product(x, [4, 8], Epilogue::default());
            let epilogue = epilogue(&mut b);
            b.product(first, [3, 4], epilogue);
            b.joined().len()
        };
        assert_eq!(behind(&|b| added(b.tensor([3]), 0)), 1);
        assert_eq!(behind(&|b| added(b.tensor([M, 3]), 3)), 2, "one for each row");
        let negated = Step { op: OpCode::NegF32, operands: [Source::Product; 3] };
        assert_eq!(behind(&|_| Epilogue { steps: smallvec![negated], ..Epilogue::default() }), 2);
    }
}
