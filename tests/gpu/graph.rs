//! What is made of a recording as a whole: memory for temporaries, and barriers.

use tidemill::profile::Profiling;
use tidemill::{Accelerator, Axes, Result, Tensor, Value};

use crate::harness::{config, gpu, gpu_with};

const MIB: u64 = 1 << 20;

/// 100 operations on 64 MiB, each with a name of its own that lives to the end.
fn chain(gpu: &Accelerator, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let r = gpu.begin_recording()?;
    let mut names: Vec<Value> = vec![r.add(a, b)?];
    for i in 1..100 {
        let last = names[i - 1];
        names.push(if i % 2 == 0 { r.add(last, b)? } else { r.sub(last, a)? });
    }
    let kept = r.keep(names[99])?;
    r.end_recording()?.wait()?;
    Ok(kept)
}

#[test]
fn a_chain_of_100_peaks_at_inputs_and_output() {
    // Whole workgroups, and some elements more, which may get a dispatch of their own. 64 MiB and 4 bytes take a block
    // of 72.
    for (n, block_bytes) in [(16 << 20, 64 * MIB), ((16 << 20) + 1, 72 * MIB)] {
        for fusion in [true, false] {
            // Guard bytes would not fit into classes of 64 MiB.
            let gpu = gpu_with(config().memory_checks(false).fusion(fusion));
            let [a, b] = [1.0f32, 2.0].map(|x| gpu.upload(&vec![x; n], [n]).unwrap());
            assert_eq!(gpu.stats().pool.live_bytes, 2 * block_bytes);
            let result = chain(&gpu, &a, &b).unwrap();
            let peak_bytes = gpu.stats().pool.peak_bytes;
            assert_eq!(
                peak_bytes,
                3 * block_bytes,
                "two inputs and an output; {n} elements, fusion {fusion}"
            );
            // 1 + 2, then 49 times + 2, and 50 times - 1.
            let got = result.read::<f32>().unwrap();
            let wrong = got.iter().position(|x| *x != 51.0);
            assert_eq!(wrong, None, "{n} elements, fusion {fusion}");
        }
    }
}

#[test]
fn results_written_over_operands_are_right_for_every_size_and_shape() {
    for fusion in [true, false] {
        let gpu = gpu_with(config().fusion(fusion));
        for [rows, columns] in [[1, 1], [1, 3], [3, 5], [7, 64], [33, 63], [64, 64]] {
            let n = rows * columns;
            let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let tensor = gpu.upload(&x, [rows, columns]).unwrap();
            let (y, t) = gpu
                .run(|r| {
                    let a = r.add(&tensor, &tensor)?;
                    let b = r.neg(a)?;
                    // Read in two ways: not element for element alone.
                    let c = r.transpose(b)?;
                    let c = r.copy(c)?;
                    let d = r.scale(c, 0.5)?;
                    let e = r.sum(d, Axes::at(-1).keep())?;
                    Ok((r.add(d, e)?, d))
                })
                .unwrap();
            let d = |i: usize| -x[(i % rows) * columns + i / rows];
            assert_eq!(t.read::<f32>().unwrap(), (0..n).map(d).collect::<Vec<_>>());
            let sum = |column: usize| (0..rows).map(|row| -x[row * columns + column]).sum::<f32>();
            let expected: Vec<f32> = (0..n).map(|i| d(i) + sum(i / rows)).collect();
            assert_eq!(y.read::<f32>().unwrap(), expected, "{rows}x{columns}");
        }
    }
}

