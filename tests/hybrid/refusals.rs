//! An operation that one side can't do is refused on both, and no call changes sides silently.

use tidemill::hybrid::{Calibration, Hybrid, Policy, Side, Why};
use tidemill::{Accelerator, DType, Error, F16};

use crate::{both_sides, calibration, harness};

#[test]
fn chains_refuse_halves_on_both_sides_alike() {
    let (gpu, sides) = both_sides();
    let halves = gpu.upload(&[F16::from_f32(0.1); 4], [4]).unwrap();
    for hybrid in &sides {
        let given = hybrid.chain(|c| c.input(&halves).map(|_| ())).unwrap_err();
        assert_eq!(given.to_string(), "input: the operand is f16, this needs f32, i32 or u32; cast it first");
        let mut out = [0.0f32; 2];
        let cast = hybrid.chain(|c| {
            let x = c.input(&[0.1f32, 0.2])?;
            let x = c.cast(x, DType::F16)?;
            let x = c.cast(x, DType::F32)?;
            c.output(x, &mut out)
        });
        assert_eq!(
            cast.unwrap_err().to_string(),
            "cast: the operand is f16, this needs f32, i32 or u32; cast it first"
        );
        let alone = hybrid.relu(&halves, &mut [0.0; 4]).unwrap_err();
        assert!(matches!(alone, Error::Type { op: "relu", got: DType::F16, .. }), "{alone}");
    }
}

#[test]
fn a_chain_refuses_a_slice_that_its_shape_does_not_fit_when_it_is_given() {
    let (_gpu, sides) = both_sides();
    for hybrid in &sides {
        let refused = hybrid.chain(|c| c.input((&[0.0f32; 5], [2, 3])).map(|_| ())).unwrap_err();
        assert_eq!(refused.to_string(), "input: shape [2, 3] holds 6 elements, the data has 5");
    }
}

#[test]
fn tensors_of_another_accelerator_are_refused_on_both_sides() {
    let (_gpu, sides) = both_sides();
    let other = harness::gpu();
    let (x, words) = (other.upload(&[1.0f32; 4], [4]).unwrap(), other.upload(&[1u32; 4], [4]).unwrap());
    for hybrid in &sides {
        let refused = |error: Error, of: &str| {
            assert!(matches!(error, Error::ForeignTensor { op, .. } if op == of), "{of}: {error}");
        };
        refused(hybrid.relu(&x, &mut [0.0; 4]).unwrap_err(), "relu");
        refused(hybrid.add(&[0.0; 4], &x, &mut [0.0; 4]).unwrap_err(), "add");
        refused(hybrid.select(&words, &[0.0; 4], &[0.0; 4], &mut [0.0f32; 4]).unwrap_err(), "select");
        refused(hybrid.chain(|c| c.input(&x).map(|_| ())).unwrap_err(), "input");
    }
}

#[test]
fn a_policy_is_kept_where_nothing_is_known_of_the_device() {
    let gpu = harness::gpu();
    let without = Calibration { gpu: None, ..calibration(&gpu) };
    let on = |policy| Hybrid::with_calibration(Accelerator::clone(&gpu), without.clone(), policy);
    for (policy, side, why) in [
        (Policy::Gpu, Side::Gpu, Why::Policy),
        (Policy::Cpu, Side::Cpu, Why::Policy),
        (Policy::Auto, Side::Cpu, Why::NoDevice),
    ] {
        let (hybrid, mut out) = (on(policy), [0.0f32; 3]);
        let before = gpu.stats().submissions;
        let decision = hybrid.relu(&[-1.0, 2.0, -3.0], &mut out).unwrap().decision;
        assert_eq!((decision.side, decision.why, out), (side, why, [0.0, 2.0, 0.0]));
        let chained = hybrid.chain(|c| {
            let x = c.input(&[-1.0f32, 2.0, -3.0])?;
            let x = c.relu(x)?;
            c.output(x, &mut out)
        });
        let decision = chained.unwrap();
        assert_eq!((decision.side, decision.why, out), (side, why, [0.0, 2.0, 0.0]));
        let submitted = gpu.stats().submissions - before;
        assert_eq!(submitted, if side == Side::Gpu { 2 } else { 0 }, "{policy:?}");
    }
}
