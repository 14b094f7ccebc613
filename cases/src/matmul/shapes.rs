//! Which matmuls there are.

use super::{Case, Spec, Then, matmul};
use crate::elementwise::STEPS;

/// Adds the cases.
pub(crate) fn cases(out: &mut Vec<Case>) {
    edges(out);
    primes(out);
    vectors(out);
    long(out);
    batches(out);
    transposes(out);
    accumulations(out);
    epilogues(out);
    repeatable(out);
    timed(out);
}

/// Around everything that tiles, subgroups and vectors are made of.
const EDGES: [usize; 20] = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129];

fn edges(out: &mut Vec<Case>) {
    for e in EDGES {
        for (x, y) in [(33, 20), (24, 9), (8, 64)] {
            out.push(matmul(e, x, y).case());
            out.push(matmul(x, e, y).case());
            out.push(matmul(x, y, e).case());
        }
    }
    for n in [0, 1, 2, 4, 5, 16, 17, 63, 64, 65, 100, 130] {
        out.push(matmul(n, n, n).case());
    }
    for n in [255, 256, 257, 300] {
        out.push(matmul(n, n, n).case().large());
    }
}

fn primes(out: &mut Vec<Case>) {
    const PRIMES: [usize; 9] = [2, 3, 7, 13, 29, 47, 71, 97, 131];
    for (i, &m) in PRIMES.iter().enumerate() {
        for step in [1, 2, 4] {
            let (n, k) = (PRIMES[(i + step) % 9], PRIMES[(i + 2 * step) % 9]);
            out.push(matmul(m, n, k).case());
        }
    }
}

fn vectors(out: &mut Vec<Case>) {
    for n in [1, 2, 3, 4, 5, 17, 64, 100, 257, 1000, 1023] {
        out.push(matmul(1, n, 37).case());
        out.push(matmul(n, 1, 37).case());
        out.push(matmul(1, 1, n).case());
        out.push(matmul(n, 33, 1).case());
        out.push(matmul(1, n, 40).transposed(false, true).case());
        out.push(matmul(n, 2, 40).transposed(true, false).case());
        out.push(matmul(n.min(100), 35, 0).case());
    }
    for columns in [1, 2, 3, 4, 5, 10, 16] {
        out.push(matmul(50, columns, 130).case());
        out.push(matmul(50, columns, 132).then(&[Then::Bias, Then::Residual]).case());
        out.push(matmul(50, columns, 131).transposed(false, true).case());
        out.push(matmul(columns, 50, 131).case());
        out.push(matmul(columns, 52, 132).transposed(true, true).case());
    }
    // Vectors as such.
    let spec =
        |lhs: &[usize], rhs: &[usize]| Spec { lhs: lhs.to_vec(), rhs: rhs.to_vec(), ..matmul(1, 1, 1) };
    for (lhs, rhs) in [
        (&[19][..], &[19, 8][..]),
        (&[8, 19], &[19]),
        (&[19], &[19]),
        (&[3, 8, 20], &[20]),
        (&[20], &[3, 20, 7]),
    ] {
        out.push(spec(lhs, rhs).case());
    }
}

/// More of k than one invocation's loops may take on lavapipe (65,535 iterations), in one go or in all.
fn long(out: &mut Vec<Case>) {
    out.push(matmul(5, 5, 65_537).whole().case());
    for (m, n, k) in [(3, 5, 65_537), (1, 1, 65_537), (5, 3, 70_000), (17, 33, 65_536), (2, 64, 70_001)] {
        out.push(matmul(m, n, k).whole().case().large());
    }
    // Past the limit for shared tiles, and on every variant: the largest that fits a binding where one column is packed
    // as a panel.
    out.push(matmul(4, 8, 1_041_004).whole().case());
    for (m, n, k) in [(1, 8, 530_000), (3, 4, 600_001), (1, 1, 2_200_000), (20, 1, 300_000)] {
        out.push(matmul(m, n, k).whole().case().large());
    }
    // Just so much that a part of k is longer than a loop may be, for kernels that own 4, 16 and 32 rows.
    for (m, n, k) in [(5, 8, 1_041_004), (33, 8, 521_004)] {
        out.push(matmul(m, n, k).whole().case().large());
    }
    // Split among workgroups, and not evenly.
    for k in [127, 128, 129, 255, 500, 513, 1000, 1023, 2047] {
        out.push(matmul(7, 10, k).case());
        out.push(matmul(16, 64, k).then(&[Then::Bias, Then::Unary("relu", [0.0; 2])]).case());
    }
}

