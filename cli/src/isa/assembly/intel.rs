//! Intel's assembly as Mesa's ANV prints it. Pure.

use super::{Instruction, Load, Program};

/// Steps that only lead through the program.
const CONTROL: [&str; 14] = [
    "sync", "nop", "if", "else", "endif", "do", "while", "break", "cont", "halt", "jmpi", "goto", "join",
    "wait",
];

/// Reads a program that was compiled for subgroups of this many invocations.
pub(super) fn parse(text: &str, lanes: u64) -> Program<'_> {
    let mut program = Program::default();
    for line in text.lines() {
        // What a message says lies on the line below its instruction, which begins with blanks.
        if line.starts_with(char::is_whitespace) {
            if let (Some((_, message)), Some(last)) =
                (line.split_once("MsgDesc:"), program.instructions.last_mut())
            {
                last.load = load(line.trim_start(), message);
            }
        } else if let Some(label) = line.trim_end().strip_suffix(':') {
            program.labels.push((label, program.instructions.len()));
        } else if let Some(instruction) = instruction(line, lanes) {
            program.instructions.push(instruction);
        }
    }
    program
}

/// `(+f0.0) mad(8) g1<1>F …`: a predicate, the name, how many invocations, what is written and read.
fn instruction(line: &str, lanes: u64) -> Option<Instruction<'_>> {
    let code = match line.strip_prefix('(') {
        Some(predicated) => predicated.split_once(')')?.1.trim_start(),
        None => line,
    };
    let (name, rest) = code.split_once('(')?;
    let (wide, operands) = rest.split_once(')')?;
    let wide: u64 = wide.parse().ok()?;
    let name = name.split(['.', ' ']).next()?;
    let target = operands.split_once("JIP:").and_then(|(_, label)| label.split_whitespace().next());
    let each = match name {
        "mad" | "mac" if is_float(operands) => 1.0,
        "dp4a" => 4.0,
        _ => 0.0,
    };
    Some(Instruction {
        branch: target.filter(|_| name == "while"),
        works: !CONTROL.contains(&name),
        // An instruction may serve a part of the subgroup only.
        macs: each * wide as f64 / lanes.max(1) as f64,
        ..Instruction::default()
    })
}

/// Whether the result is a floating-point number: the type stands behind the first operand.
fn is_float(operands: &str) -> bool {
    let result = operands.split_whitespace().next().and_then(|result| result.rsplit('>').next());
    matches!(result, Some("F" | "HF" | "DF"))
}

/// What a message loads for each invocation. Loads for all of a subgroup at once, and those of registers that found no
/// place, are none.
fn load(line: &str, message: &str) -> Option<Load> {
    let (shared, bits) = if message.contains("untyped surface read") {
        // Before DG2: a mask of the channels of 32 bits that stay away.
        let mask = message.split_once("Mask = 0x")?.1.split(')').next()?;
        let away = u32::from_str_radix(mask, 16).ok()?;
        (message.contains("Surface = 254"), 32 * (4 - (away & 0xf).count_ones()))
    } else {
        let mut words =
            message.trim_start_matches([' ', '(']).split([',', ' ']).filter(|word| !word.is_empty());
        if words.next() != Some("load") || message.contains("transpose") || message.contains(" ss )") {
            return None;
        }
        let _address = words.next()?;
        let digits = |word: &str| word.trim_start_matches(char::is_alphabetic).parse::<u32>().ok();
        // `d8u32` is a byte in a register of 32 bits.
        let data = words.next()?.trim_start_matches('d').split('u').next()?.parse::<u32>().ok()?;
        (line.starts_with("slm"), data * digits(words.next()?)?)
    };
    Some(if shared { Load::Shared(bits) } else { Load::Global(bits) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the manner of DG2, subgroups of 8.
    const DG2: &str = "\
mov(8)          g63<1>UD        g0.7<0,1,0>UD                   { align1 WE_all 1Q };
mad(8)          g94<1>F         g44<8,8,1>F     g6<8,8,1>F      g14<1,1,1>F { align1 1Q };

LABEL5:
cmp.ge.f0.0(8)  null<1>UD       g1<8,8,1>UD     g43<0,1,0>UD    { align1 1Q @2 };
(+f0.0) break(8) JIP:  LABEL4         UIP:  LABEL4              { align1 1Q };
sync nop(1)                     null<0,1,0>UB                   { align1 WE_all 1N I@4 };
send(8)         g6UD            g92UD           nullUD          0x0280f500                0x00000000
                            ugm MsgDesc: ( load, a32, d32, V4, L1STATE_L3MOCS dst_len = 4, src0_len = 1, src1_len = 0 bti ) BTI 1 { align1 1Q $0 };
send(8)         g6UD            g92UD           nullUD          0x0280f500                0x00000000
                            slm MsgDesc: ( load, a32, d32, V2, L1STATE_L3MOCS dst_len = 2, src0_len = 1, src1_len = 0 flat )  base_offset 0  { align1 1Q $4 };
send(1)         g3UD            g92UD           nullUD          0x0280f500                0x00000000
                            ugm MsgDesc: ( load, a32, d32, V1, transpose, L1STATE_L3MOCS dst_len = 8, src0_len = 1, src1_len = 0 flat )  base_offset 0  { align1 WE_all 1N $0 };
mad(8)          g94<1>F         g44<8,8,1>F     g6<8,8,1>F      g14<1,1,1>F { align1 1Q };
mad(8)          g95<1>D         g44<8,8,1>D     g6<8,8,1>D      g14<1,1,1>D { align1 1Q };
while(8)        JIP:  LABEL5                                    { align1 1Q };

LABEL4:
endif(8)        JIP:  LABEL2                                    { align1 1Q };
";

    #[test]
    fn the_loop_is_found_and_counted() {
        let found = parse(DG2, 8).main_loop();
        assert_eq!((found.instructions, found.fmas, found.vector_instructions), (9, 1, 6));
        assert_eq!((found.global_load_bits, found.lds_load_bits), (Some(128), Some(64)));
        assert_eq!(found.instructions_per_mac(), Some(9.0));
    }

    #[test]
    fn an_instruction_for_half_of_a_subgroup_is_half_a_multiply_add() {
        assert_eq!(parse(DG2, 16).main_loop().instructions_per_mac(), Some(18.0));
    }

    #[test]
    fn before_dg2_a_mask_tells_the_width() {
        let tgl = "\
send(8)         g6UD            g92UD           nullUD          0x0280f500                0x00000000
                            dp data 1 MsgDesc: (untyped surface read, Surface = 254, SIMD8, Mask = 0x0) mlen 1 ex_mlen 0 rlen 4 { align1 1Q $0 };
send(8)         g6UD            g92UD           nullUD          0x0280f500                0x00000000
                            dp data 1 MsgDesc: (DC A64 untyped surface read, Surface = 253, SIMD8, Mask = 0xe) mlen 2 ex_mlen 0 rlen 1 { align1 1Q $0 };
";
        let found = parse(tgl, 8).main_loop();
        assert_eq!((found.lds_load_bits, found.global_load_bits), (Some(128), Some(32)));
    }
}
