//! Resizing.

use tidemill::cpu;
use tidemill::{Coordinates, Interpolation, Recording, Tensor};

use super::data::uniform;
use super::{Array, Bound, Case, Expected, Input, Kind};

const MODES: [Interpolation; 4] =
    [Interpolation::Nearest, Interpolation::Floor, Interpolation::Linear, Interpolation::Cubic];
const COORDINATES: [Coordinates; 3] =
    [Coordinates::HalfPixel, Coordinates::AlignCorners, Coordinates::Asymmetric];

/// Adds the cases.
pub(crate) fn cases(out: &mut Vec<Case>) {
    for mode in MODES {
        for coordinates in COORDINATES {
            for (dims, to) in [
                (&[1][..], &[5][..]),
                (&[5], &[1]),
                (&[7], &[7]),
                (&[3, 10], &[23]),
                (&[3, 257], &[100]),
                (&[2, 6, 9], &[12, 18]),
                (&[2, 12, 18], &[6, 9]),
                (&[2, 3, 7, 5], &[10, 11]),
                (&[1, 2, 40, 30], &[9, 30]),
                (&[4, 5, 6], &[7, 3, 9]),
                (&[2, 3, 4, 5], &[6, 4, 3]),
                (&[0, 3, 4], &[6, 4]),
            ] {
                out.push(case(mode, coordinates, dims, to));
            }
        }
    }
    for (deep, wide, factor) in [
        (&[4, 1, 2][..], &[1, 2, 4][..], 2),
        (&[2, 12, 3, 5], &[2, 3, 6, 10], 2),
        (&[1, 18, 4, 4], &[1, 2, 12, 12], 3),
        (&[5, 3, 7], &[5, 3, 7], 1),
        (&[0, 4, 2, 2], &[0, 1, 4, 4], 2),
    ] {
        out.push(shuffle(deep, factor, false));
        out.push(shuffle(wide, factor, true));
    }
    out.push(shuffle(&[64, 128, 128], 4, false).bench("op_pixel_shuffle"));
    out.push(shuffle(&[4, 512, 512], 4, true).bench("op_pixel_unshuffle"));
    let large = case(Interpolation::Linear, Coordinates::HalfPixel, &[3, 512, 512], &[1024, 1024]);
    out.push(large.bench("resize_linear_3x512_1024"));
}

/// Channels to pixels, or back: words that tell where they were.
fn shuffle(dims: &[usize], factor: usize, back: bool) -> Case {
    let outer: usize = dims[..dims.len() - 3].iter().product();
    let [c, h, w] = [3, 2, 1].map(|d| dims[dims.len() - d]);
    // Extents of the image with fewer pixels, and channels of the one with more.
    let (few, channels) = if back { ([h / factor, w / factor], c) } else { ([h, w], c / (factor * factor)) };
    let [rows, columns] = few;
    let mut to = dims.to_vec();
    let last = to.len() - 3;
    to.truncate(last);
    to.extend(if back {
        [c * factor * factor, rows, columns]
    } else {
        [channels, rows * factor, columns * factor]
    });
    let n: usize = dims.iter().product();
    let expected = move |x: &[Array]| {
        let x = x[0].of::<u32>();
        let mut result = vec![0; n];
        for image in 0..outer * channels {
            for (y, x_in) in (0..factor).flat_map(|y| (0..factor).map(move |x| (y, x))) {
                for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                    let deep =
                        ((image * factor + y) * factor + x_in) * rows * columns + row * columns + column;
                    let wide = (image * rows + row) * factor + y;
                    let wide = wide * columns * factor + column * factor + x_in;
                    let (from, at) = if back { (wide, deep) } else { (deep, wide) };
                    result[at] = x[from];
                }
            }
        }
        Expected::Words(result)
    };
    let name = if back { "pixel_unshuffle" } else { "pixel_shuffle" };
    let input = Input::new(dims, move || (0..n as u32).collect());
    let record = move |r: &Recording, t: &[Tensor]| {
        if back { r.pixel_unshuffle(&t[0], factor) } else { r.pixel_shuffle(&t[0], factor) }
    };
    let (what, result) = (format!("{dims:?} by {factor}"), Kind::of::<u32>(&to));
    Case::new(name, "elementwise", what, vec![input], result, record, expected).twin(move |x, out| {
        let (x, out) = (x[0].view::<u32>(), out.of_mut());
        if back { cpu::pixel_unshuffle(x, factor, out) } else { cpu::pixel_shuffle(x, factor, out) }
    })
}

