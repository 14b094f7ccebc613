//! Plans: submitted again and again, in flight several at once, with other data and other tensors.

use tidemill::profile::Profiling;
use tidemill::stats::Stats;
use tidemill::{Accelerator, Axes, DType, Dispatch, Error, Plan, Tensor};

use crate::fixtures::kernel;
use crate::harness::{config, gpu, gpu_with};

/// `steps` dispatches that nothing fuses, each adding 1 to the one before.
fn counting_plan(gpu: &Accelerator, x: &Tensor, steps: usize) -> (Plan, Tensor) {
    let (scale, n) = (kernel("scale"), x.shape().elements());
    let r = gpu.begin_recording().unwrap();
    let mut v = r.reshape(x, [n]).unwrap();
    for _ in 0..steps {
        let run = Dispatch::new(&scale).input(v).output([n], DType::F32).push(&[1.0f32]);
        let run = run.specialize(0, 64u32).specialize(1, 1.0f32).groups([n.div_ceil(64) as u32, 1, 1]);
        v = r.dispatch(run).unwrap()[0];
    }
    let y = r.keep(v).unwrap();
    (r.into_plan().unwrap(), y)
}

/// What must not grow while a plan is replayed in memory that stays where it is.
fn growth(stats: Stats) -> (u64, u64, tidemill::stats::CommandStats) {
    (stats.pool.misses, stats.pipelines.made, stats.commands)
}

#[test]
fn a_plan_reads_what_its_inputs_hold_when_it_is_submitted() {
    let gpu = gpu();
    let (x, w) = (gpu.upload(&[1.0f32; 64], [8, 8]).unwrap(), gpu.upload(&[0.5f32; 64], [8, 8]).unwrap());
    let r = gpu.begin_recording().unwrap();
    let h = r.matmul(&x, &w).unwrap();
    let (sum, h) = (r.sum(h, Axes::ALL).unwrap(), r.relu(h).unwrap());
    let (sum, h) = (r.keep(sum).unwrap(), r.keep(h).unwrap());
    let mut plan = r.into_plan().unwrap();
    for round in 0..20 {
        let value = round as f32;
        x.write(&[value; 64]).unwrap();
        if round % 3 == 0 {
            w.write(&[0.25f32; 64]).unwrap();
        }
        let done = plan.submit().unwrap();
        if round % 2 == 0 {
            assert_eq!(h.read::<f32>().unwrap(), [8.0 * 0.25 * value; 64], "round {round}");
            assert_eq!(sum.read::<f32>().unwrap(), [64.0 * 8.0 * 0.25 * value]);
            assert!(done.is_complete().unwrap());
        }
    }
}

#[test]
fn replaying_encodes_and_makes_nothing() {
    let gpu = gpu();
    let x = gpu.upload(&[0.0f32; 100], [100]).unwrap();
    let (mut plan, y) = counting_plan(&gpu, &x, 100);
    let submit = |plan: &mut Plan, round: usize| {
        x.write(&[round as f32; 100]).unwrap();
        plan.submit().unwrap().wait().unwrap();
        assert_eq!(y.read::<f32>().unwrap(), [(round + 100) as f32; 100]);
    };
    submit(&mut plan, 0);
    let before = gpu.stats();
    for round in 1..50 {
        submit(&mut plan, round);
    }
    let after = gpu.stats();
    assert_eq!(growth(after), growth(before));
    assert_eq!(after.submissions - before.submissions, 49);
    assert_eq!(after.dispatches - before.dispatches, 4900);
    assert_eq!(after.barriers - before.barriers, 49 * 99);
}

