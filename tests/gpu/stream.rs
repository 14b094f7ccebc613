//! Streams: in order, right and flat, whatever either end does.

use std::thread;
use std::time::Duration;

use tidemill::error::StreamError;
use tidemill::profile::Profiling;
use tidemill::{Error, Stream, Tensor};

use crate::harness::{Gpu, gpu};

const ROWS: usize = 8;
const WIDTH: usize = 33;

/// Rows times weights, and their sums.
fn stream(gpu: &Gpu, slots: usize) -> (Stream, Tensor) {
    let weights = gpu.upload(&(0..WIDTH).map(|i| i as f32).collect::<Vec<_>>(), [WIDTH]).unwrap();
    let stream = gpu.stream().slots(slots).input::<f32>([ROWS, WIDTH]).input::<f32>([1]).record(|r, x| {
        let product = r.mul(&x[0], &weights)?;
        let shifted = r.add(product, &x[1])?;
        Ok([r.sum(shifted, 1)?, shifted])
    });
    (stream.unwrap(), weights)
}

fn element(batch: u64, i: usize) -> f32 {
    ((batch as usize * 31 + i * 7) % 64) as f32
}

fn fill(slot: &mut tidemill::stream::Slot<'_>) -> tidemill::Result<()> {
    let batch = slot.batch();
    slot.fill(0, |f| f.extend((0..ROWS * WIDTH).map(|i| element(batch, i))))?;
    slot.write(1, &[batch as f32])
}

fn sums(batch: u64, rows: usize) -> Vec<f32> {
    let shifted = |row: usize, i: usize| element(batch, row * WIDTH + i) * i as f32 + batch as f32;
    (0..rows).map(|row| (0..WIDTH).map(|i| shifted(row, i)).sum()).collect()
}

fn check(batch: &tidemill::stream::Batch, number: u64) {
    assert_eq!(batch.number(), number);
    assert_eq!(batch.read::<f32>(0).unwrap(), sums(number, ROWS), "batch {number}");
    assert_eq!(batch.read::<f32>(1).unwrap().len(), ROWS * WIDTH);
}

#[test]
fn every_depth_from_one_thread() {
    let gpu = gpu();
    for slots in 1..=4 {
        let (mut stream, _weights) = stream(&gpu, slots);
        let mut next = 0;
        stream
            .run(
                0..20u64,
                |n, slot| if n == slot.batch() { fill(slot) } else { panic!("out of turn") },
                |batch| {
                    check(&batch, next);
                    next += 1;
                    Ok(())
                },
            )
            .unwrap();
        assert_eq!(next, 20);
        let stats = stream.stats();
        assert_eq!((stats.pushed, stats.popped, stats.in_flight, stats.slots), (20, 20, 0, slots));
    }
}

#[test]
fn a_single_batch_and_none() {
    let gpu = gpu();
    let (mut stream, _weights) = stream(&gpu, 3);
    assert!(stream.pop().unwrap().is_none() && stream.try_pop().unwrap().is_none());
    stream.push(fill).unwrap();
    check(&stream.pop().unwrap().unwrap(), 0);
    assert!(stream.pop().unwrap().is_none());
}

#[test]
fn a_full_stream_says_so_and_trying_never_waits() {
    let gpu = gpu();
    let (mut stream, _weights) = stream(&gpu, 2);
    assert!(stream.try_push(fill).unwrap() && stream.try_push(fill).unwrap());
    assert!(stream.is_full() && !stream.try_push(|_| panic!("there is no slot")).unwrap());
    let error = stream.push(fill).unwrap_err();
    assert!(matches!(error, Error::Stream(StreamError::Full { slots: 2 })));
    assert_eq!(
        error.to_string(),
        "all 2 slots hold batches: pop one before the next push, or split the stream for two threads"
    );
    // A batch that is held keeps its slot.
    let first = stream.pop().unwrap().unwrap();
    assert!(stream.is_full());
    check(&first, 0);
    drop(first);
    assert!(!stream.is_full());
    stream.push(fill).unwrap();
    check(&stream.pop().unwrap().unwrap(), 1);
    check(&stream.pop().unwrap().unwrap(), 2);
}

