//! A queue that is slow: work is held back at a gate.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tidemill::Error;

use crate::harness;
use crate::seam::Seam;
use crate::{SHORT, open_later, ramp};

#[test]
fn a_timeout_changes_nothing() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let a = gpu.upload(&[3.0f32; 100], [100]).unwrap();
    seam.close_gate();
    let r = gpu.begin_recording().unwrap();
    let square = r.mul(&a, &a).unwrap();
    let square = r.keep(square).unwrap();
    let done = r.end_recording().unwrap();
    for timeout in [Duration::ZERO, SHORT, Duration::ZERO] {
        let begun = Instant::now();
        assert!(!done.wait_timeout(timeout).unwrap());
        assert!(begun.elapsed() >= timeout);
        assert!(!done.is_complete().unwrap());
    }
    let stats = gpu.stats();
    assert_eq!((stats.in_flight, stats.pool.live_blocks), (1, 2), "still held");
    seam.open_gate();
    done.wait().unwrap();
    assert!(done.is_complete().unwrap());
    assert!(done.wait_timeout(Duration::ZERO).unwrap());
    assert!(done.wait_timeout(Duration::MAX).unwrap());
    assert_eq!(square.read::<f32>().unwrap(), [9.0; 100]);
}

#[test]
fn read_waits_for_its_own_producer_and_nothing_else() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let a = gpu.upload(&[2.0f32; 10], [10]).unwrap();
    let early = gpu.run(|r| r.add(&a, &a)).unwrap();
    seam.close_gate();
    let late = gpu.run(|r| r.mul(&early, &early)).unwrap();
    assert_eq!(early.read::<f32>().unwrap(), [4.0; 10], "the later submission is still held back");
    assert_eq!(a.read::<f32>().unwrap(), [2.0; 10]);
    let opener = open_later();
    assert_eq!(late.read::<f32>().unwrap(), [16.0; 10]);
    opener.join().unwrap();
}

#[test]
fn write_never_waits_and_never_shows_in_work_before_it() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let t = gpu.upload(&[1.0f32; 100], [100]).unwrap();
    seam.close_gate();
    let old = gpu.run(|r| r.add(&t, &t)).unwrap();
    // All of this happens while the first submission has not even begun.
    t.write(&[10.0f32; 100]).unwrap();
    let new = gpu.run(|r| r.add(&t, &t)).unwrap();
    t.write_with(|f| f.extend([100.0f32; 100])).unwrap();
    assert_eq!(t.read::<f32>().unwrap(), [100.0; 100]);
    assert_eq!(gpu.stats().in_flight, 2);
    seam.open_gate();
    assert_eq!(old.read::<f32>().unwrap(), [2.0; 100]);
    assert_eq!(new.read::<f32>().unwrap(), [20.0; 100]);
}

#[test]
fn back_pressure_waits_for_the_oldest() {
    let seam = Seam::take();
    let gpu = harness::gpu_with(seam.config().max_in_flight(3));
    let a = gpu.upload(&[1.0f32; 10], [10]).unwrap();
    seam.close_gate();
    let begun = Instant::now();
    for _ in 0..3 {
        let _ = gpu.run(|r| r.add(&a, &a)).unwrap();
    }
    assert_eq!(gpu.stats().in_flight, 3);
    let opener = open_later();
    let fourth = gpu.run(|r| r.add(&a, &a)).unwrap();
    assert!(begun.elapsed() >= SHORT, "the fourth had to wait");
    opener.join().unwrap();
    assert_eq!(fourth.read::<f32>().unwrap(), [2.0; 10]);
}

#[test]
fn everything_may_be_dropped_in_flight() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let a = gpu.upload(&ramp(1000), [1000]).unwrap();
    seam.close_gate();
    let r = gpu.begin_recording().unwrap();
    let x = r.add(&a, &a).unwrap();
    let x = r.mul(x, &a).unwrap();
    let kept = r.keep(x).unwrap();
    let done = r.end_recording().unwrap();
    let open = gpu.begin_recording().unwrap();
    let _ = open.add(&a, &a).unwrap();
    let live = gpu.stats().pool.live_blocks;
    drop((done, kept, a, open));
    assert_eq!(gpu.stats().pool.live_blocks, live, "the submission holds them");
    // No block of the submission's is given out.
    let fresh = gpu.upload(&[1.0f32; 1000], [1000]).unwrap();
    drop(fresh);
    let opener = open_later();
    let begun = Instant::now();
    drop(gpu);
    assert!(begun.elapsed() >= SHORT, "the device goes when the work is done");
    opener.join().unwrap();
}