#[test]
fn submissions_side_by_side_have_their_own_results_and_profiles() {
    let gpu = gpu();
    let n = 1 << 16;
    let x = gpu.upload(&vec![0.0f32; n], [n]).unwrap();
    let (mut plan, y) = counting_plan(&gpu, &x, 40);
    plan.profiling(Profiling::Timeline);
    for round in 0..4 {
        let slots: Vec<(Tensor, Tensor)> = (0..3)
            .map(|i| {
                let input = gpu.upload(&vec![(10 * round + i) as f32; n], [n]).unwrap();
                (input, gpu.empty([n], DType::F32).unwrap())
            })
            .collect();
        let submissions: Vec<_> = slots
            .iter()
            .map(|(input, output)| {
                plan.bind(&x, input).unwrap();
                plan.bind(&y, output).unwrap();
                plan.submit().unwrap()
            })
            .collect();
        let profiles: Vec<_> = submissions.iter().map(|done| done.profile().unwrap()).collect();
        // Each has times of its own: those of shared queries would be the same.
        for pair in profiles.windows(2) {
            assert!(pair[1].ns_since(&pair[0]) >= pair[0].span_ns() as i64, "{pair:?}");
        }
        for (i, ((done, profile), (_, output))) in submissions.iter().zip(profiles).zip(&slots).enumerate() {
            assert_eq!((profile.submission, profile.rows.len(), profile.barriers), (done.number(), 40, 39));
            assert!(profile.rows.iter().all(|row| row.end_ns > row.start_ns));
            assert!(profile.rows.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
            assert_eq!(output.read::<f32>().unwrap(), vec![(10 * round + i + 40) as f32; n]);
        }
    }
    assert!(matches!(y.read::<f32>(), Err(Error::NotWritten { .. })), "never submitted with its own output");
}

#[test]
fn rebinding_encodes_only_what_binds_the_tensor() {
    let gpu = gpu();
    let x = gpu.upload(&[0.0f32; 64], [64]).unwrap();
    // Four command buffers; the input is bound by the first, the output by the last.
    let (mut plan, y) = counting_plan(&gpu, &x, 128);
    let inputs: Vec<Tensor> = (0..12).map(|i| gpu.upload(&[i as f32; 64], [64]).unwrap()).collect();
    let mut encoded = Vec::new();
    for _ in 0..2 {
        for (i, input) in inputs.iter().enumerate() {
            let before = gpu.stats().commands.encoded;
            plan.bind(&x, input).unwrap();
            plan.submit().unwrap().wait().unwrap();
            assert_eq!(y.read::<f32>().unwrap(), [(i + 128) as f32; 64]);
            encoded.push(gpu.stats().commands.encoded - before);
        }
    }
    assert_eq!(encoded[..8], [4; 8], "a copy for each of the first sets of tensors");
    assert!(encoded[8..].iter().all(|count| *count <= 1), "{encoded:?}");
    // Three sets in rotation, as a stream has them, are encoded no more.
    for round in 0..6 {
        plan.bind(&x, &inputs[round % 3]).unwrap();
        plan.submit().unwrap().wait().unwrap();
    }
    let before = growth(gpu.stats());
    for round in 0..30 {
        plan.bind(&x, &inputs[round % 3]).unwrap();
        plan.submit().unwrap().wait().unwrap();
    }
    assert_eq!(growth(gpu.stats()), before);
}

#[test]
fn rebinding_an_output_encodes_only_what_writes_it() {
    let gpu = gpu();
    let x = gpu.upload(&[0.0f32; 64], [64]).unwrap();
    let (mut plan, y) = counting_plan(&gpu, &x, 128);
    let outputs: Vec<Tensor> = (0..12).map(|_| gpu.empty([64], DType::F32).unwrap()).collect();
    let mut encoded = Vec::new();
    for round in 0..2 {
        for output in &outputs {
            let before = gpu.stats().commands.encoded;
            x.write(&[round as f32; 64]).unwrap();
            plan.bind(&y, output).unwrap();
            plan.submit().unwrap().wait().unwrap();
            assert_eq!(output.read::<f32>().unwrap(), [(round + 128) as f32; 64]);
            encoded.push(gpu.stats().commands.encoded - before);
        }
    }
    assert_eq!(encoded[..8], [4; 8], "a copy for each of the first sets of tensors");
    assert_eq!(encoded[8..12], [1; 4], "of the others, the command buffer that writes to them");
    assert!(encoded[12..].iter().all(|count| *count <= 1), "{encoded:?}");
    // An input and an output at once: the first command buffer and the last.
    let (input, output) = (gpu.upload(&[5.0f32; 64], [64]).unwrap(), gpu.empty([64], DType::F32).unwrap());
    plan.bind(&x, &input).unwrap();
    plan.bind(&y, &output).unwrap();
    let before = gpu.stats().commands.encoded;
    plan.submit().unwrap().wait().unwrap();
    assert_eq!(gpu.stats().commands.encoded - before, 2);
    assert_eq!(output.read::<f32>().unwrap(), [133.0; 64]);
}

#[test]
fn outputs_hold_the_results_of_the_last_submission_and_spare_who_works_with_older_ones() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32; 1000], [1000]).unwrap();
    let (mut plan, y) = counting_plan(&gpu, &x, 3);
    assert!(matches!(y.read::<f32>(), Err(Error::NotSubmitted { .. })));
    assert!(matches!(y.write(&[0.0f32; 1000]), Err(Error::NotSubmitted { .. })));
    let _ = plan.submit().unwrap();
    // A recording that is open now sees the first submission's results, whatever comes.
    let r = gpu.begin_recording().unwrap();
    let twice = r.add(&y, &y).unwrap();
    let twice = r.keep(twice).unwrap();
    x.write(&[10.0f32; 1000]).unwrap();
    let _ = plan.submit().unwrap();
    let _ = r.end_recording().unwrap();
    assert_eq!(twice.read::<f32>().unwrap(), [8.0; 1000]);
    assert_eq!(y.read::<f32>().unwrap(), [13.0; 1000]);
    // An output is an ordinary tensor, until it is replaced.
    y.write(&[7.0f32; 1000]).unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [7.0; 1000]);
    let _ = plan.submit().unwrap();
    drop(plan);
    assert_eq!(y.read::<f32>().unwrap(), [13.0; 1000]);
}

