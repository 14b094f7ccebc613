//! Streams on a queue that is slow, and on one that fails: no slot is used again before its number is reached.

use std::thread;
use std::time::Duration;

use ash::vk;
use tidemill::{Accelerator, Error, Stream};

use crate::SHORT;
use crate::seam::{self, Seam};

const N: usize = 1000;

fn stream(gpu: &Accelerator, slots: usize) -> Stream {
    gpu.stream().slots(slots).input::<f32>([N]).record(|r, x| Ok([r.add(&x[0], &x[0])?])).unwrap()
}

fn fill(slot: &mut tidemill::stream::Slot<'_>) -> tidemill::Result<()> {
    let batch = slot.batch() as f32;
    slot.fill(0, |f| f.extend((0..N).map(|i| batch + i as f32)))
}

fn check(batch: &tidemill::stream::Batch) {
    let expected: Vec<f32> = (0..N).map(|i| 2.0 * (batch.number() as f32 + i as f32)).collect();
    assert!(batch.read::<f32>(0).unwrap() == expected, "batch {}", batch.number());
}

#[test]
fn a_timeout_gives_no_slot_away() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let (mut producer, mut consumer) = stream(&gpu, 2).split();
    seam.close_gate();
    producer.push(fill).unwrap();
    producer.push(fill).unwrap();
    // Nothing is done: neither end gets anything, however often it asks.
    for _ in 0..3 {
        assert!(consumer.pop_timeout(SHORT).unwrap().is_none());
        assert!(consumer.try_pop().unwrap().is_none());
        assert!(!producer.try_push(|_| panic!("a slot was given away")).unwrap());
    }
    let pushing = thread::spawn(move || {
        for _ in 0..4 {
            producer.push(fill).unwrap();
        }
    });
    thread::sleep(SHORT);
    assert!(!pushing.is_finished(), "pushed into a slot that is in flight");
    seam.open_gate();
    for n in 0..6 {
        let batch = consumer.pop().unwrap().unwrap();
        assert_eq!(batch.number(), n);
        check(&batch);
    }
    pushing.join().unwrap();
    assert!(consumer.pop().unwrap().is_none());
}

#[test]
fn a_slow_consumer_and_a_slow_queue_change_no_result() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let (mut producer, mut consumer) = stream(&gpu, 3).split();
    let gate = thread::spawn(|| {
        for _ in 0..20 {
            seam::close_gate();
            thread::sleep(Duration::from_millis(3));
            seam::open_gate();
            thread::sleep(Duration::from_millis(1));
        }
    });
    let pushing = thread::spawn(move || {
        for _ in 0..60 {
            producer.push(fill).unwrap();
        }
        producer.stats()
    });
    let mut held = Vec::new();
    let mut next = 0;
    while let Some(batch) = consumer.pop().unwrap() {
        assert_eq!(batch.number(), next);
        next += 1;
        held.push(batch);
        // Two slots of three are held most of the time, and read late.
        if held.len() == 2 {
            thread::sleep(Duration::from_millis(1));
            check(&held.remove(0));
        }
    }
    held.iter().for_each(check);
    assert_eq!((next, pushing.join().unwrap().pushed), (60, 60));
    gate.join().unwrap();
}

#[test]
fn what_was_done_before_a_failure_can_still_be_popped() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let mut stream = stream(&gpu, 3);
    stream.push(fill).unwrap();
    gpu.synchronize().unwrap();
    seam.fail("vkQueueSubmit2", 0, 1, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    assert!(stream.push(fill).is_err());
    seam.heal();
    check(&stream.pop().unwrap().unwrap());
    // The number was not used.
    stream.push(fill).unwrap();
    let batch = stream.pop().unwrap().unwrap();
    assert_eq!(batch.number(), 1);
    check(&batch);
}

#[test]
fn a_lost_device_is_said_at_both_ends() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let mut stream = stream(&gpu, 3);
    stream.push(fill).unwrap();
    seam.fail("vkQueueSubmit2", 0, 1, vk::Result::ERROR_DEVICE_LOST);
    for _ in 0..2 {
        let pushed = stream.push(fill);
        assert!(matches!(pushed, Err(Error::DeviceLost { .. })), "{pushed:?}");
    }
    assert!(matches!(stream.pop(), Err(Error::DeviceLost { .. })) || stream.in_flight() == 0);
}
