//! Parts that begin where the device says, on every variant. (Arguments of plans are in `tests/plans/arguments.rs`.)

use crate::harness::{config, gpu, gpu_with};

#[test]
fn parts_begin_where_the_device_says_on_every_variant() {
    for variant in gpu().variants().into_iter().filter(|variant| variant.family == "elementwise") {
        let gpu = gpu_with(config().variant("elementwise", variant.name));
        // Single elements, rows of fours and others, whole workgroups, and one row of several.
        for [outer, extent, inner, length] in
            [[1, 9, 1, 4], [3, 7, 5, 2], [2, 40, 64, 33], [1, 3, 4096, 1], [5, 2, 8, 2]]
        {
            let (shape, all) = ([outer, extent, inner], outer * extent * inner);
            let x = gpu.upload(&(1..=all as u32).collect::<Vec<_>>(), shape).unwrap();
            for from in [0, (extent - length) as i32, extent as i32 - 1, -1] {
                let state = gpu.zeros::<u32>(shape).unwrap();
                let start = gpu.upload(&[from], []).unwrap();
                let r = gpu.begin_recording().unwrap();
                let part = r.slice_at(&x, 1, &start, length).unwrap();
                r.update_at(&state, 1, &start, part).unwrap();
                let part = r.keep(part).unwrap();
                let _ = r.end_recording().unwrap();
                let what = format!("{}: {shape:?} from {from}, {length}", variant.name);
                let element = |i: usize| {
                    let at = from + (i / inner % length) as i32;
                    let inside = (0..extent as i32).contains(&at);
                    let place = (i / (length * inner) * extent + at as usize % extent) * inner + i % inner;
                    if inside { place as u32 + 1 } else { 0 }
                };
                let expected: Vec<u32> = (0..outer * length * inner).map(element).collect();
                assert_eq!(part.read::<u32>().unwrap(), expected, "{what}");
                let inside = |i: usize| (from..from + length as i32).contains(&((i / inner % extent) as i32));
                let expected: Vec<u32> = (0..all).map(|i| if inside(i) { i as u32 + 1 } else { 0 }).collect();
                assert_eq!(state.read::<u32>().unwrap(), expected, "{what}");
            }
        }
    }
}