#[test]
fn barriers_stand_only_where_something_must_wait() {
    let gpu = gpu_with(config().fusion(false).profiling(Profiling::Timeline));
    let x = gpu.upload(&[1.0f32; 1000], [1000]).unwrap();
    let barriers = |record: &dyn Fn(&tidemill::Recording) -> Result<()>| {
        let before = gpu.stats().barriers;
        let r = gpu.begin_recording().unwrap();
        record(&r).unwrap();
        let profile = r.end_recording().unwrap().profile().unwrap();
        assert_eq!(profile.barriers, gpu.stats().barriers - before);
        assert_eq!(profile.barriers, profile.rows.iter().filter(|row| row.barrier).count() as u64);
        profile.barriers
    };
    // Eight branches that have nothing to do with each other.
    let branches = barriers(&|r| {
        for _ in 0..8 {
            let branch = r.neg(&x)?;
            let _ = r.keep(branch)?;
        }
        Ok(())
    });
    assert_eq!(branches, 0);
    // The same, two steps deep: all first steps run side by side, then all second ones.
    let deep = barriers(&|r| {
        let first = (0..8).map(|_| r.neg(&x)).collect::<Result<Vec<_>>>()?;
        for value in first {
            let second = r.abs(value)?;
            let _ = r.keep(second)?;
        }
        Ok(())
    });
    assert_eq!(deep, 1);
    let chain = barriers(&|r| {
        let mut v = r.neg(&x)?;
        for _ in 0..9 {
            v = r.abs(v)?;
        }
        r.keep(v).map(drop)
    });
    assert_eq!(chain, 9);
}

#[test]
fn branches_of_one_value_stay_side_by_side() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32; 64 * 64], [64, 64]).unwrap();
    let before = gpu.stats().barriers;
    let kept = gpu
        .run(|r| {
            let t = r.matmul(&x, &x)?;
            // Neither may overwrite the product that both read.
            Ok((r.sum(t, 0)?, r.amax(t, 0)?))
        })
        .unwrap();
    assert_eq!((kept.0.read::<f32>().unwrap()[0], kept.1.read::<f32>().unwrap()[0]), (4096.0, 64.0));
    assert_eq!(gpu.stats().barriers - before, 1);
}

#[test]
fn an_explanation_tells_what_will_run() {
    let gpu = gpu();
    let (x, w) = (gpu.upload(&[1.0f32; 64], [8, 8]).unwrap(), gpu.upload(&[0.5f32; 64], [8, 8]).unwrap());
    let bias = gpu.upload(&[1.0f32; 8], [8]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let h = r.matmul(&x, &w).unwrap();
    let h = r.add(h, &bias).unwrap();
    let h = r.relu(h).unwrap();
    let copied = r.copy(h).unwrap();
    let last = r.mul(copied, copied).unwrap();
    let kept = r.keep(last).unwrap();
    let explanation = r.explain().unwrap();
    let text = explanation.to_string();
    assert_eq!(
        (explanation.recorded.len(), explanation.run.len(), explanation.barriers),
        (5, 3, 2),
        "{text}"
    );
    assert_eq!((explanation.input_bytes, explanation.output_bytes), (256 + 256 + 32, 256));
    assert_eq!((explanation.temporary_bytes, explanation.unshared_bytes), (256, 4 * 256), "{text}");
    let labels: Vec<&str> = explanation.run.iter().map(|step| step.label.as_str()).collect();
    assert_eq!(labels, ["matmul+add+relu 8x8x8 f32", "copy 8x8 f32", "mul 8x8 f32"]);
    for line in [
        "recorded: 5 operations",
        "  t0 = matmul 8x8x8 f32 <- x0 x1",
        "will run: 3 dispatches, 2 barriers",
        "  ---- barrier",
        "  x2: 8 f32, 32 bytes, block 2",
        "  t0: 8x8 f32, 256 bytes, never stored",
    ] {
        assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
    }
    let dot = explanation.to_dot();
    assert_eq!(dot.matches("shape=box").count(), 3);
    assert_eq!(dot.matches("penwidth=3").count(), 2);
    assert_eq!(dot.matches(" -> ").count(), 3 + 1 + 1 + 1 + 1 + 1, "{dot}");
    assert!(!dot.contains("never stored"), "what is fused away is not drawn");
    // Nothing has happened yet, and what was told is what runs.
    let before = gpu.stats();
    let done = r.end_recording().unwrap();
    done.wait().unwrap();
    let after = gpu.stats();
    assert_eq!((after.dispatches - before.dispatches, after.barriers - before.barriers), (3, 2));
    assert_eq!(kept.read::<f32>().unwrap(), [25.0; 64]);
}