#[test]
fn memory_at_the_cap_waits_for_work_in_flight() {
    let seam = Seam::take();
    let gpu = harness::gpu_with(seam.config().memory_checks(false).pool_cap(2 << 20));
    let a = gpu.upload(&vec![2.0f32; 1 << 18], [1 << 18]).unwrap();
    seam.close_gate();
    drop(gpu.run(|r| r.mul(&a, &a)).unwrap());
    // The cap is reached by what is in flight: no error, but a wait.
    let opener = open_later();
    let begun = Instant::now();
    let b = gpu.upload(&vec![1.0f32; 1 << 18], [1 << 18]).unwrap();
    assert!(begun.elapsed() >= SHORT / 2);
    opener.join().unwrap();
    let error = gpu.upload(&[0.0f32; 10], [10]).unwrap_err();
    assert!(matches!(error, Error::OverCap { .. }), "{error}");
    drop(b);
}

/// A task that is never run; it lives as long as somebody means to wake it.
struct Task;

impl Wake for Task {
    fn wake(self: Arc<Task>) {}
}

/// Polls a future as a new task each time; gives the tasks.
fn poll_often(mut poll: impl FnMut(&mut Context<'_>) -> bool) -> Vec<Weak<Task>> {
    let tasks = (0..100).map(|_| {
        let task = Arc::new(Task);
        let weak = Arc::downgrade(&task);
        assert!(!poll(&mut Context::from_waker(&Waker::from(task))), "still held back");
        weak
    });
    tasks.collect()
}

fn alive(tasks: &[Weak<Task>]) -> usize {
    tasks.iter().filter(|task| task.strong_count() > 0).count()
}

#[test]
fn a_future_has_one_waker_and_a_dropped_one_has_none() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let a = gpu.upload(&[2.0f32; 10], [10]).unwrap();
    seam.close_gate();
    let r = gpu.begin_recording().unwrap();
    let sum = r.add(&a, &a).unwrap();
    let sum = r.keep(sum).unwrap();
    let mut done = r.end_recording().unwrap();
    let tasks = poll_often(|context| Pin::new(&mut done).poll(context).is_ready());
    assert_eq!(alive(&tasks), 1, "the waker of the last poll");
    assert!(tasks[99].strong_count() > 0);
    let clones = poll_often(|context| Pin::new(&mut done.clone()).poll(context).is_ready());
    assert_eq!(alive(&clones), 0, "futures that were dropped");
    drop(done);
    assert_eq!(alive(&tasks), 0);
    seam.open_gate();
    assert_eq!(sum.read::<f32>().unwrap(), [4.0; 10]);
}

#[test]
fn an_accelerator_goes_whose_only_future_was_dropped() {
    let seam = Seam::take();
    for _ in 0..20 {
        let gpu = seam.gpu();
        let a = gpu.upload(&[2.0f32; 10], [10]).unwrap();
        seam.close_gate();
        let mut done = gpu.begin_recording().unwrap().end_recording().unwrap();
        assert!(Pin::new(&mut done).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop((done, a));
        seam.open_gate();
        drop(gpu);
        // The last reference may be a thread's in the background for a moment.
        let begun = Instant::now();
        while seam.live() != (0, 0) {
            assert!(begun.elapsed() < Duration::from_secs(20), "left: {:?}", seam.live());
            thread::yield_now();
        }
    }
}

#[test]
fn the_ends_of_a_stream_have_one_waker_each() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let stream = gpu.stream().slots(1).input::<f32>([4]).record(|r, x| Ok([r.neg(&x[0])?])).unwrap();
    let (mut producer, mut consumer) = stream.split();
    let pops = poll_often(|context| std::pin::pin!(consumer.pop_async()).poll(context).is_ready());
    assert_eq!(alive(&pops), 1);
    seam.close_gate();
    producer.push(|slot| slot.write(0, &[1.0f32; 4])).unwrap();
    let pushes = poll_often(|context| {
        let push = producer.push_async(|slot| slot.write(0, &[2.0f32; 4]));
        std::pin::pin!(push).poll(context).is_ready()
    });
    assert_eq!(alive(&pushes), 1);
    let pops = poll_often(|context| std::pin::pin!(consumer.pop_async()).poll(context).is_ready());
    assert_eq!(alive(&pops), 1);
    seam.open_gate();
    assert_eq!(consumer.pop().unwrap().unwrap().read::<f32>(0).unwrap(), [-1.0; 4]);
}
