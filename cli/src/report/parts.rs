//! The parts of a report, each measured by what the command of the same name measures with.

use std::ops::ControlFlow;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Map, Value, json};
use tidemill::hybrid::Op;
use tidemill::tune::{CompiledKernel, TuneOptions, compiled_kernels};
use tidemill::{Accelerator, Config, Prewarm};

use crate::crossover::table::{Cell, Table, regret};
use crate::{bench, cases, check, crossover, info, tune};
use cases::crossover::{OPS, sizes};
use cases::report::run_table;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// The device, its driver, limits and features
    Device,
    /// The table of cases, against references in f64
    Cases,
    /// Benchmarks beside baselines
    Bench,
    /// Every kernel variant, measured; nothing is kept
    Tune,
    /// CPU and device by operation and size
    Crossover,
    /// What the driver's compiler tells of the kernels for GPUs
    Pipelines,
}

/// What came of a part.
pub(super) struct Done {
    pub(super) value: Value,
    /// What was wrong: a result, not a time.
    pub(super) failure: Option<String>,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

impl Part {
    /// Its name in the file.
    pub(super) fn name(self) -> &'static str {
        match self {
            Part::Device => "device",
            Part::Cases => "cases",
            Part::Bench => "bench",
            Part::Tune => "tune",
            Part::Crossover => "crossover",
            Part::Pipelines => "pipelines",
        }
    }

    /// Whether it is a failure that it can't be had. Drivers need have neither a clock nor statistics of pipelines.
    pub(super) fn must_succeed(self) -> bool {
        !matches!(self, Part::Tune | Part::Pipelines)
    }
}

/// Makes the parts.
pub(super) struct Job {
    quick: bool,
    gpu: Option<Accelerator>,
    /// Plots of the crossover, for the page.
    pub(super) plots: String,
}

impl Job {
    pub(super) fn new(quick: bool) -> Job {
        Job { quick, gpu: None, plots: String::new() }
    }

    pub(super) fn run(&mut self, part: Part) -> Result<Done> {
        match part {
            Part::Device => device().map(Done::fine),
            Part::Cases => self.cases(),
            Part::Bench => self.bench(),
            Part::Tune => self.tune(),
            Part::Crossover => self.crossover(),
            Part::Pipelines => pipelines().map(Done::fine),
        }
    }

    /// The accelerator of the parts that measure. Nothing that is found out is kept for other programs, and nothing
    /// that they have found out is used.
    fn gpu(&mut self) -> Result<Accelerator> {
        if self.gpu.is_none() {
            let gpu = Accelerator::new(&Config::new().no_cache())?;
            // Pipelines are not made in the background while others are measured.
            gpu.wait_prewarmed();
            self.gpu = Some(gpu);
        }
        self.gpu.clone().ok_or_else(|| "there is no device".into())
    }

    fn cases(&self) -> Result<Done> {
        let mut table = cases::all();
        if self.quick {
            table = cases::some(table);
        }
        let config = || Config::new().prewarm(Prewarm::Off).no_cache().tuned(false);
        let report = run_table(&table, false, config, |what| eprintln!("  {what}"))?;
        let (count, failed) = report.totals();
        let touched = report.guard_bytes_touched();
        let operations: Vec<Value> = report.rows.iter().map(|(op, row)| check::row_json(op, row)).collect();
        let failures: Vec<&String> = report.rows.values().flat_map(|row| &row.failures).collect();
        let failure = (failed > 0 || touched > 0)
            .then(|| format!("{failed} of {count} cases are wrong, {touched} guard bytes were written"));
        let value = json!({
            "cases": count, "failed": failed, "guard_bytes_touched": touched, "operations": operations,
            "failures": failures, "kernels": report.kernels,
        });
        Ok(Done { value, failure })
    }

