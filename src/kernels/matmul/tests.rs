//! How matmuls are cut and which dispatches they become, without a device.

use smallvec::smallvec;

use super::Push;
use super::schemes::{SCHEMES, Scheme, Tile};
use super::shape::{MOST_ITERATIONS, Window, parts, simplified, windows};
use crate::error::Error;
use crate::ir::command::{Action, Command};
use crate::ir::epilogue::{Epilogue, Extra, Source, Step};
use crate::ir::matmul::{Matmul, MatrixOperand};
use crate::ir::op_code::OpCode;
use crate::ir::value::{Label, LabelName, Origin, Values};
use crate::kernels::catalog::Catalog;
use crate::kernels::families;
use crate::kernels::modules::constants::Constant;
use crate::kernels::modules::{matmul_dot, tile};
use crate::shape::{DType, Shape};
use crate::vk::architecture::Architecture;
use crate::vk::physical::{DeviceInfo, DeviceKind};

fn matmul(values: &mut Values, [m, n, k]: [u32; 3], batch: [u32; 2]) -> Matmul {
    let mut value = |extents: [u32; 4]| {
        values.add_value(Shape::from(extents.map(|e| e as usize)), DType::F32, Origin::Produced)
    };
    let [outer, inner] = batch;
    let strides = |rows: u32, columns: u32| match batch {
        [1, 1] => [0; 2],
        [1, _] => [0, rows * columns],
        _ => [inner * rows * columns, rows * columns],
    };
    let lhs = MatrixOperand { value: value([outer, inner, m, k]), k_contiguous: true, batch: strides(m, k) };
    let rhs = MatrixOperand { value: value([outer, inner, k, n]), k_contiguous: false, batch: strides(k, n) };
    let output = value([outer, inner, m, n]);
    Matmul { m, n, k, batch, lhs, rhs, alpha: 1.0, epilogue: Epilogue::default(), output }
}

/// What a device with such subgroups gets.
fn architecture(size: u32) -> Architecture {
    let mut limits = DeviceInfo::example(DeviceKind::Discrete).limits;
    (limits.subgroup_size, limits.subgroup_sizes) = (size, [size; 2]);
    Architecture::new(0x8086, DeviceKind::Discrete, None, &limits)
}

/// Those of every scheme, as devices with these subgroups run them.
fn tiles() -> impl Iterator<Item = (&'static Scheme, Tile)> {
    let of = |scheme: &'static Scheme| {
        let sizes = [1, 4, 8, 32, 64, 128];
        let of_rule = move |tile: Tile| sizes.map(|size| (scheme, tile.on(&architecture(size))));
        scheme.rules.iter().flat_map(move |rule| of_rule(rule.tile))
    };
    SCHEMES.iter().flat_map(of)
}

/// A device with the least that Vulkan asks for, and a catalog of its own.
fn catalog(variant: &str, change: impl FnOnce(&mut DeviceInfo)) -> Catalog {
    let mut info = DeviceInfo::example(DeviceKind::Discrete);
    change(&mut info);
    let wanted = [("matmul".to_owned(), variant.to_owned())];
    Catalog::new(families::ALL, &info, &wanted).expect("there is such a variant")
}

fn lower(matmul: &Matmul, values: &mut Values, catalog: &Catalog) -> Result<Vec<Command>, Error> {
    let label = Label { op: LabelName::Op("matmul"), shape: Shape::default(), dtype: DType::F32 };
    let mut commands = Vec::new();
    matmul.lower(&label, values, catalog, &mut commands)?;
    Ok(commands)
}

/// The module of each dispatch, and its constant by this name.
fn modules<F, T>(commands: &[Command], constant: Constant<F, T>) -> Vec<(String, Option<u32>)> {
    let of = |command: &Command| match &command.action {
        Action::Dispatch { pipeline, .. } => {
            let constant = pipeline.specialization.iter().find(|(known, _)| *known == constant.id());
            Some((pipeline.kernel.name().to_owned(), constant.map(|(_, bits)| *bits)))
        }
        _ => None,
    };
    commands.iter().filter_map(of).collect()
}

