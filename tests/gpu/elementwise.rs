//! Elementwise operations: what is refused, that the recording stays usable, and what the table of cases can't say.

use tidemill::{DType, Error, Recording, Result, Tensor, Value};

use crate::harness::gpu;
use tidemill_cases::elementwise::{IN_THE_TABLE, UNARY, apply};

fn said(result: Result<Value>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn shapes_that_do_not_fit_are_named_and_the_recording_stays_usable() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32; 12], [4, 3]).unwrap();
    let y = gpu.upload(&[1.0f32; 15], [5, 3]).unwrap();
    let z = gpu.upload(&[1.0f32; 4], [4]).unwrap();
    let mask = gpu.upload(&[1u32; 2], [2]).unwrap();
    let r = gpu.begin_recording().unwrap();
    assert_eq!(said(r.add(&x, &y)), "add: lhs [4, 3] and rhs [5, 3]: 4 != 5 in dimension 0");
    assert_eq!(said(r.pow(&x, &z)), "pow: lhs [4, 3] and rhs [4]: 3 != 4 in dimension 1");
    assert_eq!(said(r.lt(&z, &x)), "lt: lhs [4] and rhs [4, 3]: 4 != 3 in dimension 1");
    assert_eq!(said(r.gt(&z, &x)), "gt: lhs [4] and rhs [4, 3]: 4 != 3 in dimension 1");
    assert_eq!(said(r.select(&mask, &x, &x)), "select: lhs [2] and rhs [4, 3]: 2 != 3 in dimension 1");
    let sum = r.add(&x, &x).unwrap();
    let sum = r.keep(sum).unwrap();
    r.end_recording().unwrap().wait().unwrap();
    assert_eq!(sum.read::<f32>().unwrap(), [2.0; 12]);
}

#[test]
fn types_that_do_not_fit_are_named() {
    let gpu = gpu();
    let f = gpu.upload(&[1.0f32, 2.0], [2]).unwrap();
    let i = gpu.upload(&[1i32, 2], [2]).unwrap();
    let u = gpu.upload(&[1u32, 2], [2]).unwrap();
    let r = gpu.begin_recording().unwrap();
    assert_eq!(said(r.add(&f, &i)), "add: the rhs is i32, this needs f32");
    assert_eq!(said(r.pow(&i, &i)), "pow: the lhs is i32, this needs f32, f16 or bf16");
    assert_eq!(said(r.exp(&u)), "exp: the operand is u32, this needs f32, f16 or bf16");
    assert_eq!(said(r.neg(&u)), "neg: the operand is u32, this needs f32, f16, bf16, i32, i16 or i8");
    assert_eq!(said(r.select(&f, &f, &f)), "select: the mask is f32, this needs u32 or bool");
    assert_eq!(said(r.select(&u, &f, &i)), "select: the operand b is i32, this needs f32");
    assert_eq!(said(r.scale(&i, 2.0f32)), "scale: the scalar is f32, this needs i32");
    assert_eq!(said(r.lt_scalar(&f, 1u32)), "lt_scalar: the scalar is u32, this needs f32");
    assert_eq!(said(r.add_scalar(&f, 1i32)), "add_scalar: the scalar is i32, this needs f32");
    let cast = r.cast(&u, DType::F32).unwrap();
    assert!(r.add(&f, cast).is_ok());
}

#[test]
fn parameters_that_make_no_sense_are_named() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, 2.0], [2]).unwrap();
    let r = gpu.begin_recording().unwrap();
    assert_eq!(said(r.leaky_relu(&x, f32::NAN)), "leaky_relu: alpha is NaN; it must be finite");
    assert_eq!(said(r.elu(&x, f32::INFINITY)), "elu: alpha is inf; it must be finite");
    assert_eq!(said(r.clip(&x, f32::NAN, 1.0)), "clip: lo is NaN; it must be a number");
    assert_eq!(said(r.clip(&x, 0.0, f32::NAN)), "clip: hi is NaN; it must be a number");
    assert_eq!(said(r.clip(&x, 2.5, 1.5)), "clip: lo is 2.5; it must not be above hi, which is 1.5");
    assert_eq!(said(r.scale(&x, f32::NEG_INFINITY)), "scale: factor is -inf; it must be finite");
    assert_eq!(said(r.pow_scalar(&x, f32::NAN)), "pow_scalar: exponent is NaN; it must be finite");
    assert_eq!(said(r.max_scalar(&x, f32::NAN)), "max_scalar: scalar is NaN; it must be a number");
    assert_eq!(said(r.ge_scalar(&x, f32::NAN)), "ge_scalar: scalar is NaN; it must be a number");
    assert!(matches!(r.add_scalar(&x, f32::NAN), Err(Error::Parameter { op: "add_scalar", .. })));
    assert!(r.clip(&x, f32::NEG_INFINITY, f32::INFINITY).is_ok());
    assert!(r.eq_scalar(&x, f32::INFINITY).is_ok());
}

