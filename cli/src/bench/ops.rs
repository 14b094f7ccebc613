//! Group `ops`: every op on about a million elements that are on the device, against the loop that one writes by hand.
//! Only on request: it is a list of what is slow, not a comparison with something strong.

mod attention;
mod by_index;
mod images;
mod loops;

use std::time::Instant;

use tidemill::{Accelerator, Bf16, F16};

use super::benchmark::{Benchmark, Make, Result, Unit};
use super::reduce::scalar_softmax;
use super::timed::Timed;
use crate::cases::data::BENCHED_SIDE as SIDE;
use crate::cases::{Array, Bound};
use attention::{attention, rotary};
use by_index::*;
use images::*;
use loops::*;

/// `op_NAME`, the name of its case, and the loop.
macro_rules! benchmarks {
    ($($name:literal: $scalar:expr;)*) => {
        &[$((concat!("op_", $name), |gpu| against_loop(gpu, concat!("op_", $name), $scalar))),*]
    };
}

/// The benchmarks of the table of elementwise operations.
macro_rules! of_the_table {
    (one_operand { $($section:ident {
        $($(#[$doc:meta])* $name:ident($variant:ident) { $($row:tt)* })*
    })* } other_codes $codes:tt) => {
        const IN_THE_TABLE: &[Row] = &[$($((
            concat!("op_", stringify!($name)),
            |gpu| {
                let name = concat!("op_", stringify!($name));
                against_loop(gpu, name, |x, o| by_hand(stringify!($name), x, o))
            },
        ),)*)*];
    };
}

tidemill::elementwise_ops!(of_the_table);

type Row = (&'static str, Make);

/// The group's benchmarks.
pub(crate) static BENCHMARKS: &[Row] = &{
    let mut all = [OTHERS[0]; OTHERS.len() + IN_THE_TABLE.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = if i < OTHERS.len() { OTHERS[i] } else { IN_THE_TABLE[i - OTHERS.len()] };
        i += 1;
    }
    all
};

const OTHERS: &[Row] = benchmarks! {
    "copy": |x, o| o.of_mut::<u32>().copy_from_slice(x[0].of());
    "fill": |_, o| o.of_mut::<u32>().fill(0x7fc0_1234);
    "leaky_relu": |x, o| by_hand("leaky_relu", x, o);
    "elu": |x, o| by_hand("elu", x, o);
    "celu": |x, o| by_hand("celu", x, o);
    "clip": |x, o| by_hand("clip", x, o);
    "add": |x, o| pairs(x, o, |a: f32, b| a + b);
    "sub": |x, o| pairs(x, o, |a: f32, b| a - b);
    "mul": |x, o| pairs(x, o, |a: f32, b| a * b);
    "div": |x, o| pairs(x, o, |a: f32, b| a / b);
    "pow": |x, o| pairs(x, o, f32::powf);
    "min": |x, o| pairs(x, o, f32::min);
    "max": |x, o| pairs(x, o, f32::max);
    "eq": |x, o| pairs(x, o, |a: f32, b| u32::from(a == b));
    "ne": |x, o| pairs(x, o, |a: f32, b| u32::from(a != b));
    "lt": |x, o| pairs(x, o, |a: f32, b| u32::from(a < b));
    "le": |x, o| pairs(x, o, |a: f32, b| u32::from(a <= b));
    "gt": |x, o| pairs(x, o, |a: f32, b| u32::from(a > b));
    "ge": |x, o| pairs(x, o, |a: f32, b| u32::from(a >= b));
    "select": select;
    "fmod": |x, o| pairs(x, o, |a: f32, b| a % b);
    "modulo": |x, o| pairs(x, o, f32::rem_euclid);
    "atan2": |x, o| pairs(x, o, f32::atan2);
    "hypot": |x, o| pairs(x, o, f32::hypot);
    "copysign": |x, o| pairs(x, o, f32::copysign);
    "prelu": |x, o| pairs(x, o, |a: f32, b| if a >= 0.0 { a } else { a * b });
    "clamp": clamp;
    "logical_not": |x, o| each(x, o, |x: u32| u32::from(x == 0));
    "logical_and": |x, o| pairs(x, o, |a: u32, b| u32::from(a != 0 && b != 0));
    "logical_or": |x, o| pairs(x, o, |a: u32, b| u32::from(a != 0 || b != 0));
    "logical_xor": |x, o| pairs(x, o, |a: u32, b| u32::from((a != 0) != (b != 0)));
    "is_nan": |x, o| each(x, o, |x: f32| u32::from(x.is_nan()));
    "is_inf": |x, o| each(x, o, |x: f32| u32::from(x.is_infinite()));
    "sub_scalar": |x, o| each(x, o, |x: f32| x - 2.5);
    "div_scalar": |x, o| each(x, o, |x: f32| x / 2.5);
    "pow_scalar": |x, o| by_hand("pow_scalar", x, o);
    "min_scalar": |x, o| each(x, o, |x: f32| x.min(2.5));
    "max_scalar": |x, o| each(x, o, |x: f32| x.max(2.5));
    "eq_scalar": |x, o| each(x, o, |x: f32| u32::from(x == 2.5));
    "ne_scalar": |x, o| each(x, o, |x: f32| u32::from(x != 2.5));
    "lt_scalar": |x, o| each(x, o, |x: f32| u32::from(x < 2.5));
    "le_scalar": |x, o| each(x, o, |x: f32| u32::from(x <= 2.5));
    "gt_scalar": |x, o| each(x, o, |x: f32| u32::from(x > 2.5));
    "ge_scalar": |x, o| each(x, o, |x: f32| u32::from(x >= 2.5));
    "scale": |x, o| each(x, o, |x: f32| 2.5 * x);
    "add_scalar": |x, o| each(x, o, |x: f32| x + 2.5);
    "add_row": |x, o| by_row(x, o, |_, j| j);
    "add_column": |x, o| by_row(x, o, |i, _| i);
    "cast": |x, o| each(x, o, |x: f32| x as u32);
    "sum": |x, o| whole(x, o, |x| x.iter().sum::<f32>());
    "mean": |x, o| whole(x, o, |x| x.iter().sum::<f32>() / x.len() as f32);
    "prod": |x, o| whole(x, o, |x| x.iter().product::<f32>());
    "amin": |x, o| whole(x, o, |x| x.iter().copied().fold(f32::MAX, f32::min));
    "argmin": |x, o| whole(x, o, |x| best(x, |a, b| a < b));
    "amax": |x, o| whole(x, o, |x| x.iter().copied().fold(f32::MIN, f32::max));
    "argmax": |x, o| whole(x, o, |x| best(x, |a, b| a > b));
    "norm": |x, o| whole(x, o, |x| x.iter().map(|x| x * x).sum::<f32>().sqrt());
    "dot": |x, o| o.of_mut()[0] = x[0].of().iter().zip(x[1].of()).map(|(a, b): (&f32, &f32)| a * b).sum::<f32>();
    "variance": |x, o| whole(x, o, variance);
    "sum_rows": |x, o| rows(x, o, SIDE, |row| row.iter().sum::<f32>());
    "sum_rows_of_4": |x, o| rows(x, o, 4, |row| row.iter().sum::<f32>());
    "sum_rows_of_3": |x, o| rows(x, o, 3, |row| row.iter().sum::<f32>());
    "argmax_rows_of_10": |x, o| rows(x, o, 10, |row| best(row, |a, b| a > b));
    "sum_columns": |x, o| sum_columns(x[0].of(), o.of_mut());
    "moments": |x, o| rows(x, o, SIDE, variance);
    "max_pool_with_places": |x, o| pool(x, o, |x, places| places.max_by(|a, b| x[*a].total_cmp(&x[*b]).then(b.cmp(a))).unwrap_or(0) as u32);
    "average_pool": |x, o| pool(x, o, mean_at);
    "norm_pool": |x, o| pool(x, o, |x, places| places.map(|at| x[at] * x[at]).sum::<f32>().sqrt());
    "adaptive_max_pool": |x, o| squares(x, o, |x, places| places.map(|at| x[at]).fold(f32::MIN, f32::max));
    "adaptive_average_pool": |x, o| squares(x, o, mean_at);
    "pixel_shuffle": |x, o| pixels(|deep, wide| o.of_mut::<u32>()[wide] = x[0].of::<u32>()[deep]);
    "pixel_unshuffle": |x, o| pixels(|deep, wide| o.of_mut::<u32>()[deep] = x[0].of::<u32>()[wide]);
    "softmax_rows": |x, o| scalar_softmax(x[0].of(), SIDE, o.of_mut());
    "softmax_rows_of_10": |x, o| scalar_softmax(x[0].of(), 10, o.of_mut());
    "softmax_columns": |x, o| softmax_columns(x[0].of(), o.of_mut());
    "log_softmax_rows": |x, o| log_softmax(x[0].of(), o.of_mut(), SIDE);
    "add_layer_norm": |x, o| add_norm(x, o, true);
    "add_rms_norm": |x, o| add_norm(x, o, false);
    "group_norm": |x, o| channel_norm(x, o, 10);
    "instance_norm": |x, o| channel_norm(x, o, 1);
    "batch_norm": batch_norm;
    "permute_021": |x, o| permute(x, o, [64, 128, 128], [0, 2, 1]);
    "permute_102": |x, o| permute(x, o, [64, 128, 128], [1, 0, 2]);
    "permute_210": |x, o| permute(x, o, [64, 128, 128], [2, 1, 0]);
    "permute_0231": |x, o| permute(x, o, [4, 64, 64, 64], [0, 2, 3, 1]);
    "broadcast_to": |x, o| strided::<u32>(x, o, |_, j| j);
    "stack": stack;
    "gather_rows": |x, o| gather(x[0].of(), x[1].of(), o.of_mut());
    "gather": |x, o| gather_columns(x[0].of(), x[1].of(), o.of_mut());
    "gather_elements": |x, o| gather_elements(x[0].of(), x[1].of(), o.of_mut());
    "gather_nd": |x, o| gather_nd(x[0].of(), x[1].of(), o.of_mut());
    "scatter": |x, o| scatter(x, o, |_, x| x);
    "scatter_add": |x, o| scatter(x, o, i32::wrapping_add);
    "scatter_max": |x, o| scatter(x, o, i32::max);
    "scatter_min": |x, o| scatter(x, o, i32::min);
    "segment_sum": |x, o| segment_sum(x[0].of(), x[1].of(), o.of_mut());
    "bincount": |x, o| bins(x[0].of(), o.of_mut(), |_| 1);
    "bincount_weighted": |x, o| bins(x[0].of(), o.of_mut(), |i| x[1].of::<u32>()[i]);
    "one_hot": |x, o| one_hot(x[0].of(), o.of_mut());
    "count_outside": |x, o| o.of_mut()[0] = x[0].of::<u32>().iter().filter(|x| **x >= 1000).count() as u32;
    "cumsum": |x, o| running(x, o, 0.0, |a, b| a + b);
    "cumprod": |x, o| running(x, o, 1.0, |a, b| a * b);
    "cummax": |x, o| running(x, o, f32::NEG_INFINITY, running_max);
    "cummin": |x, o| running(x, o, f32::INFINITY, running_min);
    "sort": |x, o| sort_rows(x[0].of(), o.of_mut());
    "argsort": |x, o| argsort(x[0].of(), o.of_mut());
    "sort_by_key": |x, o| sort_by_key(x[0].of(), x[1].of(), o.of_mut());
    "topk": |x, o| topk(x[0].of(), o.of_mut(), SIDE, 10);
    "searchsorted": searchsorted;
    "compact": |x, o| compact(x[0].of(), x[1].of(), o.of_mut());
    "nonzero": |x, o| nonzero(x[0].of(), o.of_mut());
    "unique": |x, o| unique(x[0].of(), o.of_mut());
    "random_uniform": |_, o| random(o.of_mut(), |u, v| [unit(u), unit(v)]);
    "random_normal": |_, o| random(o.of_mut(), normal);
    "transpose": |x, o| strided::<u32>(x, o, |i, j| j * SIDE + i);
    "slice": |x, o| strided::<u32>(x, o, |i, j| i * (SIDE + 4) + j + 4);
    "slice_step": |x, o| strided::<u32>(x, o, |i, j| (SIDE - 1 - i) * SIDE + j);
    "slice_unaligned": |x, o| strided::<u32>(x, o, |i, j| i * (SIDE + 1) + j + 1);
    "concat": |x, o| concat(x, o, SIDE / 2);
    "concat_unaligned": |x, o| concat(x, o, 511);
    "pad": |x, o| pad(x[0].of(), o.of_mut());
    "iota": |_, o| o.of_mut().iter_mut().enumerate().for_each(|(i, o)| *o = i as f32);
    "reshape": |x, o| each(x, o, |x: i32| x.wrapping_neg().wrapping_neg());
    "cast_f16": |x, o| each(x, o, F16::from_f32);
    "binary_f16": |x, o| pairs(x, o, |a: F16, b| F16::from_f32(a.to_f32() + b.to_f32()));
    "chain_f16": |x, o| pairs(x, o, chain);
    "permute_f16": |x, o| strided::<F16>(x, o, |i, j| j * SIDE + i);
    "attention": attention;
    "rotary": rotary;
    "attention_f16": attention;
    "matmul_f16": |x, o| product(x, o.of_mut(), 256, F16::from_f32);
    "conv2d_f16": |x, o| convolution(x, o.of_mut());
    "cast_packed": |x, o| each(x, o, |x: f32| x as u8);
    "integer_packed": |x, o| pairs(x, o, u8::wrapping_add);
    "chain_packed": |x, o| pairs(x, o, chain_of_bytes);
    "moved_packed": |x, o| joined(x, o.of_mut::<u8>());
    "rows_packed": |x, o| o.of_mut::<u32>()[0] = x[0].of::<u8>().iter().map(|x| u32::from(*x)).sum();
    "elementwise_bf16": |x, o| pairs(x, o, |a: Bf16, b| Bf16::from_f32(a.to_f32() + b.to_f32()));
    "matmul_bf16": |x, o| product(x, o.of_mut(), 256, Bf16::from_f32);
    "bits": |x, o| pairs(x, o, |a: u32, b| a ^ b);
};

/// What may be asked of a loop: it computes in f32 with the library's functions, and adds up one after the other.
fn loosened(bound: Bound) -> Bound {
    match bound {
        Bound::Ulp(_) => Bound::Ulp(64.0),
        Bound::Absolute(_) => Bound::Absolute(1e-5),
        Bound::Scaled(_) => Bound::Scaled(1e-3),
        Bound::Exact | Bound::Nmse(_) => bound,
    }
}

fn against_loop(
    gpu: &Accelerator,
    name: &'static str,
    scalar: fn(&[Array], &mut Array),
) -> Result<Benchmark> {
    let timed = Timed::new(name)?;
    let kinds = timed.operands.iter().map(|x| x.kind).chain([timed.case.result]);
    let elements = kinds.map(|kind| kind.shape.elements()).max().unwrap_or(0);
    let baseline = timed.baseline(loosened(timed.case.bound), move |_, x, out| {
        let begun = Instant::now();
        scalar(x, out);
        std::hint::black_box(out);
        Ok(begun.elapsed())
    });
    timed.benchmark(gpu, elements, Unit::Micros, 1.0, ("a loop in Rust, one thread", baseline))
}

#[cfg(test)]
mod tests {
    use tidemill::{Config, Prewarm};

    use super::*;

    #[test]
    fn every_op_and_its_loop_are_right() {
        let gpu = Accelerator::new(&Config::new().no_cache().prewarm(Prewarm::Off)).unwrap();
        let mut wrong = Vec::new();
        for (_, make) in BENCHMARKS {
            let mut benchmark = make(&gpu).unwrap();
            let sides = [(benchmark.ours)(true), (benchmark.baseline.unwrap().1)(true)];
            wrong.extend(sides.into_iter().filter_map(|side| side.err().map(|error| error.to_string())));
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