#[test]
fn parts_cover_k_and_no_loop_is_too_long() {
    let mut values = Values::default();
    for (scheme, tile) in tiles() {
        for k in [0, 1, 63, 64, 65, 1000, 65_537, 1_041_004, 20_000_000, i32::MAX as u32] {
            for [m, n] in [[1, 1], [5, 5], [1, 4096], [4096, 3], [4096, 4096]] {
                let split = parts(&matmul(&mut values, [m, n, k], [1, 1]), &tile, scheme, &architecture(32));
                let what = format!("{} {tile:?} {m}x{n}x{k}: {split:?}", scheme.name);
                assert!(split.count >= 1 && split.chunk.is_multiple_of(64) && split.chunk > 0, "{what}");
                let covered = u64::from(split.count) * u64::from(split.chunk);
                assert!(covered >= u64::from(k), "{what}");
                assert!(
                    k == 0 || covered - u64::from(split.chunk) < u64::from(k),
                    "the last is empty: {what}"
                );
                let step = match tile {
                    Tile::Rows { .. } => 4,
                    Tile::Shared { k, .. } => k,
                    Tile::Dot { lanes, .. } => 4 * lanes,
                };
                assert!(split.chunk.div_ceil(step) <= MOST_ITERATIONS, "{what}");
            }
        }
    }
}

/// `glsl/matmul_tile.comp` counts on it: what an invocation loads next is a constant distance away.
#[test]
fn workgroups_of_tiles_load_whole_rows() {
    for (_, tile) in tiles() {
        let Tile::Shared { m, n, k, frame } = tile else { continue };
        let threads = (m / frame[0]) * (n / frame[1]);
        assert!(threads.is_multiple_of(k), "{tile:?}");
        for across in [m, n] {
            assert!(
                threads.is_multiple_of(across / 4) && (across * k / 4).is_multiple_of(threads),
                "{tile:?}"
            );
        }
    }
}

#[test]
fn k_is_split_while_tiles_are_few_and_parts_are_worth_it() {
    let mut values = Values::default();
    let scheme = SCHEMES.iter().find(|scheme| scheme.name == "buffer-shared").expect("the GPUs' own");
    let tile = Tile::Shared { m: 32, n: 32, k: 16, frame: [4; 2] };
    let mut count =
        |m, n, k| parts(&matmul(&mut values, [m, n, k], [1, 1]), &tile, scheme, &architecture(32)).count;
    // Never more than eight, never less than 256 of k, and none where tiles are enough.
    assert_eq!(count(32, 32, 100_000), 8);
    assert_eq!(count(32, 32, 1024), 4);
    assert_eq!(count(32, 32, 511), 1);
    assert_eq!(count(32 * 64, 32, 100_000), 2);
    assert_eq!(count(32 * 128, 32, 100_000), 1);
}

#[test]
fn windows_cover_the_result_once_and_fit_bindings() {
    let mut values = Values::default();
    let mut limits = DeviceInfo::example(DeviceKind::Discrete).limits;
    limits.storage_range_bytes = 1 << 16;
    for (shape, batch) in [
        ([1, 1, 8], [1, 1]),
        ([300, 100, 8], [1, 1]),
        ([1000, 64, 4096], [1, 1]),
        ([10, 10, 8], [3, 50]),
        ([700, 30, 8], [2, 3]),
        ([1, 3, 8], [1, 70_000]),
    ] {
        for (tile_rows, count) in [(1, 1), (32, 1), (32, 4), (4, 8)] {
            let matmul = matmul(&mut values, shape, batch);
            let row_bytes = 4 * u64::from(matmul.n.next_multiple_of(4));
            let all = windows(&matmul, tile_rows, count, row_bytes, &limits).expect("fits");
            let mut covered = Vec::new();
            for Window { first_batch, batches, first_row, rows } in all {
                assert!(batches == 1 || (first_row, rows) == (0, matmul.m));
                // Windows begin with whole tiles.
                assert!(first_row % tile_rows == 0 && batches * count <= limits.groups[2]);
                let bytes = u64::from(batches * rows * count) * row_bytes;
                assert!(bytes + limits.offset_alignment <= limits.storage_range_bytes);
                let rows = move |b| (first_row..first_row + rows).map(move |row| (b, row));
                covered.extend((first_batch..first_batch + batches).flat_map(rows));
            }
            let whole = (0..matmul.batches()).flat_map(|b| (0..matmul.m).map(move |row| (b, row)));
            assert!(whole.eq(covered), "{shape:?} {batch:?}");
        }
    }
    let wide = matmul(&mut values, [64, 1 << 14, 8], [1, 1]);
    assert_eq!(windows(&wide, 32, 1, 1 << 16, &limits), None);
}

