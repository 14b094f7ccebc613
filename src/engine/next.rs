//! Products that feed products: one whose result is the left-hand side of another one with few columns, and nothing else, becomes one
//! node with it, and so does the one that makes its own left-hand side, if it has the same epilogue. What goes from one to the next is
//! no value of the graph any more. A pure function from nodes to nodes; the device says which are worth it.

use super::epilogue::{Epilogue, Source};
use super::fuse::{Places, joined_label};
use super::graph::{Graph, Label, Node, Work};
use super::op_code::OpCode;
use super::product::shape::simplified;
use super::product::{Joint, Product};

/// Joins all that can be joined and that `pays`, at the place of the last one: all that it reads is there by then.
pub(crate) fn absorb_next(graph: &mut Graph, pays: impl Fn(&Graph, &Product) -> bool) {
    let mut nodes = std::mem::take(&mut graph.nodes);
    if nodes.iter().filter(|node| matches!(node.work, Work::Product(_))).nth(1).is_some() {
        let mut places = Places::new(graph, &nodes);
        for i in 0..nodes.len() {
            while let Some((place, joined)) = join_one(graph, &nodes, &places, i, &pays) {
                nodes[i] = joined;
                places.move_to(place, i);
            }
        }
        places.retain_places(&mut nodes);
    }
    graph.nodes = nodes;
}

/// The product at `i` together with the one that makes its left-hand side, and that one's place.
fn join_one(
    graph: &Graph,
    nodes: &[Node],
    places: &Places,
    i: usize,
    pays: impl Fn(&Graph, &Product) -> bool,
) -> Option<(usize, Node)> {
    let Work::Product(product) = &nodes[i].work else { return None };
    let root = graph.root(product.lhs.value);
    let place = places.place_of_writer(root)? as usize;
    let Work::Product(maker) = &nodes[place].work else { return None };
    let only_here = graph.value(root).kept.is_none() && !places.read_elsewhere(root, [i as u32; 2]);
    let as_lhs = nodes[i].accesses.iter().filter(|access| graph.root(access.value) == root).count() == 1;
    if !only_here || !as_lhs || product.joint.first.is_some() || maker.joint.next.is_some() {
        return None;
    }
    // A batch that shares its right-hand side is one tall matrix.
    let (maker, product) = (simplified(maker), simplified(product));
    let meet = maker.batch == [1; 2]
        && product.batch == [1; 2]
        && product.lhs.along_k
        && graph.root(product.lhs.value) == root
        && [product.m, product.k] == [maker.m, maker.n];
    if !meet {
        return None;
    }
    let output = product.output;
    let joined = if product.joint.next.is_some() {
        let alike = maker.alpha == product.alpha && maker.epilogue.is_like(&product.epilogue);
        let next = product.joint.next.clone();
        alike.then(|| Product { joint: Joint { first: Some(Box::new(maker)), next }, ..product })
    } else {
        let plain = product.alpha == 1.0 && adds_a_row(&product.epilogue, product.n);
        let joint = Joint { first: None, next: Some(Box::new(product)) };
        plain.then_some(Product { joint, output, ..maker })
    };
    let joined = joined.filter(|product| pays(graph, product))?;
    let label = &nodes[place].label;
    let label = Label { op: joined_label(label, &nodes[i].label).op, ..label.clone() };
    let mut accesses = nodes[place].accesses.clone();
    accesses.retain(|access| !access.write);
    accesses.extend(nodes[i].accesses.iter().filter(|access| graph.root(access.value) != root).copied());
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
                joint: Joint::default(),
                output,
            };
            let inputs =
                [lhs, rhs].into_iter().chain(product.epilogue.extras.iter().map(|extra| extra.value));
            let mut accesses: SmallVec<_> = inputs.map(|value| self.0.whole(value, false)).collect();
            accesses.push(self.0.whole(output, true));
            self.0.nodes.push(Node::new(Self::label("matmul"), Work::Product(Box::new(product)), accesses));
            output
        }

        fn joined(self) -> Vec<Node> {
            self.joined_where(|_| true)
        }

        fn joined_where(mut self, pays: impl Fn(&Product) -> bool) -> Vec<Node> {
            absorb_next(&mut self.0, |_, product| pays(product));
            self.0.nodes
        }
    }

    fn added(value: ValueId, row: u32) -> Epilogue {
        let step =
            Step { op: OpCode::AddF32, operands: [Source::Product, Source::Extra(0), Source::Product] };
        let extra = Extra { value, batch: [0; 2], row, column: 1, half: false };
        Epilogue { steps: smallvec![step], extras: smallvec![extra], ..Epilogue::default() }
    }

    fn joint(node: &Node) -> &Joint {
        match &node.work {
            Work::Product(product) => &product.joint,
            _ => panic!("not a product"),
        }
    }

    fn values(node: &Node, write: bool) -> Vec<ValueId> {
        node.accesses.iter().filter(|access| access.write == write).map(|access| access.value).collect()
    }

    #[test]
    fn two_products_become_one_node_that_never_stores_the_first() {
        let mut b = Build(Graph::default());
        let (x, bias) = (b.tensor([M, 8]), b.tensor([3]));
        let first = b.product(x, [4, 8], Epilogue::default());
        let second = b.product(first, [3, 4], added(bias, 0));
        let nodes = b.joined();
        assert_eq!((nodes.len(), nodes[0].label.to_string().as_str()), (1, "matmul+matmul 6 f32"));
        let next = joint(&nodes[0]).next.as_ref();
        assert_eq!(next.map(|next| (next.n, next.epilogue.extras.len())), Some((3, 1)));
        assert_eq!(values(&nodes[0], true), [second]);
        let reads = values(&nodes[0], false);
        assert!(reads.len() == 4 && reads.contains(&bias) && !reads.contains(&first), "{reads:?}");
    }

    /// Products of four columns, and one of three behind them. Pairs are worth it only with that one.
    fn in_a_row(epilogues: &dyn Fn(&mut Build, usize) -> Epilogue, count: usize) -> Vec<Node> {
        let mut b = Build(Graph::default());
        let mut last = b.tensor([M, 4]);
        for i in 0..count {
            let epilogue = epilogues(&mut b, i);
            last = b.product(last, [4, 4], epilogue);
        }
        b.product(last, [3, 4], Epilogue::default());
        b.joined_where(|product| product.joint.next.as_ref().is_some_and(|next| next.n == 3))
    }

    #[test]
    fn the_one_in_front_of_two_joins_them_if_its_epilogue_is_the_same() {
        let adds = |b: &mut Build, _| added(b.tensor([4]), 0);
        let nodes = in_a_row(&adds, 2);
        assert_eq!(nodes.len(), 1);
        let Joint { first, next } = joint(&nodes[0]);
        assert!(first.is_some() && next.is_some());
        assert_eq!((values(&nodes[0], false).len(), values(&nodes[0], true).len()), (6, 1));
        let different = |b: &mut Build, i| if i == 0 { Epilogue::default() } else { adds(b, i) };
        assert_eq!(in_a_row(&different, 2).len(), 2);
    }

    #[test]
    fn a_fourth_product_stays_by_itself() {
        let nodes = in_a_row(&|_, _| Epilogue::default(), 3);
        assert_eq!(nodes.iter().map(|node| joint(node).first.is_some()).collect::<Vec<_>>(), [false, true]);
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
