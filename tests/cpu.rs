//! The CPU's twins, with the device's own table of cases. Nothing here needs Vulkan.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

use tidemill_cases as table;

#[test]
fn every_case_passes_on_the_cpu() {
    let mut report = table::report::Report::default();
    let without = report.run_on_cpu(&table::all());
    // Packed elements are a way of storing on the device: on the CPU they are cast and have bits, and are computed with
    // as words. Slices copy and fill themselves, and have a shape only where an operation is given one.
    let of_packed = ["_f16", "_bf16", "_packed"];
    let others: Vec<_> =
        without.into_iter().filter(|op| !of_packed.iter().any(|name| op.ends_with(name))).collect();
    assert_eq!(others, ["copy", "fill", "reshape"]);
    let failures: Vec<_> = report.rows.values().flat_map(|row| row.failures.clone()).collect();
    for (op, row) in &report.rows {
        println!("{op}: {} cases, worst {:.3e} {}", row.cases, row.worst.worst, row.worst.bound.unit());
    }
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn convolutions_that_do_not_fit_are_refused() {
    use tidemill::cpu::{self, Conv2d};
    let refused =
        cpu::conv2d_with((&[0.0; 9], [1, 1, 3, 3]), (&[0.0; 16], [1, 1, 4, 4]), Conv2d::new(), &mut []);
    let said = "conv2d: lhs [1, 1, 3, 3] and rhs [1, 1, 4, 4]: a kernel of 4 rows on 3 with padding";
    assert_eq!(refused.unwrap_err().to_string(), said);
}

/// Large results are stored past the cache: wherever they begin and end, they have the bits of small ones.
#[test]
fn large_results_are_those_of_their_parts() {
    use tidemill::cpu;
    let large = 4 << 20;
    let x: Vec<f32> = (0..large + 40).map(|i| (i % 1013) as f32 * 0.37 - 180.0).collect();
    let i: Vec<i32> = x.iter().map(|x| (x * 1e6) as i32).collect();
    let u: Vec<u32> = i.iter().map(|&i| i as u32).collect();
    let mask: Vec<u32> = u.iter().map(|u| u & 1).collect();
    // An operation on stretches: from this element on, this many.
    fn check<R: tidemill::cpu::Number>(name: &str, of: impl Fn(usize, usize, &mut [R])) {
        for (begin, length) in [(0, (4 << 20) - 1), (0, 4 << 20), (1, (4 << 20) + 1), (3, (4 << 20) + 31)] {
            let (mut whole, mut parts) = (vec![R::zeroed(); length + begin], vec![R::zeroed(); length]);
            of(begin, length, &mut whole[begin..]);
            for (k, part) in parts.chunks_mut(10_007).enumerate() {
                of(begin + k * 10_007, part.len(), part);
            }
            let same =
                bytemuck::cast_slice::<R, u32>(&whole[begin..]) == bytemuck::cast_slice::<R, u32>(&parts);
            assert!(same, "{name}: {length} from {begin}");
        }
    }
    macro_rules! checks {
        ($($name:ident($($operand:expr),*): $type:ty;)*) => {$(
            check::<$type>(stringify!($name), |first, n, out| {
                cpu::$name($(&$operand[first..][..n],)* out).unwrap();
            });
        )*};
    }
    checks! {
        add(x, x): f32;
        mul(i, i): i32;
        sub(u, mask): u32;
        lt(x, x): u32;
        select(mask, x, x): f32;
        select(mask, i, i): i32;
        relu(x): f32;
        exp(x): f32;
        gelu(x): f32;
        neg(i): i32;
        cast(x): i32;
        cast(i): f32;
        cast(u): f32;
    }
    check::<f32>("scale", |first, n, out| {
        cpu::scale(&x[first..][..n], 0.3, out).unwrap();
    });
    check::<u32>("ge_scalar", |first, n, out| {
        cpu::ge_scalar(&i[first..][..n], 7, out).unwrap();
    });
}