    fn bench(&mut self) -> Result<Done> {
        let gpu = self.gpu()?;
        let (measured, failed) = bench::for_report(&gpu, self.quick, |name| eprintln!("  {name}"));
        let benchmarks: Vec<Value> = measured.iter().map(|one| object(bench::report::fields(one))).collect();
        let errors: Map<String, Value> =
            failed.iter().map(|(name, why)| ((*name).to_owned(), why.as_str().into())).collect();
        let names: Vec<&str> = failed.iter().map(|(name, _)| *name).collect();
        let failure = (!names.is_empty()).then(|| format!("no figures of {}", names.join(", ")));
        Ok(Done { value: json!({ "benchmarks": benchmarks, "errors": errors }), failure })
    }

    fn tune(&mut self) -> Result<Done> {
        let gpu = self.gpu()?;
        let seconds = if self.quick { 5 } else { 180 };
        let mut family = "";
        let tuning = gpu.tune(&TuneOptions::new().budget(Duration::from_secs(seconds)), |progress| {
            if progress.trial.family != family {
                family = progress.trial.family;
                eprintln!("  {family}");
            }
            ControlFlow::Continue(())
        })?;
        let trials: Vec<Value> = tuning.trials.iter().map(|trial| object(tune::fields(trial))).collect();
        let wrong = tuning
            .trials
            .iter()
            .filter(|trial| tune::is_wrong(trial))
            .map(|trial| format!("{} {} gives a wrong result", trial.family, trial.variant));
        let wrong: Vec<String> = wrong.collect();
        let failure = (!wrong.is_empty()).then(|| wrong.join(", "));
        Ok(Done { value: json!({ "trials": trials, "out_of_time": tuning.out_of_time }), failure })
    }

    fn crossover(&mut self) -> Result<Done> {
        let gpu = self.gpu()?;
        let (ops, largest) = match self.quick {
            true => (&[Op::Add, Op::Gelu, Op::Softmax, Op::Matmul][..], 1 << 16),
            false => (&OPS[..], 1 << 22),
        };
        let mut table = Table::new(&gpu)?;
        let mut cells: Vec<Cell> = Vec::new();
        for op in ops {
            eprintln!("  {}", op.name());
            for n in sizes().filter(|n| *n <= largest) {
                cells.push(table.measure(*op, n)?);
            }
        }
        let (median, worst) = regret(&cells);
        self.plots = crossover::page::plots(&cells);
        let cells: Vec<Value> = cells.iter().map(|cell| object(crossover::fields(cell))).collect();
        let value = json!({ "cells": cells, "regret_median": median, "regret_worst": worst });
        Ok(Done::fine(value))
    }
}

impl Done {
    fn fine(value: Value) -> Done {
        Done { value, failure: None }
    }
}

/// Every device, and which one the others parts are about.
fn device() -> Result<Value> {
    let devices = Accelerator::devices()?;
    let used =
        Accelerator::new(&Config::new().prewarm(Prewarm::Off).no_cache()).map(|gpu| gpu.device().index);
    let fields: Vec<Value> = devices.iter().map(info::device_json).collect();
    let problem = used.as_ref().err().map(ToString::to_string);
    Ok(json!({ "devices": fields, "used": used.ok(), "problem": problem }))
}

/// The driver's own statistics, without instructions: those make megabytes.
fn pipelines() -> Result<Value> {
    let (device, kernels) = compiled_kernels(&Config::new())?;
    let pipelines: Vec<Value> = kernels.iter().map(pipeline).collect();
    Ok(json!({ "device": device.name, "driver": device.driver, "pipelines": pipelines }))
}

fn pipeline(kernel: &CompiledKernel) -> Value {
    let constants: Map<String, Value> =
        kernel.constants.iter().map(|(id, bits)| (id.to_string(), (*bits).into())).collect();
    let statistics: Map<String, Value> =
        kernel.statistics.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
    json!({
        "family": kernel.family, "variant": kernel.variant, "kernel": kernel.kernel, "default": kernel.default,
        "constants": constants, "statistics": statistics,
    })
}

fn object<const N: usize>(fields: [(&'static str, Value); N]) -> Value {
    Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}
