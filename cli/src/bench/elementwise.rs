//! Group `elementwise`: memory-bound work on large tensors that stay on the device.

use tidemill::Accelerator;

use super::anchor::stream::Stream;
use super::timed::Timed;
use super::work::{Make, Result, Unit, Work};

/// The group's works; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static WORKS: &[(&str, Make)] = &[("add_16m", add_16m), ("gelu_16m", gelu_16m)];

fn add_16m(gpu: &Accelerator) -> Result<Work> {
    let timed = Timed::new("add_16m")?;
    let [a, b] = [0, 1].map(|k| timed.operands[k].of::<f32>());
    let (n, mut stream) = (a.len(), Stream::new(a, b)?);
    let name = stream.name();
    let anchor = timed.anchor(timed.case.bound, move |check, _, out| {
        let time = stream.run()?;
        if check {
            out.of_mut().copy_from_slice(&stream.result());
        }
        Ok(time)
    });
    timed.work(gpu, n, Unit::GigabytesPerSecond, 0.37, (name, anchor))
}

/// Against our own add on the same device, by elements: what the function costs beyond the memory it moves.
fn gelu_16m(gpu: &Accelerator) -> Result<Work> {
    let (gelu, add) = (Timed::new("gelu_16m")?, Timed::new("add_16m")?);
    let (n, unit) = (gelu.case.result.shape.elements(), Unit::GigabytesPerSecond);
    let work = gelu.work(gpu, n, unit, 0.6, ("our own add_16m", add.ours(gpu)?))?;
    // Elements, as the add counts them.
    Ok(Work { amount: add.amount(unit), ..work })
}
