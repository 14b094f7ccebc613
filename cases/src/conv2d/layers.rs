//! Which convolutions there are.

use super::{Case, Then, conv};
use crate::elementwise::STEPS;

/// Adds the cases.
pub(crate) fn cases(out: &mut Vec<Case>) {
    sizes(out);
    channels(out);
    kernels(out);
    spacings(out);
    groups(out);
    networks(out);
    long(out);
    epilogues(out);
    weights(out);
    products(out);
}

/// Around groups of four pixels, of eight of those, and tiles.
fn sizes(out: &mut Vec<Case>) {
    for n in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 35] {
        out.push(conv([1, 3, 5], [n, n], [1, 1]).case());
        out.push(conv([1, 3, 5], [n, n], [3, 3]).padding(1, 1).case());
        out.push(conv([2, 2, 3], [3, n], [3, 3]).padding(1, 1).case());
        out.push(conv([1, 2, 9], [n + 2, 4], [3, 3]).case());
    }
    for images in [0, 1, 2, 3, 7] {
        out.push(conv([images, 3, 6], [5, 6], [3, 3]).padding(1, 1).case());
    }
}

/// Around groups of four channels, tiles of them, and steps of a sum.
fn channels(out: &mut Vec<Case>) {
    for rows in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65] {
        out.push(conv([1, 3, rows], [6, 7], [3, 3]).padding(1, 1).case());
    }
    for channels in [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 64, 67] {
        out.push(conv([1, channels, 6], [5, 8], [3, 3]).padding(1, 1).case());
        out.push(conv([2, channels, 10], [4, 6], [1, 1]).case());
    }
}

fn kernels(out: &mut Vec<Case>) {
    for (h, w) in
        [(1, 2), (2, 1), (1, 3), (3, 1), (2, 2), (2, 3), (4, 4), (5, 5), (1, 7), (7, 7), (6, 9), (3, 16)]
    {
        out.push(conv([1, 3, 6], [h + 5, w + 7], [h, w]).case());
        out.push(conv([2, 4, 9], [11, 12], [h, w]).padding(h / 2, w / 2).case());
    }
    // As large as the input, and larger than what is unrolled.
    out.push(conv([1, 2, 5], [8, 17], [8, 17]).case());
    out.push(conv([1, 2, 5], [4, 40], [2, 33]).case());
    out.push(conv([1, 1, 3], [40, 4], [33, 2]).case());
}

fn spacings(out: &mut Vec<Case>) {
    for (y, x) in [(2, 2), (1, 2), (2, 1), (3, 3), (4, 4), (5, 7), (1, 16)] {
        out.push(conv([1, 3, 6], [13, 18], [3, 3]).stride(y, x).padding(1, 1).case());
        out.push(conv([2, 2, 5], [12, 16], [1, 1]).stride(y, x).case());
    }
    for (y, x) in [(2, 2), (1, 2), (3, 1), (4, 5)] {
        out.push(conv([1, 3, 6], [13, 18], [3, 3]).dilation(y, x).padding(2, 2).case());
        out.push(conv([1, 2, 4], [16, 17], [2, 3]).dilation(y, x).stride(2, 2).padding(1, 3).case());
    }
    for (y, x) in [(0, 1), (1, 0), (2, 3), (4, 4), (7, 5)] {
        out.push(conv([1, 2, 5], [6, 9], [3, 3]).padding(y, x).case());
    }
    // What the direct kernel leaves to tiles.
    out.push(conv([1, 2, 3], [5, 120], [2, 3]).stride(1, 40).case());
    out.push(conv([1, 2, 3], [5, 120], [2, 3]).dilation(1, 50).case());
    // Around what tiles keep a bit for: 32 taps.
    for taps in [[4, 8], [3, 11], [33, 1], [1, 32]] {
        out.push(conv([1, 2, 40], [9, 12], taps).padding(16, 32).stride(3, 2).dilation(1, 2).case());
    }
    // Padding that the input does not reach into.
    out.push(conv([1, 2, 3], [2, 2], [3, 3]).padding(6, 6).stride(3, 3).case());
}

fn groups(out: &mut Vec<Case>) {
    for (channels, rows, groups) in
        [(4, 4, 2), (6, 4, 2), (6, 9, 3), (8, 8, 4), (10, 20, 5), (16, 32, 2), (12, 66, 2), (64, 64, 4)]
    {
        out.push(conv([2, channels, rows], [6, 9], [3, 3]).groups(groups).padding(1, 1).case());
        out.push(conv([1, channels, rows], [5, 8], [1, 1]).groups(groups).case());
    }
    // Depthwise, with one and with more results per channel.
    for (channels, multiple) in [(1, 1), (3, 1), (8, 1), (33, 1), (5, 2), (4, 3), (3, 8)] {
        let depthwise = || conv([2, channels, channels * multiple], [9, 11], [3, 3]).groups(channels);
        out.push(depthwise().padding(1, 1).case());
        out.push(depthwise().stride(2, 2).then(&[Then::Bias, Then::Unary("relu", [0.0; 2])]).case());
    }
    out.push(conv([1, 6, 6], [14, 14], [5, 5]).groups(6).padding(4, 4).dilation(2, 2).case());
}

