//! RDNA assembly as RADV prints it. Pure.

use super::{Instruction, Load, Program};

/// Reads a program: its instructions, and where the labels stand.
pub(super) fn parse(text: &str) -> Program<'_> {
    let mut program = Program::default();
    for line in text.lines() {
        let code = line.split([';', '/']).next().unwrap_or_default().trim();
        if let Some(label) = code.strip_suffix(':') {
            program.labels.push((label, program.instructions.len()));
            continue;
        }
        // A pair that is issued together stands on one line.
        for (i, one) in code.split("::").map(str::trim).filter(|one| !one.is_empty()).enumerate() {
            let (mnemonic, operands) = one.split_once(char::is_whitespace).unwrap_or((one, ""));
            program.instructions.push(Instruction { paired: i > 0, ..instruction(mnemonic, operands) });
        }
    }
    program
}

fn instruction<'a>(mnemonic: &str, operands: &'a str) -> Instruction<'a> {
    let branches = mnemonic.starts_with("s_branch") || mnemonic.starts_with("s_cbranch");
    let shared = mnemonic.starts_with("ds_");
    let load = match load_bits(mnemonic) {
        Some(bits) if shared => Some(Load::Shared(bits)),
        Some(bits) if is_memory(mnemonic) => Some(Load::Global(bits)),
        _ => None,
    };
    Instruction {
        branch: branches.then(|| operands.trim()),
        works: is_counted(mnemonic),
        macs: macs(mnemonic),
        paired: false,
        load,
        waits: if mnemonic == "s_waitcnt" { loads_left(operands) } else { None },
    }
}

/// 3 of `vmcnt(3) lgkmcnt(0)`; nothing if it is not loads from memory that are waited for.
fn loads_left(operands: &str) -> Option<u32> {
    operands.split_once("vmcnt(")?.1.split_once(')')?.0.parse().ok()
}

/// Multiply-adds that a vector instruction makes in one lane.
fn macs(mnemonic: &str) -> f64 {
    let Some(name) = mnemonic.strip_prefix("v_dual_").or_else(|| mnemonic.strip_prefix("v_")) else {
        return 0.0;
    };
    let of = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if of(&["fma_", "fmac_", "fmaak_", "fmamk_"]) {
        1.0
    } else if of(&["pk_fma_", "dot2"]) {
        2.0
    } else if of(&["dot4"]) {
        4.0
    } else {
        0.0
    }
}

fn is_memory(mnemonic: &str) -> bool {
    ["buffer_", "global_", "flat_", "scratch_", "image_", "tbuffer_"].iter().any(|p| mnemonic.starts_with(p))
        // Cache control moves nothing.
        && !["_inv", "_wb", "_invl0", "_invl1"].iter().any(|s| mnemonic.ends_with(s))
}

fn is_counted(mnemonic: &str) -> bool {
    mnemonic.starts_with("v_") || mnemonic.starts_with("ds_") || is_memory(mnemonic)
}

