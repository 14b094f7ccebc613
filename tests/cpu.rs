//! The CPU's twins, with the device's own table of cases. Nothing here needs Vulkan.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

#[path = "../src/bin/tidemill/cases/mod.rs"]
#[allow(dead_code, reason = "the command line's own module; the device's part is not used here")]
mod table;

#[test]
fn every_case_passes_on_the_cpu() {
    let mut report = table::Report::default();
    report.run_on_cpu(&table::all());
    let failures: Vec<_> = report.rows.values().flat_map(|row| row.failures.clone()).collect();
    for (op, row) in &report.rows {
        println!("{op}: {} cases, worst {:.3e} {}", row.cases, row.worst.worst, row.worst.bound.unit());
    }
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn convolutions_that_do_not_fit_are_refused() {
    use tidemill::cpu::{self, Conv2d};
    let refused = cpu::conv2d((&[0.0; 9], [1, 1, 3, 3]), (&[0.0; 16], [1, 1, 4, 4]), Conv2d::new(), &mut []);
    let said = "conv2d: lhs [1, 1, 3, 3] and rhs [1, 1, 4, 4]: a kernel of 4 rows on 3 with padding";
    assert_eq!(refused.unwrap_err().to_string(), said);
}