#[test]
fn plans_may_feed_each_other_and_themselves() {
    let gpu = gpu();
    let (a, b) = (gpu.upload(&[0.0f32; 500], [500]).unwrap(), gpu.upload(&[9.0f32; 500], [500]).unwrap());
    let (mut plan, y) = counting_plan(&gpu, &a, 2);
    let (mut other, z) = counting_plan(&gpu, &b, 3);
    plan.bind(&y, &b).unwrap();
    other.bind(&z, &a).unwrap();
    for _ in 0..30 {
        let _ = plan.submit().unwrap();
        let _ = other.submit().unwrap();
    }
    assert_eq!(a.read::<f32>().unwrap(), [150.0; 500]);
}

#[test]
fn a_kept_view_of_an_input_follows_it() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0], [4]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let view = r.reshape(&x, [2, 2]).unwrap();
    let view = r.keep(view).unwrap();
    let mut plan = r.into_plan().unwrap();
    let _ = plan.submit().unwrap();
    x.write(&[5.0f32; 4]).unwrap();
    assert_eq!(view.read::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let _ = plan.submit().unwrap();
    assert_eq!(view.read::<f32>().unwrap(), [5.0; 4]);
}

#[test]
fn profiling_may_be_turned_on_and_off_between_submissions() {
    let gpu = gpu();
    let x = gpu.upload(&[0.0f32; 100], [100]).unwrap();
    let (mut plan, _y) = counting_plan(&gpu, &x, 70);
    assert!(plan.submit().unwrap().profile().is_err());
    let session = gpu.begin_profiling("plan", Profiling::Timeline).unwrap();
    for _ in 0..3 {
        assert_eq!(plan.submit().unwrap().profile().unwrap().rows.len(), 70);
    }
    let run = session.finish().unwrap();
    assert_eq!((run.submissions, run.rows().count()), (3, 210));
    assert!(plan.submit().unwrap().profile().is_err());
    plan.profiling(Profiling::Isolated);
    let alone = plan.submit().unwrap().profile().unwrap();
    assert_eq!((alone.mode, alone.rows.len(), alone.barriers), (Profiling::Isolated, 70, 69));
}