/// Bits per lane that a load brings: `buffer_load_dwordx4` and `buffer_load_b128` are the same.
fn load_bits(mnemonic: &str) -> Option<u32> {
    let (_, width) = mnemonic.split_once("_load_").or_else(|| mnemonic.split_once("ds_read"))?;
    let width = width.trim_start_matches('_').trim_start_matches("2addr_");
    // Two places at once count as what each of them is.
    let width = width.strip_prefix("2_").or_else(|| width.strip_prefix("2st64_")).unwrap_or(width);
    Some(match width {
        "dword" | "format_x" => 32,
        "dwordx2" | "format_xy" => 64,
        "dwordx3" | "format_xyz" => 96,
        "dwordx4" | "format_xyzw" => 128,
        _ => width.trim_start_matches(|c: char| c.is_alphabetic()).split('_').next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::assembly::MainLoop;

    fn main_loop(text: &str) -> MainLoop {
        parse(text).main_loop()
    }

    /// As Mesa 22.3 prints RDNA2.
    const RDNA2: &str = "\
BB0:
\ts_mov_b32 s0, s3                                            ; be800003
\tbuffer_load_dword v9, v8, s[4:7], 0 offen                   ; e0301000 80010908
\tv_fma_f32 v1, v2, v3, v4                                    ; d54b0001 04120702
BB1:
\ts_cmp_ge_u32 s0, s1                                         ; bf090100
\ts_cbranch_scc1 BB3                                          ; bf850000
BB2:
\tbuffer_load_dwordx4 v[4:7], v8, s[4:7], 0 offen             ; e0381000 80010408
\ts_barrier                                                   ; bf8a0000
\tds_read_b128 v[16:19], v102 offset:784                      ; dbfc0310 10000066
\ts_waitcnt lgkmcnt(0)                                        ; bf8cc07f
\tv_fmac_f32_e32 v41, v28, v12                                ; 5652191c
\tv_fmac_f32_e32 v40, v29, v12                                ; 5650191d
\tds_write_b32 v1, v2                                         ; d8340000 00000201
\tv_add_nc_u32_e32 v1, 4, v1                                  ; 4a020284
\ts_branch BB1                                                ; bf82fae3
BB3:
\tbuffer_store_dwordx4 v[4:7], v8, s[4:7], 0 offen            ; e0781000 80010408
\ts_endpgm                                                    ; bf810000
";

    #[test]
    fn the_loop_of_rdna2_is_found_and_counted() {
        let found = main_loop(RDNA2);
        let wanted = MainLoop {
            instructions: 11,
            macs: 2.0,
            fmas: 2,
            vector_instructions: 6,
            global_load_bits: Some(128),
            lds_load_bits: Some(128),
            loads_in_flight: None,
        };
        assert_eq!(found, wanted);
        assert!((found.fma_share() - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_dual_issued_pair_counts_as_two() {
        let text = "\
BB0:
\tds_load_2addr_b32 v[1:2], v0 offset1:4                      ; d8dc0400 01000000
\tglobal_load_b64 v[3:4], v5, s[0:1]                          ; dc520000 03000005
\tv_dual_fmac_f32 v0, v2, v3 :: v_dual_fmac_f32 v1, v3, v4    ; c8000702 00000903
\tv_dual_fmac_f32 v5, v2, v3 :: v_dual_mov_b32 v6, v4         ; c8100702 05060004
\ts_cbranch_vccnz BB0                                         ; bfa4fff0
";
        let found = main_loop(text);
        assert_eq!((found.fmas, found.vector_instructions), (3, 6));
        assert_eq!((found.global_load_bits, found.lds_load_bits), (Some(64), Some(32)));
        // Though it is issued as one.
        assert_eq!(found.instructions_per_mac(), Some(5.0 / 3.0));
    }

    #[test]
    fn of_nested_loops_the_inner_one_counts_and_of_several_the_one_with_most_multiply_adds() {
        let text = "\
BB0:
\tv_fma_f32 v0, v1, v2, v3
\tv_fma_f32 v0, v1, v2, v3
\tv_fma_f32 v0, v1, v2, v3
BB1:
\tv_fmac_f32_e32 v0, v1, v2
\tv_mov_b32_e32 v0, v1
\ts_cbranch_scc1 BB1
\ts_cbranch_scc0 BB0
BB2:
\tv_mov_b32_e32 v0, v1
\tv_mov_b32_e32 v0, v1
\tv_mov_b32_e32 v0, v1
\ts_cbranch_scc0 BB2
";
        let found = main_loop(text);
        assert_eq!((found.fmas, found.vector_instructions), (1, 2));
    }

    #[test]
    fn several_branches_to_one_place_are_one_loop() {
        let text = "\
BB0:
\tv_fmac_f32_e32 v0, v1, v2
\ts_cbranch_scc1 BB0
\tv_mov_b32_e32 v0, v1
\ts_branch BB0
";
        assert_eq!(main_loop(text).vector_instructions, 2);
    }

    #[test]
    fn a_program_without_loops_is_taken_whole() {
        let found =
            main_loop("BB0:\n\tv_fma_f32 v0, v1, v2, v3\n\ts_branch BB1\nBB1:\n\tv_mov_b32_e32 v0, v1\n");
        assert_eq!((found.fmas, found.vector_instructions), (1, 2));
        assert_eq!(main_loop(""), MainLoop::default());
        let tail =
            "BB0:\n\tbuffer_load_dwordx4 v[0:3], v1\nBB1:\n\tbuffer_store_dword v1, v2\n\ts_branch BB1\n";
        let found = main_loop(tail);
        assert_eq!((found.vector_instructions, found.global_load_bits), (2, Some(128)));
    }

    #[test]
    fn widths_go_by_every_name() {
        let widths = [
            ("buffer_load_dword", 32),
            ("buffer_load_dwordx2", 64),
            ("buffer_load_b128", 128),
            ("global_load_dwordx4", 128),
            ("global_load_u16", 16),
            ("buffer_load_format_xyzw", 128),
            ("ds_read_b32", 32),
            ("ds_read2_b64", 64),
            ("ds_read2st64_b32", 32),
            ("ds_load_b128", 128),
            ("ds_load_2addr_b32", 32),
        ];
        for (mnemonic, bits) in widths {
            assert_eq!(load_bits(mnemonic), Some(bits), "{mnemonic}");
        }
        assert_eq!(load_bits("v_mov_b32_e32"), None);
        assert_eq!(load_bits("ds_write_b128"), None);
    }

    #[test]
    fn loads_are_on_their_way_until_they_are_waited_for() {
        let text = "\
BB0:
\tbuffer_load_b128 v[0:3], v1
\tbuffer_load_b128 v[4:7], v1
\ts_waitcnt lgkmcnt(0)
\tglobal_load_b32 v8, v1
\ts_waitcnt vmcnt(1)
\tbuffer_load_b128 v[0:3], v1
\ts_waitcnt vmcnt(0) lgkmcnt(0)
\tv_fmac_f32_e32 v0, v1, v2
\ts_branch BB0
";
        assert_eq!(main_loop(text).loads_in_flight, Some(3));
    }

    #[test]
    fn dot_products_are_several_multiply_adds() {
        let found = main_loop(
            "BB0:\n\tv_dot2_f32_f16 v0, v1, v2, v0\n\tv_pk_fma_f16 v1, v2, v3, v4\n\tv_dot4_i32_iu8 v0, v1, v2, v0\n",
        );
        assert_eq!((found.macs, found.fmas), (8.0, 3));
    }
}
