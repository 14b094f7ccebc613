//! Random programs of submissions, writes, reads, binds and recordings, in flight and not, against a model on the host.

use tidemill::{Accelerator, Error, Plan, Recording, Tensor};

use crate::harness;
use crate::in_flight::OpenAtEnd;
use crate::seam::{FakeMemory, Seam};

const ELEMENTS: usize = 300;
const TENSORS: usize = 5;
const STEPS: usize = 400;
/// Submissions that may be held back before the gate is opened.
const HELD: usize = 100;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// A tensor and the element that all of it should be; `None` without contents.
#[derive(Clone)]
struct Known {
    tensor: Tensor,
    element: Option<i32>,
}

impl Known {
    fn check(&self, what: &str) {
        match (self.tensor.read::<i32>(), self.element) {
            (Ok(read), Some(element)) => {
                assert!(read.iter().all(|e| *e == element), "{what}: {} != {element}", read[0])
            }
            (Err(Error::NotWritten { .. } | Error::NotSubmitted { .. } | Error::Discarded { .. }), None) => {}
            (read, element) => panic!("{what}: {read:?} where {element:?} was expected"),
        }
    }
}

/// `[a + b, 2 a]` through a temporary; the four tensors by their places.
struct Planned {
    plan: Plan,
    named: [Tensor; 4],
    /// Which of the known tensors stands in each place; what was recorded stands there at first.
    stands: [usize; 4],
}

struct Machine<'a> {
    seam: &'a Seam,
    gpu: &'a Accelerator,
    random: Random,
    known: Vec<Known>,
    plans: Vec<Planned>,
    /// Recordings that captured a tensor: what they will keep, and its element.
    open: Vec<(Recording, Tensor, i32)>,
    /// Results and views that only have to stay as they are.
    apart: Vec<Known>,
    held: usize,
}

