//! Data in and out: upload, write, read, closures that fill mapped memory.

use tidemill::{DType, Error};

use crate::harness::gpu;

#[test]
fn what_goes_up_comes_down_bit_for_bit() {
    let gpu = gpu();
    for n in [0usize, 1, 2, 3, 255, 256, 257, 10_000] {
        let floats: Vec<f32> =
            (0..n).map(|i| f32::from_bits(0x7f80_0000 ^ (i as u32).wrapping_mul(0x9e37_79b9))).collect();
        let up = gpu.upload(&floats, [n]).unwrap();
        let down: Vec<u32> = up.read::<f32>().unwrap().iter().map(|x| x.to_bits()).collect();
        assert_eq!(down, floats.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), "NaNs keep their bits");
        let ints: Vec<i32> = (0..n as i32).map(|i| -i).collect();
        assert_eq!(gpu.upload(&ints, [n]).unwrap().read::<i32>().unwrap(), ints);
        let words: Vec<u32> = (0..n as u32).collect();
        assert_eq!(gpu.upload(&words, [n]).unwrap().read::<u32>().unwrap(), words);
    }
    let scalar = gpu.upload(&[4.0f32], []).unwrap();
    assert_eq!((scalar.shape().rank(), scalar.size_bytes()), (0, 4));
    assert_eq!(gpu.zeros::<i32>([3]).unwrap().read::<i32>().unwrap(), [0; 3]);
}

#[test]
fn lengths_and_types_are_checked() {
    let gpu = gpu();
    let error = gpu.upload(&[1.0f32; 5], [2, 3]).unwrap_err();
    assert_eq!(error.to_string(), "upload: shape [2, 3] holds 6 elements, the data has 5");
    let t = gpu.upload(&[1.0f32; 6], [2, 3]).unwrap();
    let error = t.read::<u32>().unwrap_err();
    assert!(matches!(error, Error::Type { .. }));
    assert_eq!(error.to_string(), "read: the data is u32, this needs f32");
    let error = t.write(&[1.0f32; 7]).unwrap_err();
    assert_eq!(error.to_string(), "write: shape [2, 3] holds 6 elements, the data has 7");
    let error = t.read_into(&mut [0.0f32; 4]).unwrap_err();
    assert!(matches!(error, Error::Length { op: "read", got: 4, .. }), "{error}");
    assert!(matches!(t.write(&[1u32; 6]), Err(Error::Type { op: "write", .. })));
    assert_eq!(t.read::<f32>().unwrap(), [1.0; 6], "no mistake changed anything");
}

#[test]
fn what_nobody_wrote_is_an_error() {
    let gpu = gpu();
    let t = gpu.empty([2, 2], DType::F32).unwrap();
    let error = t.read::<f32>().unwrap_err();
    assert!(matches!(error, Error::NotWritten { .. }));
    assert_eq!(
        error.to_string(),
        "read: tensor [2, 2] was never written; upload to it, or keep it from a recording that is submitted"
    );
    let r = gpu.begin_recording().unwrap();
    assert!(matches!(r.add(&t, &t), Err(Error::NotWritten { op: "add", .. })));
    t.write(&[1.0f32; 4]).unwrap();
    let sum = r.add(&t, &t).unwrap();
    let sum = r.keep(sum).unwrap();
    let _ = r.end_recording().unwrap();
    assert_eq!(sum.read::<f32>().unwrap(), [2.0; 4]);
}

#[test]
fn a_closure_fills_in_place() {
    let gpu = gpu();
    let t = gpu
        .upload_with([6], |f| {
            assert_eq!(f.remaining(), 6);
            assert!(f.push(1.0f32));
            assert_eq!(f.extend_from_slice(&[2.0, 3.0]), 2);
            f.extend([4.0]);
            let rest = f.rest();
            assert_eq!(rest, [0.0, 0.0], "what was there before can't be seen");
            rest[1] = 6.0;
            assert_eq!(f.remaining(), 0);
            assert!(!f.push(9.0), "one too many is left out");
            assert_eq!(f.extend_from_slice(&[9.0, 9.0]), 0);
            f.extend([9.0, 9.0]);
            assert!(f.rest().is_empty());
        })
        .unwrap();
    assert_eq!(t.read::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 0.0, 6.0]);

    let error = gpu.upload_with([3], |f| f.extend([1u32, 2])).unwrap_err();
    assert!(matches!(error, Error::Incomplete { .. }));
    assert_eq!(error.to_string(), "upload_with: 2 of 3 elements were written; write them all");

    t.write_with(|f| f.extend([7.0f32; 6])).unwrap();
    assert_eq!(t.read::<f32>().unwrap(), [7.0; 6]);
    let error = t.write_with(|f| f.extend([8.0f32; 2])).unwrap_err();
    assert!(matches!(error, Error::Incomplete { op: "write_with", written: 2, expected: 6 }), "{error}");
    // It was alone with its memory, so the old contents are gone: an error, not a mixture.
    assert!(matches!(t.read::<f32>(), Err(Error::NotWritten { .. })));
    t.write(&[1.0f32; 6]).unwrap();
    assert_eq!(t.read::<f32>().unwrap(), [1.0; 6]);
}