#[test]
fn a_batch_that_fails_loses_no_other() {
    let gpu = gpu();
    let (mut stream, _weights) = stream(&gpu, 3);
    stream.push(fill).unwrap();
    let error = stream.push(|slot| slot.write(0, &[1.0f32; ROWS * WIDTH])).unwrap_err();
    assert_eq!(error.to_string(), "batch 1: input 1 was not written");
    let error = stream.push(|slot| slot.write(0, &[1.0f32; 5])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "batch 1, input 0: Slot::write: shape [8, 33] holds 264 elements, the data has 5"
    );
    let error = stream.push(|slot| slot.fill(0, |f| f.extend([1.0f32; 5]))).unwrap_err();
    let said = "batch 1, input 0: Slot::fill: 5 of 264 elements were written; write them all";
    assert_eq!(error.to_string(), said);
    let error = stream.push(|slot| slot.write(0, &[1u32; ROWS * WIDTH])).unwrap_err();
    assert_eq!(error.to_string(), "batch 1, input 0: Slot::write: the data is u32, this needs f32");
    let error = stream.push(|slot| slot.write(2, &[1.0f32])).unwrap_err();
    assert_eq!(error.to_string(), "input 2 does not exist, the stream has 2");
    let error = stream.push(|slot| slot.rows(ROWS + 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a batch of 9 rows does not fit, the stream's first input has 8; give 1 to 8 rows"
    );
    stream.push(fill).unwrap();
    check(&stream.pop().unwrap().unwrap(), 0);
    let batch = stream.pop().unwrap().unwrap();
    check(&batch, 1);
    assert_eq!(batch.read::<f32>(2).unwrap_err().to_string(), "output 2 does not exist, the stream has 2");
    assert_eq!(stream.stats().pushed, 2);
}

#[test]
fn the_last_batch_may_be_partial() {
    let gpu = gpu();
    let (mut stream, _weights) = stream(&gpu, 3);
    stream.push(fill).unwrap();
    stream
        .push(|slot| {
            slot.rows(3)?;
            let rows: Vec<f32> = (0..3 * WIDTH).map(|i| element(1, i)).collect();
            slot.write(0, &rows)?;
            slot.write(1, &[1.0f32])
        })
        .unwrap();
    let whole = stream.pop().unwrap().unwrap();
    assert_eq!(whole.rows(), None);
    check(&whole, 0);
    let last = stream.pop().unwrap().unwrap();
    assert_eq!((last.rows(), last.read::<f32>(0).unwrap()), (Some(3), sums(1, 3)));
    assert_eq!(last.read::<f32>(1).unwrap().len(), 3 * WIDTH);
    let mut data = [0.0f32; 3];
    last.read_into(0, &mut data).unwrap();
    assert_eq!(data.to_vec(), sums(1, 3));
    assert!(matches!(last.read_into(0, &mut [0.0f32; ROWS]), Err(Error::Length { got: ROWS, .. })));
}

#[test]
fn what_can_not_be_a_stream_is_refused() {
    let gpu = gpu();
    let error = gpu.stream().slots(0).input::<f32>([1]).record(|r, x| Ok([r.neg(&x[0])?])).unwrap_err();
    assert_eq!(error.to_string(), "a stream needs 1 slot or more, got 0; 3 keep the device busy");
    let error = gpu.stream().input::<f32>([2]).record(|r, x| Ok([r.softmax(&x[0], 1)?])).unwrap_err();
    assert!(error.to_string().starts_with("softmax: "), "{error}");
}

#[test]
fn an_output_may_be_an_input_or_come_twice() {
    let gpu = gpu();
    let mut stream = gpu
        .stream()
        .input::<u32>([3])
        .record(|r, x| {
            let double = r.add(&x[0], &x[0])?;
            Ok([r.reshape(&x[0], [1, 3])?, double, double, r.reshape(double, [3, 1])?])
        })
        .unwrap();
    let mut next = 0u32;
    stream
        .run(
            0..7u32,
            |n, slot| slot.write(0, &[n, n + 10, n + 20]),
            |batch| {
                for k in 0..4 {
                    let factor = if k == 0 { 1 } else { 2 };
                    assert_eq!(batch.read::<u32>(k)?, [0, 10, 20].map(|x| factor * (next + x)));
                }
                next += 1;
                Ok(())
            },
        )
        .unwrap();
    assert_eq!(next, 7);
}

#[test]
fn a_producer_and_a_consumer_thread_with_random_delays() {
    let gpu = gpu();
    let batches = 10_000u64;
    let (stream, _weights) = stream(&gpu, 3);
    let (mut producer, mut consumer) = stream.split();
    let delay = |n: u64| {
        // Most take no time, some a little.
        let x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        if x < 16 {
            thread::sleep(Duration::from_micros(20 * x));
        }
    };
    let (mut before, mut after) = (None, None);
    thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..batches {
                delay(n);
                producer.push(fill).unwrap();
            }
        });
        let mut next = 0;
        while let Some(batch) = consumer.pop().unwrap() {
            check(&batch, next);
            delay(next + batches);
            next += 1;
            if next == 100 {
                before = Some(gpu.stats());
            }
        }
        assert_eq!(next, batches);
        after = Some(gpu.stats());
    });
    let (before, after) = (before.unwrap(), after.unwrap());
    assert_eq!(after.pool.misses, before.pool.misses, "a batch took new memory");
    assert_eq!(after.pool.live_bytes, before.pool.live_bytes, "memory is not flat");
    assert_eq!(after.pipelines.made, before.pipelines.made, "a batch made a pipeline");
    assert_eq!(after.commands, before.commands, "a batch encoded something, or made a pool");
}

