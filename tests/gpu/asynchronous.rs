//! Submissions and streams as futures, on two executors.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use futures_executor::{ThreadPool, block_on};
use tidemill::{Accelerator, Submission, Tensor};

use crate::harness::gpu;

/// A chain of this many multiplications by two.
fn work(gpu: &Accelerator, x: &Tensor, steps: usize) -> (Submission, Tensor) {
    let r = gpu.begin_recording().unwrap();
    let mut y = r.copy(x).unwrap();
    for _ in 0..steps {
        y = r.add(y, y).unwrap();
    }
    let y = r.keep(y).unwrap();
    (r.end_recording().unwrap(), y)
}

#[test]
fn a_submission_is_awaited_on_two_executors() {
    let gpu = gpu();
    let x = gpu.upload(&vec![1.0f32; 100_000], [100_000]).unwrap();
    pollster::block_on(async {
        let (done, y) = work(&gpu, &x, 3);
        done.clone().await.unwrap();
        assert!(done.is_complete().unwrap());
        assert!(y.read::<f32>().unwrap().iter().all(|y| *y == 8.0));
        // What is done is ready at once, again and again.
        done.clone().await.unwrap();
        done.await.unwrap();
    });
    block_on(async {
        let all: Vec<_> = (0..8).map(|steps| work(&gpu, &x, steps)).collect();
        // The last first: no task is woken late because another waits for more.
        for (steps, (done, y)) in all.into_iter().enumerate().rev() {
            done.await.unwrap();
            assert_eq!(y.read::<f32>().unwrap()[0], (1 << steps) as f32);
        }
    });
}

#[test]
fn many_tasks_on_a_pool_of_threads() {
    let gpu = gpu();
    let pool = ThreadPool::builder().pool_size(2).create().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let x = gpu.upload(&vec![1.0f32; 10_000], [10_000]).unwrap();
    for steps in 0..40 {
        let (accelerator, x, count) = ((*gpu).clone(), x.clone(), count.clone());
        pool.spawn_ok(async move {
            let (done, y) = work(&accelerator, &x, steps % 7);
            done.await.unwrap();
            assert_eq!(y.read::<f32>().unwrap()[9_999], (1 << (steps % 7)) as f32);
            drop((accelerator, x, y));
            count.fetch_add(1, Ordering::Release);
        });
    }
    while count.load(Ordering::Acquire) < 40 {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

#[test]
fn a_cancelled_future_is_safe_and_a_waiting_one_is_woken_by_itself() {
    let gpu = gpu();
    let x = gpu.upload(&vec![1.0f32; 1 << 20], [1 << 20]).unwrap();
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    for _ in 0..20 {
        let (done, _y) = work(&gpu, &x, 2);
        let mut future = done;
        let _ = pin!(&mut future).poll(&mut Context::from_waker(&waker));
        drop(future);
    }
    let (mut done, y) = work(&gpu, &x, 4);
    let before = bell.0.load(Ordering::Acquire);
    if pin!(&mut done).poll(&mut Context::from_waker(&waker)).is_pending() {
        while bell.0.load(Ordering::Acquire) == before {
            thread::sleep(Duration::from_micros(100));
        }
    }
    assert_eq!(y.read::<f32>().unwrap()[0], 16.0);
    gpu.synchronize().unwrap();
    assert!(matches!(pin!(&mut done).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(()))));
}

#[test]
fn a_stream_between_two_tasks() {
    let gpu = gpu();
    let stream = gpu.stream().input::<f32>([64]).record(|r, x| Ok([r.add(&x[0], &x[0])?])).unwrap();
    let (mut producer, mut consumer) = stream.split();
    let pool = ThreadPool::builder().pool_size(1).create().unwrap();
    pool.spawn_ok(async move {
        for n in 0..50u8 {
            producer.push_async(|slot| slot.write(0, &[f32::from(n); 64])).await.unwrap();
        }
    });
    block_on(async {
        let mut next = 0u8;
        while let Some(batch) = consumer.pop_async().await.unwrap() {
            assert_eq!(batch.read::<f32>(0).unwrap(), [2.0 * f32::from(next); 64]);
            next += 1;
        }
        assert_eq!(next, 50);
    });
}

#[cfg(feature = "async")]
#[test]
fn a_stream_is_a_stream_of_futures() {
    use futures_core::Stream;

    let gpu = gpu();
    let stream = gpu.stream().slots(2).input::<f32>([1]).record(|r, x| Ok([r.neg(&x[0])?])).unwrap();
    let (mut producer, mut consumer) = stream.split();
    producer.push(|slot| slot.write(0, &[1.0f32])).unwrap();
    producer.push(|slot| slot.write(0, &[2.0f32])).unwrap();
    drop(producer);
    let mut next = async || std::future::poll_fn(|c| pin!(&mut consumer).poll_next(c)).await;
    pollster::block_on(async {
        assert_eq!(next().await.unwrap().unwrap().read::<f32>(0).unwrap(), [-1.0]);
        assert_eq!(next().await.unwrap().unwrap().read::<f32>(0).unwrap(), [-2.0]);
        assert!(next().await.is_none());
    });
}