#[test]
fn a_closure_may_look_at_the_tensor_it_fills() {
    let gpu = gpu();
    let t = gpu.upload(&[1.0f32, 2.0], [2]).unwrap();
    // Alone with its memory: there is nothing to be seen while it is being written.
    t.write_with(|f| {
        assert!(matches!(t.read::<f32>(), Err(Error::NotWritten { .. })));
        f.extend([3.0f32, 4.0]);
    })
    .unwrap();
    // Shared with a recording: the old contents stay until the new ones are whole.
    let r = gpu.begin_recording().unwrap();
    let copy = r.copy(&t).unwrap();
    t.write_with(|f| f.extend(t.read::<f32>().unwrap().into_iter().map(|x| 10.0 * x))).unwrap();
    assert_eq!(t.read::<f32>().unwrap(), [30.0, 40.0]);
    let copy = r.keep(copy).unwrap();
    let _ = r.end_recording().unwrap();
    assert_eq!(copy.read::<f32>().unwrap(), [3.0, 4.0]);
}

#[test]
fn recorded_work_sees_what_was_there_when_it_was_recorded() {
    let gpu = gpu();
    let t = gpu.upload(&[1.0f32; 1000], [1000]).unwrap();
    let clone = t.clone();
    let r = gpu.begin_recording().unwrap();
    let old = r.add(&t, &t).unwrap();
    t.write(&[5.0f32; 1000]).unwrap();
    let new = r.add(&t, &t).unwrap();
    let (old, new) = (r.keep(old).unwrap(), r.keep(new).unwrap());
    t.write(&[6.0f32; 1000]).unwrap();
    let _ = r.end_recording().unwrap();
    t.write(&[7.0f32; 1000]).unwrap();
    assert_eq!(old.read::<f32>().unwrap(), [2.0; 1000]);
    assert_eq!(new.read::<f32>().unwrap(), [10.0; 1000]);
    assert_eq!(clone.read::<f32>().unwrap(), [7.0; 1000], "clones are the same tensor");
}

#[test]
fn who_reads_while_another_writes_waits_for_it() {
    let gpu = gpu();
    let t = gpu.upload(&[1.0f32; 256], [256]).unwrap();
    std::thread::scope(|threads| {
        let mut reader = None;
        t.write_with(|f| {
            // Written in place, so the old contents are gone.
            assert!(matches!(t.read::<f32>(), Err(Error::NotWritten { .. })));
            reader = Some(threads.spawn(|| {
                let twice = gpu.run(|r| r.add(&t, &t)).unwrap();
                (t.read::<f32>().unwrap(), twice.read::<f32>().unwrap())
            }));
            std::thread::sleep(std::time::Duration::from_millis(20));
            f.extend(std::iter::repeat_n(2.0, 256));
        })
        .unwrap();
        let (seen, twice) = reader.take().unwrap().join().unwrap();
        assert_eq!((seen, twice), (vec![2.0; 256], vec![4.0; 256]));
    });
}

#[test]
fn a_closure_that_panics_leaves_nobody_waiting() {
    let gpu = gpu();
    let t = gpu.upload(&[1.0f32; 256], [256]).unwrap();
    let write = || t.write_with(|_: &mut tidemill::TensorWriter<'_, f32>| panic!("on purpose"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(write)).is_err());
    assert!(matches!(t.read::<f32>(), Err(Error::NotWritten { .. })));
    t.write(&[2.0f32; 256]).unwrap();
    assert_eq!(t.read::<f32>().unwrap(), [2.0; 256]);
}