fn batches(out: &mut Vec<Case>) {
    for (lhs, rhs) in [
        (&[2, 3, 4][..], &[2, 4, 5][..]),
        (&[2, 16, 8], &[2, 8, 64]),
        (&[3, 5, 7], &[7, 9]),
        (&[3, 16, 8], &[8, 64]),
        (&[5, 7], &[3, 7, 9]),
        (&[1, 5, 7], &[4, 7, 9]),
        (&[4, 5, 7], &[1, 7, 9]),
        (&[2, 3, 5, 7], &[2, 3, 7, 9]),
        (&[2, 3, 5, 8], &[3, 8, 12]),
        (&[2, 1, 5, 8], &[1, 3, 8, 12]),
        (&[1, 3, 5, 8], &[2, 1, 8, 12]),
        (&[2, 3, 5, 8], &[8, 12]),
        (&[3, 5, 8], &[2, 1, 8, 12]),
        (&[2, 3, 17, 9], &[2, 1, 9, 3]),
        (&[7, 1, 13], &[7, 13, 1]),
        (&[7, 33, 1], &[7, 1, 35]),
        (&[0, 3, 4], &[0, 4, 5]),
        (&[2, 3, 0], &[2, 0, 5]),
        (&[9, 1, 64], &[9, 64, 33]),
        (&[6, 40, 12], &[6, 12, 2]),
        // Several batch dimensions become two, or operands are stretched first.
        (&[2, 3, 2, 5, 8], &[2, 3, 2, 8, 12]),
        (&[2, 3, 2, 5, 8], &[2, 8, 12]),
        (&[2, 3, 2, 5, 8], &[3, 1, 8, 12]),
        (&[2, 1, 3, 1, 5, 8], &[1, 2, 1, 3, 8, 12]),
        (&[2, 1, 3, 5, 8], &[8, 12]),
        (&[2, 2, 1, 2, 3, 2, 3, 7], &[2, 1, 2, 3, 1, 7, 9]),
    ] {
        let spec = Spec { lhs: lhs.to_vec(), rhs: rhs.to_vec(), ..matmul(1, 1, 1) };
        out.push(spec.clone().case());
        for then in [&[Then::Residual][..], &[Then::Bias, Then::Scale(0.5)]] {
            out.push(spec.clone().then(then).case().large());
        }
    }
    let spec = Spec { lhs: vec![9, 33, 20], rhs: vec![9, 20, 36], ..matmul(1, 1, 1) };
    out.push(spec.then(&[Then::Bias, Then::Residual]).case());
    let spec = Spec { lhs: vec![70_000, 1, 3], rhs: vec![70_000, 3, 2], ..matmul(1, 1, 1) };
    out.push(spec.case());
}

fn transposes(out: &mut Vec<Case>) {
    for (lhs, rhs) in [(true, false), (false, true), (true, true)] {
        for (m, n, k) in [
            (4, 8, 12),
            (5, 7, 9),
            (16, 64, 8),
            (17, 65, 9),
            (64, 64, 32),
            (33, 36, 31),
            (36, 33, 40),
            (1, 33, 40),
            (33, 1, 41),
            (130, 132, 20),
            (129, 131, 21),
            (3, 2, 500),
        ] {
            out.push(matmul(m, n, k).transposed(lhs, rhs).case());
        }
        for (lhs_shape, rhs_shape) in [(&[3, 8, 12][..], &[3, 12, 16][..]), (&[2, 3, 5, 7], &[3, 7, 9])] {
            let spec = Spec { lhs: lhs_shape.to_vec(), rhs: rhs_shape.to_vec(), ..matmul(1, 1, 1) };
            out.push(spec.transposed(lhs, rhs).case());
        }
    }
}

