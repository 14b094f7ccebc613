//! What the host does for a recording, its end, a submission of a plan and a block from the pool, with a driver that
//! does nothing: `./dev counters` counts the instructions between the two ends of `counted`, under callgrind.

mod arena;
mod driver;

use std::hint::black_box;

use tidemill::{Accelerator, Config, Prewarm, Recording, Result, Tensor};

#[global_allocator]
static ARENA: arena::Arena = arena::Arena::new();

/// Elements of operands; nothing computes with them.
const N: usize = 1024;
/// Operations in a recording, submissions of a plan, and blocks that are taken.
const OPERATIONS: usize = 1000;
const SUBMISSIONS: usize = 100;
const BLOCKS: usize = 1000;
/// Operations of a plan.
const PLANNED: usize = 100;

/// Callgrind counts while this runs, which it knows by its name.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
    // The call above is no tail call then, and the count ends where it should.
    black_box(());
}

/// Does the work, counted if that is wanted.
fn measure<T>(wanted: bool, work: impl FnOnce() -> T) -> T {
    let (mut work, mut done) = (Some(work), None);
    let mut call = || done = work.take().map(|work| work());
    if wanted {
        counted(&mut call)
    } else {
        call()
    }
    match done {
        Some(done) => done,
        None => unreachable!("it was called"),
    }
}

/// A chain of additions that is still open, with its result kept.
fn additions(gpu: &Accelerator, [a, b]: &[Tensor; 2], count: usize) -> Result<(Recording, Tensor)> {
    let r = gpu.begin_recording()?;
    let mut value = r.add(a, b)?;
    for _ in 1..count {
        value = r.add(value, b)?;
    }
    let kept = r.keep(value)?;
    Ok((r, kept))
}

/// Two layers and a softmax, written as plain operations: all of fusion and lowering has to do with it.
fn network(gpu: &Accelerator, [x, w1, b1, w2]: &[Tensor; 4]) -> Result<(Recording, Tensor)> {
    let r = gpu.begin_recording()?;
    let h = r.matmul(x, w1)?;
    let h = r.add(h, b1)?;
    let h = r.relu(h)?;
    let y = r.matmul(h, w2)?;
    let p = r.softmax(y, -1)?;
    let kept = r.keep(p)?;
    Ok((r, kept))
}

fn operands(gpu: &Accelerator) -> Result<[Tensor; 2]> {
    Ok([gpu.upload(&vec![1.0f32; N], [N])?, gpu.upload(&vec![0.5f32; N], [N])?])
}

/// Once with nothing counted, so that pipelines, blocks and command buffers are there, and then once more.
fn twice(mut work: impl FnMut(bool) -> Result<()>) -> Result<()> {
    work(false)?;
    work(true)
}

fn record(gpu: &Accelerator) -> Result<()> {
    let operands = operands(gpu)?;
    twice(|wanted| {
        let (r, _kept) = measure(wanted, || additions(gpu, &operands, OPERATIONS))?;
        r.end_recording()?.wait()
    })
}

fn end(gpu: &Accelerator) -> Result<()> {
    let operands = operands(gpu)?;
    twice(|wanted| {
        let (r, _kept) = additions(gpu, &operands, OPERATIONS)?;
        measure(wanted, || r.end_recording())?.wait()
    })
}

fn end_network(gpu: &Accelerator) -> Result<()> {
    let upload = |m: usize, n: usize| gpu.upload(&vec![0.5f32; m * n], [m, n]);
    let tensors = [upload(64, 784)?, upload(784, 256)?, upload(1, 256)?, upload(256, 10)?];
    twice(|wanted| {
        let (r, _kept) = network(gpu, &tensors)?;
        measure(wanted, || r.end_recording())?.wait()
    })
}

fn plan_submit(gpu: &Accelerator) -> Result<()> {
    let operands = operands(gpu)?;
    let (r, _kept) = additions(gpu, &operands, PLANNED)?;
    let mut plan = r.into_plan()?;
    let mut submit = || (0..SUBMISSIONS).try_for_each(|_| plan.submit()?.wait());
    twice(|wanted| measure(wanted, &mut submit))
}

fn pool_hit(gpu: &Accelerator) -> Result<()> {
    let take =
        || (0..BLOCKS).try_for_each(|_| gpu.upload(&[1.0f32], [1]).map(|tensor| drop(black_box(tensor))));
    twice(|wanted| measure(wanted, take))
}

/// What is counted: its name, whether operations are fused, and the program.
type Program = fn(&Accelerator) -> Result<()>;
const PROGRAMS: [(&str, bool, Program); 5] = [
    ("record", false, record),
    ("end", false, end),
    ("end_network", true, end_network),
    ("plan_submit", false, plan_submit),
    ("pool_hit", true, pool_hit),
];

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let wanted = std::env::args().nth(1);
    let found = PROGRAMS.iter().find(|(name, ..)| wanted.as_deref() == Some(name));
    let Some((_, fusion, program)) = found else {
        PROGRAMS.iter().for_each(|(name, ..)| println!("{name}"));
        return Ok(());
    };
    let config = Config::new().entry(driver::entry()?).fusion(*fusion);
    let gpu = Accelerator::new(&config.prewarm(Prewarm::Off).no_cache().tuned(false))?;
    program(&gpu)?;
    Ok(())
}