/// Where an element lies in the operand: exactly as the fraction of two whole numbers.
fn place(coordinates: Coordinates, from: usize, to: usize, at: usize) -> (i64, i64) {
    let (from, to, at) = (from as i64, to as i64, at as i64);
    match coordinates {
        Coordinates::AlignCorners if to == 1 => (0, 1),
        Coordinates::AlignCorners => (at * (from - 1), to - 1),
        Coordinates::Asymmetric => (at * from, to),
        _ => ((2 * at + 1) * from - to, 2 * to),
    }
}

/// The neighbours of an element, with their weights.
fn neighbours(mode: Interpolation, (n, d): (i64, i64), extent: usize) -> Vec<(usize, f64)> {
    let (below, t) = (n.div_euclid(d), n.rem_euclid(d) as f64 / d as f64);
    let keys = |x: f64| {
        let (a, x) = (-0.75, x.abs());
        if x <= 1.0 {
            (a + 2.0) * x.powi(3) - (a + 3.0) * x * x + 1.0
        } else {
            a * (x.powi(3) - 5.0 * x * x + 8.0 * x - 4.0)
        }
    };
    let taps: Vec<(i64, f64)> = match mode {
        Interpolation::Nearest => vec![(if 2 * n.rem_euclid(d) > d { below + 1 } else { below }, 1.0)],
        Interpolation::Linear => vec![(below, 1.0 - t), (below + 1, t)],
        Interpolation::Cubic => (-1..3).map(|k| (below + k, keys(t - k as f64))).collect(),
        _ => vec![(below, 1.0)],
    };
    taps.into_iter().map(|(at, weight)| (at.clamp(0, extent as i64 - 1) as usize, weight)).collect()
}

fn case(mode: Interpolation, coordinates: Coordinates, dims: &[usize], extents: &[usize]) -> Case {
    let rank = extents.len();
    let outer = dims.len() - rank;
    let mut to = dims.to_vec();
    to[outer..].copy_from_slice(extents);
    let (n, outputs) = (dims.iter().product(), to.iter().product::<usize>());
    let (from, target) = (dims[outer..].to_vec(), extents.to_vec());
    let expected = move |x: &[Array]| {
        let x = x[0].of::<f32>();
        let result = |i: usize| {
            let mut rest = i;
            let mut taps = vec![(0usize, 1.0f64)];
            let mut stride = 1;
            for d in (0..rank).rev() {
                let at = place(coordinates, from[d], target[d], rest % target[d]);
                rest /= target[d];
                let own = neighbours(mode, at, from[d]);
                taps = taps
                    .iter()
                    .flat_map(|(place, weight)| {
                        own.iter().map(move |(k, w)| (place + k * stride, weight * w))
                    })
                    .collect();
                stride *= from[d];
            }
            let term = |(place, weight): &(usize, f64)| f64::from(x[rest * stride + place]) * weight;
            let scale = taps.iter().map(|tap| term(tap).abs()).sum::<f64>();
            (taps.iter().map(term).sum::<f64>(), scale)
        };
        match mode {
            Interpolation::Linear | Interpolation::Cubic => {
                Expected::Scaled((0..outputs).map(result).collect())
            }
            _ => Expected::Floats((0..outputs).map(|i| result(i).0).collect()),
        }
    };
    const EPS: f64 = 1.0 / (1u64 << 24) as f64;
    let bound = match mode {
        Interpolation::Linear => Bound::Scaled(12.0 * EPS),
        Interpolation::Cubic => Bound::Scaled(64.0 * EPS),
        _ => Bound::Exact,
    };
    let taps = match mode {
        Interpolation::Linear => 2usize,
        Interpolation::Cubic => 4,
        _ => 1,
    };
    let what = format!("{dims:?} to {extents:?} {mode:?} {coordinates:?}");
    let (extents, twin) = (extents.to_vec(), extents.to_vec());
    let record = move |r: &Recording, t: &[Tensor]| r.resize(&t[0], &extents, mode, coordinates);
    let input = Input::new(dims, move || uniform(n, 0.5, 4.0, 3));
    Case::new("resize", "elementwise", what, vec![input], Kind::of::<f32>(&to), record, expected)
        .bound(bound)
        .flops(2 * outputs * taps.pow(rank as u32))
        .twin(move |x, out| cpu::resize(x[0].view(), &twin, mode, coordinates, out.of_mut()))
}