fn accumulations(out: &mut Vec<Case>) {
    for (alpha, beta) in [(2.0, None), (-0.5, Some(1.0)), (1.0, Some(0.25)), (0.0, Some(3.0))] {
        for (m, n, k) in [(16, 64, 16), (33, 36, 9), (1, 40, 24), (8, 8, 0)] {
            out.push(Spec { alpha, beta, ..matmul(m, n, k) }.case());
        }
        for (m, n, k) in [(33, 35, 9), (40, 1, 24)] {
            out.push(Spec { alpha, beta, ..matmul(m, n, k) }.case().large());
        }
    }
    let then = [Then::Bias, Then::Unary("relu", [0.0; 2]), Then::Scale(0.5)];
    out.push(Spec { alpha: 0.5, beta: Some(2.0), ..matmul(33, 35, 21) }.then(&then).case().large());
}

fn epilogues(out: &mut Vec<Case>) {
    let plain = |name| Then::Unary(name, [0.0; 2]);
    let relu = plain("relu");
    // New constants are new pipelines: one epilogue with all ways of indexing is enough for most variants.
    for (m, n, k) in [(33, 64, 17), (17, 35, 12), (50, 3, 20), (1, 70, 9)] {
        out.push(matmul(m, n, k).then(&[Then::ColumnBias, relu, Then::Residual]).case());
        for then in
            [&[Then::Bias][..], &[Then::ColumnBias], &[Then::Residual], &[Then::Bias, relu, Then::Residual]]
        {
            out.push(matmul(m, n, k).then(then).case().large());
        }
    }
    // The module with every operation, of every kernel: a whole sum, one in parts, and few columns.
    let gelu = plain("gelu");
    out.push(matmul(33, 36, 17).then(&[Then::Bias, gelu]).case());
    out.push(matmul(7, 10, 600).then(&[Then::Bias, gelu, Then::Residual]).case());
    out.push(matmul(50, 3, 20).then(&[Then::Plus(-1.0), gelu]).case());
    out.push(matmul(3, 50, 20).then(&[Then::Plus(-1.0), gelu]).case());
    // A bias of each kind.
    for (m, n, k) in [(33, 64, 17), (17, 35, 300), (50, 3, 20)] {
        out.push(matmul(m, n, k).then(&[Then::Bias, Then::ColumnBias, relu]).case().large());
        out.push(matmul(m, n, k).then(&[Then::ColumnBias, Then::Bias]).case().large());
    }
    // Every function once: the same code on every variant, so the others need not compile it.
    let with = |name, a, b| Then::Unary(name, [a, b]);
    // ReLU comes everywhere, and a root needs numbers above 0.
    let functions = STEPS.iter().filter(|name| !["relu", "sqrt"].contains(name)).map(|name| plain(name));
    let parameters = [with("leaky_relu", 0.1, 0.0), with("elu", 0.7, 0.0), with("clip", -0.5, 2.0)];
    for function in functions.chain(parameters).chain([relu]) {
        // Around zero, where activations are themselves.
        let shift = Then::Plus(-1.0);
        out.push(matmul(20, 70, 8).then(&[shift, function]).case().large());
        out.push(matmul(19, 33, 7).then(&[Then::Bias, shift, function]).case().large());
    }
    for then in [
        &[plain("abs"), plain("sqrt")][..],
        &[Then::Times],
        &[Then::Minus],
        &[Then::ColumnBias, Then::Times, relu],
        &[Then::Bias, Then::Residual, Then::Residual],
        &[Then::Scale(2.0), Then::Plus(1.0), Then::Bias, relu, Then::Residual, Then::Scale(0.5)],
    ] {
        out.push(matmul(20, 68, 8).then(then).case().large());
        out.push(matmul(19, 33, 40).then(then).case().large());
    }
}

/// The same bits every time.
fn repeatable(out: &mut Vec<Case>) {
    for (m, n, k) in [(100, 100, 1000), (3, 3, 5000), (1, 200, 3000)] {
        out.push(matmul(m, n, k).case().repeated());
    }
}

/// Those that benches time.
fn timed(out: &mut Vec<Case>) {
    for n in [512, 1000, 1023, 1024, 2048] {
        out.push(matmul(n, n, n).case().bench(format!("matmul_{n}")));
    }
    for (m, n, k) in [(64, 4096, 4096), (4096, 64, 4096)] {
        out.push(matmul(m, n, k).case().bench(format!("matmul_{m}x{n}x{k}")));
    }
    out.push(matmul(4096, 1, 4096).case().bench("matvec_4096"));
}
