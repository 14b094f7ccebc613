//! Closures of the user's that panic, and what they were called by, used again.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_executor::block_on;
use tidemill::error::StreamError;
use tidemill::hybrid::{Hybrid, Policy};
use tidemill::profile::RoundMode;
use tidemill::tune::TuneOptions;
use tidemill::{Error, Stream};

use crate::harness::{Gpu, gpu};

/// Calls what is going to panic, and says whether it did.
fn panics<T>(call: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

/// Nothing is left of it: the same works, and nothing is held.
fn works(gpu: &Gpu) {
    let x = gpu.upload(&[1.0f32, 2.0], [2]).unwrap();
    assert_eq!(gpu.run(|r| r.add(&x, &x)).unwrap().read::<f32>().unwrap(), [2.0, 4.0]);
    drop(x);
    gpu.synchronize().unwrap();
    assert_eq!(gpu.stats().pool.live_bytes, 0);
}

#[test]
fn a_panic_while_a_tensor_is_filled() {
    let gpu = gpu();
    let half = |f: &mut tidemill::TensorWriter<'_, f32>| {
        f.push(7.0);
        panic!("half way");
    };
    assert!(panics(|| gpu.upload_with([2], half)));
    works(&gpu);
    let x = gpu.upload(&[1.0f32, 2.0], [2]).unwrap();
    assert!(panics(|| x.write_with(half)));
    // As documented: it may be left without contents, and takes new ones.
    assert!(matches!(x.read::<f32>(), Ok(_) | Err(Error::NotWritten { .. })));
    x.write(&[3.0f32, 4.0]).unwrap();
    assert_eq!(x.read::<f32>().unwrap(), [3.0, 4.0]);
    drop(x);
    works(&gpu);
}

#[test]
fn a_panic_while_something_is_recorded() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, 2.0], [2]).unwrap();
    let mut kept = None;
    assert!(panics(|| gpu.run(|r| {
        let y = r.neg(&x)?;
        kept = Some(r.keep(y)?);
        if kept.is_some() {
            panic!("before the end");
        }
        Ok(y)
    })));
    assert!(matches!(kept.unwrap().read::<f32>(), Err(Error::Discarded { .. })));
    assert!(panics(|| gpu
        .stream()
        .input::<f32>([2])
        .record(|_, _| -> tidemill::Result<Vec<_>> { panic!("in a stream") })));
    drop(x);
    works(&gpu);
}

fn twice(gpu: &Gpu) -> Stream {
    gpu.stream().slots(2).input::<f32>([2]).record(|r, x| Ok([r.add(&x[0], &x[0])?])).unwrap()
}

/// Pushes and pops a batch.
fn goes_round(stream: &mut Stream, batch: f32) {
    stream.push(|slot| slot.write(0, &[batch, 1.0])).unwrap();
    assert_eq!(stream.pop().unwrap().unwrap().read::<f32>(0).unwrap(), [2.0 * batch, 2.0]);
}

#[test]
fn a_panic_while_a_batch_is_filled_or_consumed() {
    let gpu = gpu();
    let mut stream = twice(&gpu);
    for i in 0..8 {
        assert!(panics(|| stream.push(|_| panic!("before any input"))));
        assert!(panics(|| stream.try_push(|slot| slot.fill::<f32>(0, |_| panic!("in an input")))));
        assert_eq!((stream.in_flight(), stream.is_full()), (0, false));
        goes_round(&mut stream, i as f32);
    }
    assert!(panics(|| stream.run(0..9, |_, slot| slot.write(0, &[1.0f32; 2]), |_| panic!("consumer"))));
    while stream.pop().unwrap().is_some() {}
    assert!(panics(|| stream.run(0..9, |_, _| panic!("producer"), |_| Ok(()))));
    goes_round(&mut stream, 3.0);
    // A producer that waits is told when the slot of one that panicked is free.
    let (mut producer, mut consumer) = stream.split();
    for _ in 0..3 {
        assert!(panics(|| producer.push(|_| panic!("at its own end"))));
        assert!(panics(|| block_on(producer.push_async(|_| panic!("in a task")))));
    }
    producer.push(|slot| slot.write(0, &[1.0f32; 2])).unwrap();
    assert_eq!(consumer.pop().unwrap().unwrap().read::<f32>(0).unwrap(), [2.0; 2]);
    drop((producer, consumer));
    works(&gpu);
}

#[test]
fn a_panic_while_something_is_measured() {
    let gpu = gpu();
    let options = TuneOptions::new().family("elementwise");
    let mut told = 0;
    assert!(panics(|| gpu.tune(&options, |_| {
        told += 1;
        panic!("progress")
    })));
    assert_eq!(told, 1);
    let cancelled = gpu.tune(&options, |_| ControlFlow::Break(())).unwrap();
    assert!(cancelled.cancelled);
    let mut measurement = gpu.measure("a panic");
    assert!(panics(|| measurement.run(3, RoundMode::Sync, || panic!("work"))));
    assert!(measurement.ns_per_round().is_err(), "there is no figure");
    measurement.run(1, RoundMode::Sync, || gpu.run(|r| r.fill([4], 1.0f32)).map(drop)).unwrap();
    drop(measurement);
    works(&gpu);
}