#[test]
fn what_can_not_be_bound_is_refused() {
    let (gpu, elsewhere) = (gpu(), crate::harness::gpu());
    let x = gpu.upload(&[0.0f32; 6], [6]).unwrap();
    let (mut plan, y) = counting_plan(&gpu, &x, 1);
    let text = |error: tidemill::Result<()>| error.unwrap_err().to_string();
    let other = gpu.upload(&[0.0f32; 6], [6]).unwrap();
    assert_eq!(
        text(plan.bind(&other, &x)),
        "bind: tensor [6] is not among the plan's 1 inputs and 1 outputs; use a tensor that was read or kept when the \
         plan was recorded"
    );
    let twice = "bind: tensor [6] already has a place in the plan; an output needs a tensor of its own";
    let r = gpu.begin_recording().unwrap();
    let (a, b) = (r.keep(r.neg(&x).unwrap()).unwrap(), r.keep(r.exp(&x).unwrap()).unwrap());
    let mut two_outputs = r.into_plan().unwrap();
    assert_eq!(text(two_outputs.bind(&a, &b)), twice);
    let shape = plan.bind(&x, &other.reshape([2, 3]).unwrap());
    assert!(matches!(shape, Err(Error::Shapes { .. })));
    assert!(matches!(plan.bind(&x, &gpu.upload(&[0i32; 6], [6]).unwrap()), Err(Error::Type { .. })));
    let foreign = elsewhere.upload(&[0.0f32; 6], [6]).unwrap();
    assert!(matches!(plan.bind(&x, &foreign), Err(Error::ForeignTensor { .. })));
    // All of that changed nothing.
    let _ = plan.submit().unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [1.0; 6]);
    // An input without contents is found when it is submitted, and tensors stay as they are.
    plan.bind(&x, &gpu.empty([6], DType::F32).unwrap()).unwrap();
    assert!(matches!(plan.submit(), Err(Error::NotWritten { .. })));
    assert_eq!(y.read::<f32>().unwrap(), [1.0; 6]);
}

#[test]
fn an_output_that_was_replaced_can_be_written() {
    let gpu = gpu();
    let x = gpu.upload(&[0.0f32; 6], [6]).unwrap();
    let (mut plan, y) = counting_plan(&gpu, &x, 1);
    assert!(matches!(y.write(&[9.0f32; 6]), Err(Error::NotSubmitted { .. })), "the plan is to write it");
    let other = gpu.empty([6], DType::F32).unwrap();
    plan.bind(&y, &other).unwrap();
    assert!(matches!(y.read::<f32>(), Err(Error::NotWritten { .. })));
    y.write(&[9.0f32; 6]).unwrap();
    let _ = plan.submit().unwrap();
    assert_eq!((y.read::<f32>().unwrap()[0], other.read::<f32>().unwrap()[0]), (9.0, 1.0));
    // And back.
    plan.bind(&y, &y).unwrap();
    let _ = plan.submit().unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [1.0; 6]);
    let (mut plan, y) = counting_plan(&gpu, &x, 1);
    plan.bind(&y, &other).unwrap();
    plan.bind(&y, &y).unwrap();
    assert!(matches!(y.write(&[9.0f32; 6]), Err(Error::NotSubmitted { .. })), "it is the plan's again");
}

#[test]
fn dropping_a_plan_in_flight_is_safe_and_one_never_submitted_leaves_nothing() {
    let gpu = gpu();
    let x = gpu.upload(&vec![0.0f32; 1 << 16], [1 << 16]).unwrap();
    let (mut plan, y) = counting_plan(&gpu, &x, 50);
    let done = plan.submit().unwrap();
    drop((plan, x));
    assert_eq!(y.read::<f32>().unwrap()[0], 50.0);
    done.wait().unwrap();
    let x = gpu.upload(&[0.0f32; 4], [4]).unwrap();
    let (plan, never) = counting_plan(&gpu, &x, 1);
    drop(plan);
    assert!(matches!(never.read::<f32>(), Err(Error::Discarded { .. })));
    drop((x, y, never));
    gpu.synchronize().unwrap();
    assert_eq!(gpu.stats().pool.live_blocks, 0);
}

#[test]
fn many_in_flight_press_back_and_stay_right() {
    let gpu = gpu_with(config().max_in_flight(4));
    let x = gpu.upload(&[0.0f32; 1000], [1000]).unwrap();
    let (mut plan, y) = counting_plan(&gpu, &x, 10);
    for round in 0..100 {
        x.write(&[round as f32; 1000]).unwrap();
        let _ = plan.submit().unwrap();
    }
    assert_eq!(y.read::<f32>().unwrap(), [109.0; 1000]);
    assert!(gpu.stats().pool.peak_bytes < 64 * 4096 * 4, "{:?}", gpu.stats().pool);
}
