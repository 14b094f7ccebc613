//! What is done while calls fail.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tidemill::interop::HostMemory;
use tidemill::profile::Profiling;
use tidemill::tune::TuneOptions;
use tidemill::{Accelerator, DType, Result};

use crate::fixtures::Pages;
use crate::ramp;

/// Something to do on an accelerator, and what comes out if all goes well.
#[derive(Clone, Copy)]
pub struct Workload {
    pub run: fn(&Accelerator) -> Result<Vec<f32>>,
    pub expected: fn() -> Vec<f32>,
}

/// Uploads, recordings, waits and reads with one kernel only: compiling it is most of the time that this takes.
pub const SMALL: Workload = Workload { run: small, expected: expected_of_small };

/// A stream, a matmul with an epilogue, a plan that others are bound to, imported memory, a session, and tuning.
pub const LARGE: Workload = Workload { run: large, expected: expected_of_large };

const N: usize = 300;

fn small(gpu: &Accelerator) -> Result<Vec<f32>> {
    let a = gpu.upload(&ramp(N), [N])?;
    let session = gpu.begin_profiling("faults", Profiling::Timeline)?;
    let r = gpu.begin_recording()?;
    let x = r.copy(&a)?;
    let x = r.add(x, &a)?;
    let x = r.keep(x)?;
    let done = r.end_recording()?;
    done.wait_timeout(Duration::from_secs(10))?;
    session.finish()?;
    a.write(&ramp(N))?;
    let y = gpu.run(|r| r.add(&x, &a))?;
    let r = gpu.begin_recording()?;
    let z = r.copy(&y)?;
    let z = r.keep(z)?;
    let mut plan = r.into_plan()?;
    plan.profiling(Profiling::Timeline);
    let _ = plan.submit()?;
    y.write(&expected_of_small())?;
    plan.submit()?.profile()?;
    z.read::<f32>()
}

fn expected_of_small() -> Vec<f32> {
    ramp(N).iter().map(|x| 3.0 * x).collect()
}

/// Rows and columns of the matmul's factors.
const SIDE: usize = 8;

fn large(gpu: &Accelerator) -> Result<Vec<f32>> {
    let session = gpu.begin_profiling("faults", Profiling::Timeline)?;
    let mut found = stream(gpu)?;
    found.extend(matmul(gpu)?);
    found.extend(plan(gpu)?);
    found.extend(imported(gpu)?);
    session.finish()?;
    // One candidate is enough: each is tried in the same way.
    gpu.tune(&TuneOptions::new().family("elementwise"), |_| ControlFlow::Break(()))?;
    Ok(found)
}

fn expected_of_large() -> Vec<f32> {
    let mut expected: Vec<f32> =
        (0..BATCHES).flat_map(|batch| ramp(N).into_iter().map(move |x| 2.0 * (x + batch as f32))).collect();
    // The row of ones times the matrix, less the bias.
    expected.extend((0..SIDE * SIDE).map(|i| {
        let column = i % SIDE;
        let sum: usize = (0..SIDE).map(|k| k * SIDE + column).sum();
        (sum as f32 - 230.0).max(0.0)
    }));
    expected.extend(ramp(N).iter().map(|x| 2.0 * x));
    expected.extend(ramp(N).iter().map(|x| 4.0 * x));
    expected.extend([14.0; N]);
    expected
}

const BATCHES: usize = 4;

fn stream(gpu: &Accelerator) -> Result<Vec<f32>> {
    let mut stream = gpu.stream().slots(2).input::<f32>([N]).record(|r, x| Ok([r.add(&x[0], &x[0])?]))?;
    let mut found = Vec::new();
    for batch in 0..BATCHES {
        if stream.is_full()
            && let Some(done) = stream.pop()?
        {
            found.extend(done.read::<f32>(0)?);
        }
        let data: Vec<f32> = ramp(N).iter().map(|x| x + batch as f32).collect();
        stream.push(|slot| slot.write(0, &data))?;
    }
    while let Some(done) = stream.pop()? {
        found.extend(done.read::<f32>(0)?);
    }
    Ok(found)
}

fn matmul(gpu: &Accelerator) -> Result<Vec<f32>> {
    let ones = gpu.upload(&[1.0f32; SIDE * SIDE], [SIDE, SIDE])?;
    let matrix = gpu.upload(&ramp(SIDE * SIDE), [SIDE, SIDE])?;
    let bias = gpu.upload(&[-230.0f32; SIDE], [SIDE])?;
    let y = gpu.run(|r| {
        let y = r.matmul(&ones, &matrix)?;
        let y = r.add(y, &bias)?;
        r.relu(y)
    })?;
    y.read::<f32>()
}

/// Memory of the test's own, imported, or else uploaded.
fn imported(gpu: &Accelerator) -> Result<Vec<f32>> {
    let memory = HostMemory::new(Pages::of(7.0, Arc::default()));
    let (x, _) = gpu.import_or_upload(&memory, 0, [N], DType::F32)?;
    drop(memory);
    gpu.run(|r| r.add(&x, &x))?.read::<f32>()
}

/// Two outputs in turn, of which the second gets another input, too.
fn plan(gpu: &Accelerator) -> Result<Vec<f32>> {
    let doubled: Vec<f32> = ramp(N).iter().map(|x| 2.0 * x).collect();
    let (x, other_x) = (gpu.upload(&ramp(N), [N])?, gpu.upload(&doubled, [N])?);
    let r = gpu.begin_recording()?;
    let y = r.add(&x, &x)?;
    let y = r.keep(y)?;
    let mut plan = r.into_plan()?;
    let other_y = gpu.zeros::<f32>([N])?;
    let _ = plan.submit()?;
    plan.bind(&x, &other_x)?;
    plan.bind(&y, &other_y)?;
    let _ = plan.submit()?;
    let _ = plan.submit()?;
    let mut found = y.read::<f32>()?;
    found.extend(other_y.read::<f32>()?);
    Ok(found)
}
