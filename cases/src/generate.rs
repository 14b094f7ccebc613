//! Tensors from nothing.

use tidemill::cpu;
use tidemill::{Element, Recording, Result, Value};

use super::array::Array;
use super::data::{BENCHED, LENGTHS};
use super::{Bound, Case, Expected, Kind};

/// Adds the cases.
pub(crate) fn cases(out: &mut Vec<Case>) {
    for n in LENGTHS {
        out.extend([fill(n), count_words(n), count_floats(n)]);
    }
    for seed in [0, 1, 0xdead_beef_0123_4567] {
        for n in LENGTHS {
            out.extend([uniform(n, seed), normal(n, seed)]);
        }
    }
    out.push(fill(BENCHED).bench("op_fill"));
    out.push(count_floats(BENCHED).bench("op_iota"));
    out.push(uniform(BENCHED, 7).bench("op_random_uniform"));
    out.push(normal(BENCHED, 7).bench("op_random_normal"));
}

/// `n` elements from nothing.
fn made<T: Element>(
    op: &'static str,
    what: String,
    n: usize,
    record: impl Fn(&Recording) -> Result<Value> + Send + Sync + 'static,
    expected: impl Fn() -> Expected + Send + Sync + 'static,
) -> Case {
    let result = Kind::of::<T>(&[n]);
    Case::new(op, "elementwise", what, Vec::new(), result, move |r, _| record(r), move |_| expected())
}

/// On the CPU, where the place for it says how many.
fn on_cpu<T: Element>(case: Case, make: impl Fn(&mut [T]) + Send + Sync + 'static) -> Case {
    case.twin(move |_: &[Array], out| {
        make(out.of_mut());
        Ok(out.kind.shape)
    })
}

fn fill(n: usize) -> Case {
    const WORD: u32 = 0x7fc0_1234;
    let expected = move || Expected::Words(vec![WORD; n]);
    made::<u32>("fill", format!("[{n}]"), n, move |r| r.fill([n], WORD), expected)
}

fn count_words(n: usize) -> Case {
    let expected = move || Expected::Words((0..n as u32).collect());
    on_cpu(
        made::<u32>("iota", format!("u32 [{n}]"), n, move |r| r.iota::<u32>([n]), expected),
        cpu::iota::<u32>,
    )
}

fn count_floats(n: usize) -> Case {
    let expected = move || Expected::Floats((0..n).map(|i| i as f64).collect());
    on_cpu(
        made::<f32>("iota", format!("f32 [{n}]"), n, move |r| r.iota::<f32>([n]), expected),
        cpu::iota::<f32>,
    )
}

/// Philox 4x32 with 10 rounds, as published.
fn philox(counter: u32, seed: u64) -> [u32; 4] {
    let mut c = [counter, 0, 0, 0];
    let mut k = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let (p, q) = (u64::from(c[0]) * 0xD251_1F53, u64::from(c[2]) * 0xCD9E_8D57);
        c = [(q >> 32) as u32 ^ c[1] ^ k[0], q as u32, (p >> 32) as u32 ^ c[3] ^ k[1], p as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

fn uniform(n: usize, seed: u64) -> Case {
    let bits = move |i: usize| philox((i / 4) as u32, seed)[i % 4];
    let number = move |i: usize| f64::from(bits(i) >> 8) / f64::from(1 << 24);
    let expected = move || Expected::Floats((0..n).map(number).collect());
    let what = format!("[{n}] seed {seed:#x}");
    let case =
        made::<f32>("random_uniform", what, n, move |r| r.random_uniform([n], seed), expected).flops(n);
    on_cpu(case, move |out| cpu::random_uniform(out, seed))
}

fn normal(n: usize, seed: u64) -> Case {
    let number = move |i: usize| {
        let pair = philox((i / 4) as u32, seed);
        let (u, v) = (pair[i % 4 / 2 * 2], pair[i % 4 / 2 * 2 + 1]);
        let radius = (-2.0 * ((f64::from(u >> 8) + 1.0) / f64::from(1 << 24)).ln()).sqrt();
        let turn = std::f64::consts::TAU * f64::from(v >> 8) / f64::from(1 << 24);
        radius * if i.is_multiple_of(2) { turn.cos() } else { turn.sin() }
    };
    let expected = move || Expected::Floats((0..n).map(number).collect());
    let what = format!("[{n}] seed {seed:#x}");
    let case = made::<f32>("random_normal", what, n, move |r| r.random_normal([n], seed), expected)
        .bound(Bound::Absolute(2e-6))
        .flops(n);
    on_cpu(case, move |out| cpu::random_normal(out, seed))
}