/// 288 x 288 x 512 on 81 tiles is split in two, and two parts are larger than a binding that both operands fit.
#[test]
fn parts_of_later_windows_know_their_rows() {
    let catalog = catalog("buffer-tile-32", |info| info.limits.storage_range_bytes = 600_064);
    let mut values = Values::default();
    let matmul = matmul(&mut values, [288, 288, 512], [1, 1]);
    let commands = lower(&matmul, &mut values, &catalog).expect("operands fit");
    let modules: Vec<_> = modules(&commands, tile::TILE_M).into_iter().map(|(module, _)| module).collect();
    let each = ["matmul_tile.buffer.plain", "matmul_sum.buffer.plain"];
    assert_eq!(modules, [each, each].concat());
    let push = |command: &Command| match &command.action {
        Action::Dispatch { push, .. } => bytemuck::pod_read_unaligned::<Push>(push),
        _ => Push::default(),
    };
    for (first_row, rows, pair) in [(0, 256, &commands[..2]), (256, 32, &commands[2..])] {
        assert!(pair.iter().all(|command| push(command).result.first_row == first_row));
        // Parts lie as many rows apart as the window has; their sum goes to its own rows of the result.
        assert_eq!(push(&pair[0]).result.c_batch, rows * 288);
        let (offset, bytes) =
            pair[1].accesses.last().map(|access| (access.offset, access.bytes)).expect("an output");
        assert_eq!(offset + 4 * u64::from(push(&pair[1]).result.c_base), 4 * 288 * u64::from(first_row));
        assert_eq!(offset + bytes, 4 * 288 * u64::from(first_row + rows));
    }
    // An operand that no binding spans is refused, with its size.
    let long = super::tests::matmul(&mut values, [300, 8, 512], [1, 1]);
    let refused = lower(&long, &mut values, &catalog);
    assert!(
        matches!(refused, Err(Error::BindingTooLarge { op: "matmul", bytes: 614_400, .. })),
        "{refused:?}"
    );
}

#[test]
fn a_copy_beyond_what_indices_count_is_refused() {
    let catalog = catalog("buffer-tile-32", |info| info.limits.storage_range_bytes = 1 << 40);
    // The left-hand side is copied, since its rows begin anywhere. Four times 2^29 elements are 8 GiB.
    for (rows, fits) in [((1 << 16) - 32, true), (1 << 16, false)] {
        let mut values = Values::default();
        let matmul = matmul(&mut values, [rows, 4, (1 << 15) - 1], [1, 1]);
        let made = lower(&matmul, &mut values, &catalog);
        if fits {
            assert!(made.is_ok(), "{rows}: {made:?}");
        } else {
            let limit = 1 << 33;
            assert!(
                matches!(made, Err(Error::BindingTooLarge { op: "matmul", limit: l, bytes, .. }) if l == limit && bytes >= limit),
                "{rows}: {made:?}"
            );
        }
    }
}

