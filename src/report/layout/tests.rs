use super::*;

fn item(i: usize, stage: Option<usize>) -> Item {
    Item { width: 90.0 + (i * 37 % 110) as f64, height: 40.0 + (i * 17 % 30) as f64, stage }
}

/// Numbers that look random and are the same every time.
fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % below.max(1)
    }
}

/// Inputs, then steps that read a few earlier ones; with stages or without.
fn random(seed: u64, inputs: usize, steps: usize, staged: bool) -> (Vec<Item>, Vec<(usize, usize)>) {
    let mut next = numbers(seed);
    let mut items: Vec<Item> = (0..inputs).map(|i| item(i, None)).collect();
    let (mut edges, mut stage) = (Vec::new(), 0);
    for i in inputs..inputs + steps {
        let mut reads: Vec<usize> = (0..1 + next(3)).map(|_| next(i)).collect();
        reads.sort_unstable();
        reads.dedup();
        if staged && reads.iter().any(|&read| items[read].stage == Some(stage)) {
            stage += 1;
        }
        edges.extend(reads.into_iter().map(|read| (read, i)));
        items.push(item(i, Some(stage)));
    }
    (items, edges)
}

fn check(items: &[Item], edges: &[(usize, usize)]) -> Layout {
    let layout = arrange(items, edges);
    assert_eq!(layout.positions.len(), items.len());
    for (i, (a, item)) in layout.positions.iter().zip(items).enumerate() {
        assert!(a.x >= 0.0 && a.x + item.width <= layout.width, "{i}: {a:?} of {}", layout.width);
        assert!(a.y >= 0.0 && a.y + item.height <= layout.height, "{i}: {a:?} of {}", layout.height);
        for (j, (b, other)) in layout.positions.iter().zip(items).enumerate().skip(i + 1) {
            let apart = a.x + item.width <= b.x
                || b.x + other.width <= a.x
                || a.y + item.height <= b.y
                || b.y + other.height <= a.y;
            assert!(apart, "{i} {a:?} and {j} {b:?} overlap");
        }
    }
    for &(from, to) in edges {
        assert!(layout.positions[from].row < layout.positions[to].row, "{from} -> {to}");
        let ends = layout.pieces.iter().filter(|p| (p.source, p.target) == (from, Some(to))).count();
        assert_eq!(ends, 1, "{from} -> {to}");
    }
    assert_eq!(layout.pieces.iter().filter(|p| p.target.is_some()).count(), edges.len());
    for piece in &layout.pieces {
        assert!(piece.from.1 <= piece.bend && piece.bend < piece.to.1, "{piece:?}");
        // Straight down from a box or from the piece before, or from where another one that does so bends.
        let source = (layout.positions[piece.source], &items[piece.source]);
        let box_end = (source.0.x + source.1.width / 2.0, source.0.y + source.1.height);
        let parts = |p: &Piece| p != piece && (p.from.0, p.bend) == piece.from && p.source == piece.source;
        let goes_on = |p: &Piece| p.to == piece.from;
        assert!(
            piece.from == box_end || layout.pieces.iter().any(|p| goes_on(p) || parts(p)),
            "{piece:?} begins nowhere"
        );
        if let Some(target) = piece.target {
            let (place, item) = (layout.positions[target], &items[target]);
            assert!((place.x..=place.x + item.width).contains(&piece.to.0) && piece.to.1 == place.y);
        }
        // The straight part passes beside every box.
        for (place, item) in layout.positions.iter().zip(items) {
            let beside = piece.from.0 <= place.x || piece.from.0 >= place.x + item.width;
            assert!(beside || piece.from.1 >= place.y + item.height || piece.bend <= place.y, "{piece:?}");
        }
    }
    let stages: Vec<usize> = items.iter().filter_map(|item| item.stage).collect();
    for (line, y) in layout.stage_lines.iter().enumerate() {
        for (place, item) in layout.positions.iter().zip(items) {
            assert!(place.y > *y || place.y + item.height < *y, "line {line} through {place:?}");
            if let Some(stage) = item.stage {
                assert_eq!(place.y > *y, stage > line, "stage {stage}, line {line}");
            }
        }
    }
    assert_eq!(layout.stage_lines.len(), stages.last().copied().unwrap_or(0));
    layout
}

#[test]
fn nothing_and_one_box() {
    let nothing = arrange(&[], &[]);
    assert_eq!((nothing.width, nothing.height), (0.0, 0.0));
    let one = check(&[item(0, Some(0))], &[]);
    assert_eq!(one.positions, [Position { x: 0.0, y: 0.0, row: 0 }]);
}

#[test]
fn random_graphs_are_drawn_without_overlaps() {
    for seed in 0..60 {
        let mut next = numbers(seed);
        let (inputs, steps) = (next(6), 1 + next(40));
        for staged in [false, true] {
            let (items, edges) = random(seed, inputs, steps, staged);
            check(&items, &edges);
        }
    }
}

#[test]
fn two_hundred_boxes_are_no_matter() {
    for staged in [false, true] {
        let (items, edges) = random(7, 20, 200, staged);
        check(&items, &edges);
    }
    // All side by side; and one that every step of a long chain reads.
    let wide: Vec<Item> = (0..200).map(|i| item(i, Some(0))).collect();
    assert!(check(&wide, &[]).width < 2000.0);
    let mut chain: Vec<Item> = vec![item(0, None)];
    chain.extend((1..=200).map(|i| item(i, Some(i - 1))));
    let edges: Vec<(usize, usize)> =
        (1..=200).flat_map(|i| [(0, i), (i - 1, i)]).filter(|edge| *edge != (0, 1)).chain([(0, 1)]).collect();
    let layout = check(&chain, &edges);
    assert!(layout.width < 500.0, "{}", layout.width);
}

#[test]
fn the_same_graph_gives_the_same_picture() {
    let (items, edges) = random(3, 5, 50, true);
    let (once, again) = (arrange(&items, &edges), arrange(&items, &edges));
    assert_eq!((once.positions, once.pieces), (again.positions, again.pieces));
}