#[test]
fn a_panic_while_pipelines_are_made_ahead() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, 2.0], [2]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let y = r.neg(&x).unwrap();
    let y = r.keep(y).unwrap();
    assert!(panics(|| r.prepare(|_| panic!("before any"))));
    assert!(panics(|| r.prepare(|p| if p.ready == 1 {
        panic!("after one")
    } else {
        ControlFlow::Continue(())
    })));
    r.prepare(|_| ControlFlow::Continue(())).unwrap();
    let mut plan = r.into_plan().unwrap();
    assert!(panics(|| plan.prepare(|_| panic!("in a plan"))));
    plan.prepare(|_| ControlFlow::Continue(())).unwrap();
    plan.submit().unwrap().wait().unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [-1.0, -2.0]);
    drop((x, y, plan));
    works(&gpu);
}

#[test]
fn a_panic_while_a_chain_is_recorded() {
    let gpu = gpu();
    let hybrid = Hybrid::with_accelerator((*gpu).clone(), Policy::Auto).unwrap();
    assert!(panics(|| hybrid.chain(|_| panic!("a chain"))));
    let mut y = [0.0; 2];
    hybrid
        .chain(|c| {
            let x = c.input(&[1.0f32, -1.0])?;
            let x = c.relu(x)?;
            c.output(x, &mut y)
        })
        .unwrap();
    assert_eq!(y, [1.0, 0.0]);
    drop(hybrid);
    works(&gpu);
}

#[test]
fn counts_of_slots_are_bounded() {
    let gpu = gpu();
    let made =
        |slots| gpu.stream().slots(slots).input::<f32>([2]).record(|r, x| Ok([r.neg(&x[0])?])).map(drop);
    assert!(matches!(made(0), Err(Error::Stream(StreamError::NoSlots))));
    for slots in [1025, 1 << 40, usize::MAX] {
        match made(slots) {
            Err(Error::Stream(StreamError::TooManySlots { slots: got, most: 1024 })) => {
                assert_eq!(got, slots)
            }
            other => panic!("{slots} slots: {other:?}"),
        }
    }
    made(1024).unwrap();
}

#[test]
fn a_push_that_waits_can_be_ended_from_another_thread() {
    let gpu = gpu();
    for cancel in [false, true] {
        let (mut producer, mut consumer) = twice(&gpu).split();
        let control = producer.control();
        for _ in 0..2 {
            producer.push(|slot| slot.write(0, &[1.0f32; 2])).unwrap();
        }
        assert!(!producer.try_push(|slot| slot.write(0, &[1.0f32; 2])).unwrap(), "it is full");
        let (begun, waits) = std::sync::mpsc::channel();
        let pushing = std::thread::spawn(move || {
            begun.send(()).unwrap();
            let pushed = producer.push(|slot| slot.write(0, &[1.0f32; 2]));
            (pushed, producer.try_push(|slot| slot.write(0, &[1.0f32; 2])))
        });
        waits.recv().unwrap();
        if cancel {
            control.cancel()
        } else {
            control.finish()
        }
        let expected = if cancel { StreamError::Cancelled } else { StreamError::Finished };
        let (waited, later) = pushing.join().unwrap();
        assert!(matches!(waited, Err(Error::Stream(e)) if e == expected), "{waited:?}");
        assert!(matches!(later, Err(Error::Stream(e)) if e == expected), "{later:?}");
        let popped = consumer.pop();
        match cancel {
            true => assert!(matches!(popped, Err(Error::Stream(StreamError::Cancelled)))),
            false => {
                assert!(popped.unwrap().is_some() && consumer.pop().unwrap().is_some());
                assert!(consumer.pop().unwrap().is_none(), "nothing more comes");
            }
        }
    }
}

#[test]
fn a_pop_that_waits_can_be_ended_from_another_thread() {
    let gpu = gpu();
    for cancel in [false, true] {
        let (producer, mut consumer) = twice(&gpu).split();
        let control = producer.control();
        let (begun, waits) = std::sync::mpsc::channel();
        let popping = std::thread::spawn(move || {
            begun.send(()).unwrap();
            consumer.pop().map(|batch| batch.is_none())
        });
        waits.recv().unwrap();
        if cancel {
            control.cancel()
        } else {
            control.finish()
        }
        let popped = popping.join().unwrap();
        match cancel {
            true => assert!(matches!(popped, Err(Error::Stream(StreamError::Cancelled)))),
            false => assert!(popped.unwrap(), "nothing comes any more"),
        }
        drop(producer);
    }
}

#[test]
fn a_producer_without_a_consumer_is_told_even_if_it_would_not_wait() {
    let gpu = gpu();
    let (mut producer, consumer) = twice(&gpu).split();
    drop(consumer);
    let closed = |pushed: tidemill::Result<bool>| {
        assert!(matches!(pushed, Err(Error::Stream(StreamError::Closed))), "{pushed:?}");
    };
    closed(producer.try_push(|slot| slot.write(0, &[1.0f32; 2])));
    closed(producer.push(|slot| slot.write(0, &[1.0f32; 2])).map(|()| true));
}