#[test]
fn tiles_are_large_where_there_are_enough_of_them() {
    let roomy = |info: &mut DeviceInfo| {
        info.limits.invocations = 1024;
        info.limits.local_size = [1024; 3];
        info.limits.shared_bytes = 1 << 15;
    };
    let tile_of = |catalog: &Catalog, [m, n, k]: [u32; 3]| {
        let mut values = Values::default();
        let matmul = matmul(&mut values, [m, n, k], [1, 1]);
        let all = modules(&lower(&matmul, &mut values, catalog).expect("fits"), tile::TILE_M);
        all.into_iter().find(|(module, _)| module != "matmul_pack.buffer").expect("a kernel")
    };
    let extents_of = |catalog: &Catalog, shape: [u32; 3]| {
        let mut values = Values::default();
        let matmul = matmul(&mut values, shape, [1, 1]);
        let commands = lower(&matmul, &mut values, catalog).expect("fits");
        [tile::TILE_M, tile::TILE_N].map(|constant| modules(&commands, constant)[0].1.unwrap_or(0))
    };
    let all = catalog("buffer-shared", roomy);
    let tile = |size: u32| ("matmul_tile.buffer.plain".to_owned(), Some(size));
    assert_eq!(extents_of(&all, [2048, 1024, 64]), [128, 128]);
    assert_eq!(extents_of(&all, [1024, 1024, 64]), [128, 64]);
    assert_eq!(extents_of(&all, [1024, 512, 64]), [64, 64]);
    assert_eq!(tile_of(&all, [256, 256, 64]), tile(32));
    assert_eq!(tile_of(&all, [256, 16, 64]).0, "matmul_dot.buffer.plain");
    assert_eq!(tile_of(&all, [256, 17, 64]), tile(32));
    assert_eq!(tile_of(&all, [1, 256, 64]).0, "matmul_rows.buffer.plain");

    // The least that Vulkan asks for: 128 invocations and 16 KiB.
    let least = catalog("buffer-shared", |_| ());
    for shape in [[2048, 1024, 64], [1024, 1024, 64], [256, 256, 64]] {
        assert_eq!(tile_of(&least, shape), tile(32), "{shape:?}");
    }
    // Enough invocations, but 16 KiB are less than the 16,896 bytes of the largest tile.
    let narrow = catalog("buffer-shared", |info| {
        roomy(info);
        info.limits.shared_bytes = 1 << 14;
    });
    assert_eq!(extents_of(&narrow, [2048, 1024, 64]), [128, 64]);
    // Intel has no registers for frames of 8 x 8, so there are twice as many tiles.
    let intel = catalog("buffer-shared", |info| {
        roomy(info);
        info.vendor = 0x8086;
    });
    assert_eq!(extents_of(&intel, [2048, 1024, 64]), [128, 64]);
    assert_eq!(extents_of(&intel, [1024, 1024, 64]), [128, 64]);
    assert_eq!(extents_of(&intel, [1024, 512, 64]), [64, 64]);
    // A card with many cores is not kept busy by as few.
    let wide = catalog("buffer-shared", |info| {
        roomy(info);
        info.cores = Some(96);
    });
    assert_eq!(extents_of(&wide, [2048, 1024, 64]), [128, 64]);
    assert_eq!(extents_of(&wide, [3072, 1024, 64]), [128, 128]);
    // And nothing shuffles where nobody knows among how many.
    let varying = catalog("buffer-shared", |info| info.limits.subgroup_sizes = [8, 32]);
    for shape in [[256, 4, 64], [1, 256, 64], [256, 256, 64]] {
        assert_eq!(tile_of(&varying, shape), tile(32), "{shape:?}");
    }
    let asked = catalog("buffer-shared", |info| {
        info.limits.subgroup_sizes = [8, 32];
        info.features.subgroup_size_control = true;
    });
    assert_eq!(tile_of(&asked, [256, 4, 64]).0, "matmul_dot.buffer.plain");
}

#[test]
fn operands_that_stand_in_for_others_are_not_counted() {
    let catalog = catalog("buffer-shared", |_| ());
    let mut values = Values::default();
    let mut square = matmul(&mut values, [64, 64, 32], [1, 1]);
    let mut bytes = |matmul: &Matmul| lower(matmul, &mut values, &catalog).expect("fits")[0].cost.bytes;
    assert_eq!(bytes(&square), Some(4 * (64 * 32 + 32 * 64 + 64 * 64)));
    square.rhs = square.lhs;
    assert_eq!(bytes(&square), Some(4 * (64 * 32 + 64 * 64)), "a matrix times its own transpose");
}

#[test]
fn few_columns_are_read_where_they_are_unless_k_ends_within_four() {
    let catalog = catalog("buffer-shared", |_| ());
    let dispatches = |shape: [u32; 3], k_contiguous: bool| {
        let mut values = Values::default();
        let mut matmul = matmul(&mut values, shape, [1, 1]);
        matmul.rhs.k_contiguous = k_contiguous;
        let along = modules(&lower(&matmul, &mut values, &catalog).expect("fits"), matmul_dot::K_CONTIGUOUS);
        let last = along.last().cloned().expect("a kernel");
        assert_eq!(last.0, "matmul_dot.buffer.plain");
        (along.len(), last.1 == Some(1))
    };
    assert_eq!(dispatches([64, 10, 256], false), (1, false));
    assert_eq!(dispatches([64, 10, 256], true), (1, true));
    // Both operands are packed: rows of the left-hand side do not begin at groups of four, either.
    assert_eq!(dispatches([64, 10, 255], false), (3, true));
}