/// Layers as they are, or a quarter of them.
fn networks(out: &mut Vec<Case>) {
    out.push(conv([1, 3, 16], [56, 56], [7, 7]).stride(2, 2).padding(3, 3).case().large());
    out.push(conv([1, 32, 32], [28, 28], [3, 3]).padding(1, 1).case().large());
    out.push(conv([2, 64, 32], [14, 14], [1, 1]).stride(2, 2).case().large());
    // One image of whole tiles, which may have uniform stores.
    out.push(conv([1, 8, 32], [16, 16], [3, 3]).padding(1, 1).case());
    out.push(conv([1, 3, 48], [32, 32], [16, 16]).stride(16, 16).case().large());
    out.push(conv([1, 64, 64], [28, 28], [3, 3]).groups(64).padding(1, 1).case().large());
    out.push(conv([1, 128, 40], [7, 7], [3, 3]).padding(1, 1).case().large());
    // Those that benches time.
    let first = conv([1, 3, 64], [224, 224], [7, 7]).stride(2, 2).padding(3, 3);
    out.push(first.case().bench("conv_3x224_64_7x7s2"));
    out.push(conv([1, 64, 64], [56, 56], [3, 3]).padding(1, 1).case().bench("conv_64x56_64_3x3"));
}

/// More of a sum than one invocation's loops may take on lavapipe (65,535 iterations).
fn long(out: &mut Vec<Case>) {
    out.push(conv([1, 65_537, 2], [1, 3], [1, 1]).whole().case());
    out.push(conv([1, 65_539, 1], [2, 2], [2, 1]).whole().case().large());
    out.push(conv([1, 1, 3], [70_000, 2], [66_001, 1]).whole().case().large());
    out.push(conv([1, 1, 2], [3, 70_000], [1, 69_998]).whole().case().large());
    // Split among workgroups, and not evenly.
    for channels in [100, 257, 300, 515] {
        out.push(conv([1, channels, 5], [3, 5], [3, 3]).padding(1, 1).case());
        let then = [Then::Bias, Then::Unary("relu", [0.0; 2]), Then::Residual];
        out.push(conv([2, channels, 6], [2, 3], [1, 1]).then(&then).case());
    }
}

fn epilogues(out: &mut Vec<Case>) {
    let plain = |name| Then::Unary(name, [0.0; 2]);
    let relu = plain("relu");
    for (size, padding) in [([6, 8], 1), ([6, 6], 1), ([5, 7], 0), ([3, 3], 0)] {
        let spec = |then: &[Then]| conv([2, 3, 9], size, [3, 3]).padding(padding, padding).then(then);
        // New constants are new pipelines: two epilogues with all ways of indexing are enough for most variants.
        out.push(spec(&[Then::Bias, relu, Then::Residual]).case());
        out.push(spec(&[Then::Gate, Then::Mask]).case());
        let others =
            [&[Then::Bias][..], &[Then::ColumnBias, relu], &[Then::Residual], &[Then::Gate], &[Then::Mask]];
        for then in others {
            out.push(spec(then).case().large());
        }
    }
    // The module with every operation, of every kernel: a whole sum, one in parts, and few channels in a group.
    let gelu = plain("gelu");
    out.push(conv([1, 3, 10], [6, 9], [3, 3]).padding(1, 1).then(&[Then::Bias, gelu]).case());
    out.push(conv([1, 100, 6], [3, 5], [3, 3]).then(&[Then::Bias, gelu, Then::Residual]).case());
    out.push(conv([1, 6, 6], [5, 8], [3, 3]).groups(6).then(&[Then::Plus(-1.0), gelu]).case());
    let with = |name, a, b| Then::Unary(name, [a, b]);
    // ReLU comes everywhere, and a root needs numbers above 0.
    let functions = STEPS.iter().filter(|name| !["relu", "sqrt"].contains(name)).map(|name| plain(name));
    let parameters = [with("leaky_relu", 0.1, 0.0), with("elu", 0.7, 0.0), with("clip", -0.5, 2.0)];
    for function in functions.chain(parameters) {
        let then = [Then::Bias, Then::Plus(-1.0), function, Then::Scale(0.5)];
        out.push(conv([1, 3, 10], [6, 9], [3, 3]).padding(1, 1).then(&then).case().large());
    }
}

/// Around what is a product of matrices on GPUs: full tiles of channels, pixels and channels by four.
fn products(out: &mut Vec<Case>) {
    let then = [Then::Bias, Then::Unary("relu", [0.0; 2]), Then::Residual];
    for (rows, size) in
        [(107, [6, 8]), (108, [6, 8]), (128, [6, 7]), (128, [4, 4]), (128, [4, 5]), (260, [7, 4])]
    {
        out.push(conv([2, 9, rows], size, [1, 1]).case());
        out.push(conv([3, 8, rows], size, [1, 1]).then(&then).case());
    }
    out.push(conv([2, 9, 128], [6, 8], [1, 1]).padding(1, 1).case());
    out.push(conv([2, 9, 128], [6, 8], [1, 1]).stride(1, 2).case());
    out.push(conv([2, 6, 256], [6, 8], [1, 1]).groups(2).case());
    out.push(conv([8, 3, 128], [128, 128], [1, 1]).then(&then).case().large());
    out.push(conv([9, 3, 128], [64, 64], [3, 3]).padding(1, 1).then(&then).case().large());
}

/// Laid out in the same recording.
fn weights(out: &mut Vec<Case>) {
    out.push(conv([1, 3, 6], [6, 9], [3, 3]).padding(1, 1).plain().case());
    out.push(conv([2, 6, 9], [5, 8], [3, 2]).groups(3).plain().case());
}