impl Machine<'_> {
    fn new<'a>(seam: &'a Seam, gpu: &'a Accelerator, seed: u64) -> Machine<'a> {
        let upload =
            |i: i32| Known { tensor: gpu.upload(&[i; ELEMENTS], [ELEMENTS]).unwrap(), element: Some(i) };
        let mut machine = Machine {
            seam,
            gpu,
            random: Random(seed),
            known: (0..TENSORS as i32).map(upload).collect(),
            plans: Vec::new(),
            open: Vec::new(),
            apart: Vec::new(),
            held: 0,
        };
        for _ in 0..2 {
            let [a, b] = [0, 1].map(|i| machine.known[i].tensor.clone());
            let r = gpu.begin_recording().unwrap();
            let sum = r.add(&a, &b).unwrap();
            let copied = r.copy(&a).unwrap();
            let twice = r.add(copied, copied).unwrap();
            let outputs = [r.keep(sum).unwrap(), r.keep(twice).unwrap()];
            let plan = r.into_plan().unwrap();
            let first = machine.known.len();
            machine.known.extend(outputs.clone().map(|tensor| Known { tensor, element: None }));
            let [y, z] = outputs;
            machine.plans.push(Planned { plan, named: [a, b, y, z], stands: [0, 1, first, first + 1] });
        }
        machine
    }

    fn pick(&mut self) -> usize {
        self.random.below(self.known.len())
    }

    fn submit(&mut self) {
        let chosen = self.random.below(self.plans.len());
        let planned = &mut self.plans[chosen];
        let [a, b, y, z] = planned.stands;
        let submitted = planned.plan.submit();
        match (self.known[a].element, self.known[b].element) {
            (Some(left), Some(right)) => {
                let _ = submitted.unwrap();
                self.known[y].element = Some(left.wrapping_add(right));
                self.known[z].element = Some(left.wrapping_add(left));
                self.held += 1;
            }
            _ => assert!(submitted.is_err(), "an input has no contents"),
        }
    }

    fn write(&mut self) {
        let (i, element) = (self.pick(), self.random.below(1 << 20) as i32);
        let known = &mut self.known[i];
        let written = match element % 2 {
            0 => known.tensor.write(&[element; ELEMENTS]),
            _ => known.tensor.write_with(|f| f.extend([element; ELEMENTS])),
        };
        match written {
            Ok(()) => known.element = Some(element),
            Err(error) => {
                assert!(matches!(error, Error::NotSubmitted { .. }) && known.element.is_none(), "{error}")
            }
        }
    }

    fn bind(&mut self) {
        let (tensor, place) = (self.pick(), self.random.below(4));
        let chosen = self.random.below(self.plans.len());
        let planned = &mut self.plans[chosen];
        match planned.plan.bind(&planned.named[place], &self.known[tensor].tensor) {
            Ok(()) => planned.stands[place] = tensor,
            Err(error) => assert!(matches!(error, Error::BoundTwice { .. }), "{error}"),
        }
    }

    /// A recording that stays open has captured a tensor.
    fn capture(&mut self) {
        let i = self.pick();
        let Known { tensor, element: Some(element) } = self.known[i].clone() else { return };
        let r = self.gpu.begin_recording().unwrap();
        let value = if element % 2 == 0 {
            r.copy(&tensor).unwrap()
        } else {
            r.reshape(&tensor, [3, ELEMENTS / 3]).unwrap()
        };
        let kept = r.keep(value).unwrap();
        self.open.push((r, kept, element));
    }

    fn end(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let chosen = self.random.below(self.open.len());
        let (recording, tensor, element) = self.open.swap_remove(chosen);
        let _ = recording.end_recording().unwrap();
        self.held += 1;
        self.apart.push(Known { tensor, element: Some(element) });
        if self.apart.len() > 6 {
            let chosen = self.random.below(self.apart.len());
            self.apart.swap_remove(chosen);
        }
    }

    /// A tensor's handle is dropped while work may use it, and another stands for it from now on.
    fn replace(&mut self) {
        let (i, j) = (self.random.below(TENSORS), self.pick());
        let in_a_plan = self.plans.iter().any(|planned| planned.stands.contains(&i));
        let Some(element) = self.known[j].element.filter(|_| !in_a_plan) else { return };
        let sum = self.gpu.run(|r| r.add(&self.known[j].tensor, &self.known[j].tensor)).unwrap();
        self.held += 1;
        self.known[i] = Known { tensor: sum, element: Some(element.wrapping_add(element)) };
    }

    fn check(&mut self) {
        self.seam.open_gate();
        let i = self.pick();
        self.known[i].check("a tensor");
        if !self.apart.is_empty() {
            let i = self.random.below(self.apart.len());
            self.apart[i].check("what was captured");
        }
        self.held = 0;
        self.seam.close_gate();
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..7 => self.submit(),
            7..11 => self.write(),
            11..13 => self.bind(),
            13..15 => self.capture(),
            15..17 => self.end(),
            17 => self.replace(),
            18 => drop(self.gpu.trim()),
            _ => self.check(),
        }
        if self.held > HELD {
            self.check();
        }
    }

    fn finish(mut self) {
        while !self.open.is_empty() {
            self.end();
        }
        self.seam.open_gate();
        self.known.iter().for_each(|known| known.check("a tensor at the end"));
        self.apart.iter().for_each(|known| known.check("what was captured, at the end"));
    }
}

fn check_all(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        for memory in [None, Some(FakeMemory::discrete()), Some(FakeMemory::write_combined())] {
            let seam = Seam::take();
            if let Some(memory) = memory {
                seam.fake_memory(memory);
            }
            let gpu = harness::gpu_with(seam.config().max_in_flight(1000));
            let _open = OpenAtEnd;
            seam.close_gate();
            let mut machine = Machine::new(&seam, &gpu, seed);
            (0..STEPS).for_each(|_| machine.step());
            machine.finish();
            gpu.synchronize().unwrap();
            assert_eq!(gpu.stats().pool.live_blocks, 0, "seed {seed}");
        }
    }
}

#[test]
fn random_programs_in_flight_do_what_the_model_does() {
    check_all(0..6);
}

#[test]
#[ignore = "minutes: ./dev test --long runs it"]
fn hundreds_of_random_programs_in_flight() {
    check_all(1000..1300);
}