#[test]
fn only_what_a_device_can_run_is_up_for_choice() {
    let names = |change: fn(&mut DeviceInfo)| {
        let mut info = DeviceInfo::example(DeviceKind::Discrete);
        change(&mut info);
        let candidates = Catalog::new(families::ALL, &info, &[]).expect("no wishes").candidates();
        let of = |name: &str| {
            candidates.iter().find(|(family, _)| family.name() == name).map(|(_, all)| all.clone())
        };
        [of("matmul").unwrap_or_default(), of("conv2d").unwrap_or_default()].concat()
    };
    let least = names(|_| ());
    assert!(least.contains(&"buffer-tile-32") && least.contains(&"buffer-shared"), "{least:?}");
    assert!(!least.contains(&"buffer-tile-64") && !least.contains(&"buffer-tile-128"), "{least:?}");
    let more = names(|info| (info.limits.invocations, info.limits.local_size) = (256, [256; 3]));
    assert!(more.contains(&"buffer-tile-64") && !more.contains(&"buffer-tile-128"), "{more:?}");
    let varying = names(|info| info.limits.subgroup_sizes = [8, 32]);
    assert!(!varying.contains(&"buffer-rows") && varying.contains(&"buffer-shared"), "{varying:?}");
    // Rows that tests alone have are nobody's winners.
    assert!(
        ![least, more, varying].concat().iter().any(|name| ["buffer-rows-16", "texel-tile"].contains(name))
    );
}

#[test]
fn matmuls_become_what_kernels_like_better() {
    let mut values = Values::default();
    // A batch that shares its right-hand side is one tall matrix.
    let mut shared = matmul(&mut values, [5, 7, 9], [2, 3]);
    shared.rhs.batch = [0; 2];
    let extra = Extra { value: shared.output, batch: [3 * 35, 35], row: 7, column: 1, is_f16: false };
    shared.epilogue = Epilogue {
        steps: smallvec![Step {
            op: OpCode::AddF32,
            operands: [Source::Accumulator, Source::Extra(0), Source::Accumulator]
        }],
        extras: smallvec![extra],
        ..Epilogue::default()
    };
    let tall = simplified(&shared);
    assert_eq!((tall.m, tall.batch, tall.lhs.batch), (30, [1, 1], [0, 0]));
    assert_eq!(tall.epilogue.extras[0], Extra { batch: [0; 2], ..extra });
    // Not if an extra operand is the same for every batch, or does not lie like the result.
    let mut same = shared.clone();
    same.epilogue.extras[0].batch = [0; 2];
    assert_eq!(simplified(&same).batch, [2, 3]);
    // Nor if the left-hand side has gaps, or lies along m.
    let mut gaps = shared.clone();
    gaps.lhs.batch = [3 * 46, 46];
    assert_eq!(simplified(&gaps).batch, [2, 3]);
    let mut across = shared;
    across.lhs.k_contiguous = false;
    assert_eq!(simplified(&across).batch, [2, 3]);

    // A row times a transposed matrix is that matrix times a column; what was a column of the epilogue is a row.
    let mut row = matmul(&mut values, [1, 40, 9], [1, 1]);
    row.rhs.k_contiguous = true;
    row.epilogue.extras = smallvec![Extra { batch: [0; 2], row: 0, ..extra }];
    let (lhs, rhs) = (row.lhs.value, row.rhs.value);
    let turned = simplified(&row);
    assert_eq!((turned.m, turned.n, turned.lhs.value, turned.rhs.value), (40, 1, rhs, lhs));
    assert!(turned.lhs.k_contiguous && turned.rhs.k_contiguous);
    assert_eq!((turned.epilogue.extras[0].row, turned.epilogue.extras[0].column), (1, 0));
}