#[test]
fn the_end_that_is_gone_is_noticed() {
    let gpu = gpu();
    let (one, _weights) = stream(&gpu, 2);
    let (mut producer, consumer) = one.split();
    producer.push(fill).unwrap();
    producer.push(fill).unwrap();
    let waiting = thread::spawn(move || producer.push(fill));
    thread::sleep(Duration::from_millis(20));
    drop(consumer);
    let error = waiting.join().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the stream's consumer is gone: no one will pop what is pushed");

    let (two, _weights) = stream(&gpu, 2);
    let (mut producer, mut consumer) = two.split();
    assert!(consumer.pop_timeout(Duration::from_millis(5)).unwrap().is_none());
    assert!(consumer.try_pop().unwrap().is_none());
    producer.push(fill).unwrap();
    drop(producer);
    check(&consumer.pop().unwrap().unwrap(), 0);
    assert!(consumer.pop().unwrap().is_none());
}

#[test]
fn dropping_a_stream_in_flight_leaks_nothing() {
    let gpu = gpu();
    let live = |gpu: &Gpu| {
        gpu.synchronize().unwrap();
        gpu.stats().pool.live_bytes
    };
    let before = live(&gpu);
    for popped in 0..3 {
        let (mut stream, weights) = stream(&gpu, 3);
        for _ in 0..3 {
            stream.push(fill).unwrap();
        }
        let held: Vec<_> = (0..popped).map(|_| stream.pop().unwrap().unwrap()).collect();
        drop((stream, weights));
        // What was popped can be read for as long as it is held.
        held.iter().zip(0..).for_each(|(batch, n)| check(batch, n));
    }
    assert_eq!(live(&gpu), before);
}

#[test]
fn outputs_feed_further_work_on_the_device() {
    let gpu = gpu();
    let (mut stream, _weights) = stream(&gpu, 2);
    stream.push(fill).unwrap();
    let batch = stream.pop().unwrap().unwrap();
    let doubled = gpu.run(|r| r.scale(batch.output(0)?, 2.0f32)).unwrap();
    drop(batch);
    for _ in 0..4 {
        stream.push(fill).unwrap();
        stream.pop().unwrap().unwrap();
    }
    let expected: Vec<f32> = sums(0, ROWS).into_iter().map(|x| 2.0 * x).collect();
    assert_eq!(doubled.read::<f32>().unwrap(), expected);
}

#[test]
fn a_report_says_where_the_time_went() {
    let gpu = gpu();
    for slots in [1, 3] {
        let n = 1 << 18;
        let mut stream =
            gpu.stream().slots(slots).input::<f32>([n]).record(|r, x| Ok([r.gelu(&x[0])?])).unwrap();
        let data = vec![0.5f32; n];
        let session = gpu.begin_profiling(&format!("{slots} slots"), Profiling::Timeline).unwrap();
        let prepare = |_, slot: &mut tidemill::stream::Slot<'_>| {
            thread::sleep(Duration::from_millis(2));
            slot.write(0, &data)
        };
        stream.run(0..12, prepare, |batch| batch.read::<f32>(0).map(drop)).unwrap();
        let run = session.finish().unwrap();
        let report = stream.report(&run).unwrap();
        assert_eq!(report.batches, 12);
        let idle = report.idle;
        assert!((idle.total_ns() - report.idle_ns()).abs() < 1.0, "{report:?}");
        assert!(report.wall_ns <= run.wall_ns as f64 && report.busy_ns > 0.0, "{report}");
        let lanes = ["prepare", "consume"];
        assert!(lanes.iter().all(|lane| run.spans.iter().filter(|span| span.track == *lane).count() == 12));
        if slots == 1 {
            assert!(
                idle.preparation_ns >= 12.0 * 2e6,
                "one slot can't prepare while the device works: {report}"
            );
        }
    }
    // Without profiling there is nothing to say.
    let (mut stream, _weights) = stream(&gpu, 2);
    let session = gpu.begin_profiling("none", Profiling::Timeline).unwrap();
    let run = session.finish().unwrap();
    stream.push(fill).unwrap();
    stream.pop().unwrap().unwrap();
    assert!(stream.report(&run).is_err());
}
