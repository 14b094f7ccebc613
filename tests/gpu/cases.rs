//! The table of cases, on every variant in the catalog.

#[path = "../../src/bin/tidemill/cases/mod.rs"]
#[allow(dead_code, reason = "tests/cpu.rs uses what is for the CPU")]
#[allow(unreachable_pub, reason = "the command line's own module, which has no other users")]
pub(crate) mod table;

use std::sync::{Arc, Mutex};

use tidemill::{Config, Prewarm};

#[test]
fn every_case_passes_on_every_variant() {
    let messages: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = messages.clone();
    let config = || {
        let sink = sink.clone();
        let on_message = move |message: &str| sink.lock().unwrap().push(message.to_owned());
        Config::new().validation(true).on_message(on_message).no_cache().prewarm(Prewarm::Off)
    };
    let report = table::run_table(&table::all(), true, config, |_| ()).unwrap();
    let failures: Vec<_> = report.rows.values().flat_map(|row| row.failures.clone()).collect();
    let (cases, failed) = report.totals();
    for (op, row) in &report.rows {
        println!("{op}: {} cases, worst {:.3e} {}", row.cases, row.worst.worst, row.worst.bound.unit());
    }
    println!("{cases} cases, {failed} failed, {} guard bytes touched", report.guard_bytes_touched);
    assert!(failures.is_empty(), "{} of {cases}:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(report.guard_bytes_touched, 0);
    let messages = messages.lock().unwrap();
    assert!(messages.is_empty(), "validation says:\n{}", messages.join("\n\n"));
}