#[test]
fn an_operand_may_come_twice_and_in_two_shapes() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, 2.0, 3.0], [3]).unwrap();
    let products = gpu
        .run(|r| {
            let column = r.reshape(&x, [3, 1])?;
            let table = r.mul(column, &x)?;
            r.sub(table, table)
        })
        .unwrap();
    assert_eq!(products.shape().dims(), [3, 3]);
    assert_eq!(products.read::<f32>().unwrap(), [0.0; 9]);
    let table = gpu
        .run(|r| {
            let column = r.reshape(&x, [3, 1])?;
            r.mul(column, &x)
        })
        .unwrap();
    assert_eq!(table.read::<f32>().unwrap(), [1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 3.0, 6.0, 9.0]);
    let any = gpu.upload(&[0u32, 7], [2]).unwrap();
    let chosen = gpu.run(|r| r.select(&any, &any, &any)).unwrap();
    assert_eq!(chosen.read::<u32>().unwrap(), [0, 7]);
}

#[test]
fn a_cast_to_the_own_type_is_the_operand() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, -2.0], [2]).unwrap();
    let same = gpu.run(|r| {
        let doubled = r.scale(&x, 2.0)?;
        r.cast(doubled, DType::F32)
    });
    assert_eq!(same.unwrap().read::<f32>().unwrap(), [2.0, -4.0]);
}

/// Operations of one operand at the numbers that their documentation names: bit for bit, and NaN for NaN.
#[test]
fn special_values_are_those_of_the_documentation() {
    const INF: f32 = f32::INFINITY;
    const TINY: f32 = 1e-40;
    type Op = Box<dyn Fn(&Recording, &Tensor) -> Result<Value>>;
    type Row = (&'static str, Op, &'static [(f32, f32)]);
    type With = (&'static str, fn(&Recording, &Tensor) -> Result<Value>, &'static [(f32, f32)]);
    let with_parameters: &[With] = &[
        (
            "leaky_relu(2)",
            |r, x| r.leaky_relu(x, 2.0),
            &[(-0.0, -0.0), (0.0, 0.0), (-INF, -INF), (INF, INF), (TINY, TINY), (-TINY, -2.0 * TINY)],
        ),
        ("leaky_relu(0)", |r, x| r.leaky_relu(x, 0.0), &[(-0.0, -0.0), (-INF, f32::NAN), (-1.0, -0.0)]),
        ("leaky_relu(-1)", |r, x| r.leaky_relu(x, -1.0), &[(-0.0, 0.0), (-INF, INF)]),
        (
            "elu(2)",
            |r, x| r.elu(x, 2.0),
            &[(-0.0, -0.0), (0.0, 0.0), (-INF, -2.0), (INF, INF), (TINY, TINY), (-TINY, -2.0 * TINY)],
        ),
        ("clip(0, 1)", |r, x| r.clip(x, 0.0, 1.0), &[(-0.0, 0.0), (TINY, TINY), (-INF, 0.0), (INF, 1.0)]),
        (
            "clip(-1, -0)",
            |r, x| r.clip(x, -1.0, -0.0),
            &[(0.0, -0.0), (-TINY, -TINY), (-INF, -1.0), (INF, -0.0)],
        ),
        (
            "pow_scalar(3)",
            |r, x| r.pow_scalar(x, 3.0),
            &[(-0.0, -0.0), (0.0, 0.0), (-INF, -INF), (1e-14, 1e-42)],
        ),
        ("pow_scalar(-1)", |r, x| r.pow_scalar(x, -1.0), &[(-0.0, -INF), (-INF, -0.0), (INF, 0.0)]),
        ("pow_scalar(0)", |r, x| r.pow_scalar(x, 0.0), &[(-0.0, 1.0), (INF, 1.0)]),
    ];
    let table = UNARY.iter().filter(|op| !op.special.is_empty());
    let rows: Vec<Row> = table
        .map(|op| (op.name, Box::new(|r: &Recording, x: &Tensor| apply(r, op, x)) as Op, op.special))
        .chain(with_parameters.iter().map(|(name, op, values)| (*name, Box::new(op) as Op, *values)))
        .collect();
    for name in IN_THE_TABLE {
        assert!(rows.iter().any(|(row, ..)| row == name), "no special values of {name}");
    }
    let gpu = gpu();
    let mut wrong = Vec::new();
    for (name, op, values) in &rows {
        let mut values = values.to_vec();
        // Anything to the power of 0 is 1.
        values.push((f32::NAN, if *name == "pow_scalar(0)" { 1.0 } else { f32::NAN }));
        let x: Vec<f32> = values.iter().map(|(x, _)| *x).collect();
        let x = gpu.upload(&x, [x.len()]).unwrap();
        let got = gpu.run(|r| op(r, &x)).unwrap().read::<f32>().unwrap();
        for ((x, expected), got) in values.iter().zip(got) {
            if got.to_bits() != expected.to_bits() && !(got.is_nan() && expected.is_nan()) {
                wrong.push(format!("{name} of {x:e} is {got:e} and not {expected:e}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
