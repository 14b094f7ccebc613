use std::fs;
use std::path::Path;

use super::*;

fn check(text: &str) -> Result<(), GlslError> {
    Macros::default().check("x", text)
}

/// Each macro has the one before it twice.
fn doubling(levels: usize, arguments: &str) -> String {
    let step = |i: usize| format!("#define M{}{arguments} M{i}{arguments} M{i}{arguments}\n", i + 1);
    format!("#define M0{arguments} 1\n") + &(0..levels).map(step).collect::<String>()
}

fn around(call: &str, depth: usize, inner: &str) -> String {
    format!("{}{inner}{}\n", call.repeat(depth), ")".repeat(depth))
}

const TWICE: &str = "#define TWICE(x) x + x\n#define ID(x) x\n#define APPLY(f, x) f(x)\n#define LP (\n#define RP )\n#define EMPTY\n";

#[test]
fn macros_that_explode_are_refused() {
    for (what, text) in [
        ("doubling", doubling(30, "") + "M30"),
        ("with an argument", doubling(30, "(x)") + "M30(x)"),
        ("in parentheses", "#define M0 1\n".to_owned() + &parenthesised(30) + "M30"),
        ("in a condition", doubling(30, "") + "#if M30\n#endif"),
        ("behind a number", doubling(30, "") + "0M30"),
        ("behind a letter that is none of the compiler's", doubling(30, "") + "éM30"),
        ("over two lines", doubling(30, "").replace("#define M", "#define M\\\n") + "M30"),
        ("lines that end otherwise", doubling(30, "").replace('\n', "\r") + "M30"),
        ("behind a text", "\"/*\"\n".to_owned() + &doubling(30, "") + "M30 \"*/\""),
        (
            "after a comment that goes on in some versions",
            "// \\\n#define A B B".to_owned() + &long_comment(),
        ),
        ("pasted", doubling(40, "") + "#define CAT(a, b) a##b\nCAT(M, 40)"),
        ("pasted of three", doubling(40, "") + "#define CAT(a, b, c) a##b##c\nCAT(M, 4, 0)"),
        ("pasted with a part in place", doubling(40, "") + "#define NTH(n) M ## n\nNTH(40)"),
        ("nested", TWICE.to_owned() + &around("TWICE(", 30, "1")),
        ("nested in a definition", format!("{TWICE}#define ALL {}ALL", around("TWICE(", 30, "1"))),
        ("applied", TWICE.to_owned() + &around("APPLY(TWICE, ", 30, "1")),
        (
            "applied to a name that is pasted",
            format!("{TWICE}#define CAT(a, b) a##b\n{}", around("CAT(TW, ICE)(", 30, "1")),
        ),
        ("named by a call", TWICE.to_owned() + &around("ID(TWICE)(", 30, "1")),
        ("with nothing between", format!("{TWICE}ID({})", around("TWICE EMPTY (", 30, "1"))),
        (
            "with parentheses that are macros",
            format!("{TWICE}ID({}{})", "TWICE LP ".repeat(30), "RP ".repeat(30)),
        ),
        ("left open", format!("{TWICE}#define OPEN TWICE(\n{}1{}", "OPEN ".repeat(30), ")".repeat(30))),
        ("handed on", format!("{TWICE}#define CALL(f, args) f args\n{}", call_with(30))),
        ("one after the other", in_turn()),
        ("in each other", mutual()),
    ] {
        assert!(matches!(check(&text), Err(GlslError::TooLarge { .. })), "{what}");
    }
}

fn parenthesised(levels: usize) -> String {
    (0..levels).map(|i| format!("#define M{} (M{i} + M{i})\n", i + 1)).collect()
}

/// `CALL(TWICE, (CALL(TWICE, (1))))`
fn call_with(depth: usize) -> String {
    (0..depth).fold("1".to_owned(), |inner, _| format!("CALL(TWICE, ({inner}))"))
}

fn long_comment() -> String {
    let step = |i: usize| format!("// \\\n#define M{} M{i} M{i}\n", i + 1);
    "\n".to_owned() + &(0..30).map(step).collect::<String>() + "M30"
}

/// Each pair of parentheses is another call.
fn in_turn() -> String {
    let large = "x ".repeat(10_000);
    format!("#define F(a) {large} G\n#define G(a) {large} F\nF{}", "(1)".repeat(10_000))
}

/// `B` is more than what stands in `A` where `A` is expanded in it.
fn mutual() -> String {
    let many = |name: &str| format!("{name} ").repeat(5_000);
    format!("#define A B {}\n#define B {}\nA B", many("x"), many("A"))
}

#[test]
fn ordinary_macros_are_not() {
    for text in [
        doubling(10, "") + "M10",
        TWICE.to_owned() + &around("TWICE(", 10, "1"),
        "#define A B\n#define B A\nfloat y = A;".to_owned(),
        "float f(float x) { return x; }\n".repeat(2000),
        // Overloads by the same name.
        "#define mix3(a, b, c) mix3(mix3(a, b), mix3(b, c))\nmix3(1, 2, 3)".to_owned(),
        // A list of types, and a family of functions for each.
        "#define SQUARE(x) ((x) * (x))
         #define TYPES(F) F(float) F(int) F(uint) F(vec2) F(vec4)
         #define LOAD(T) T load_##T(uint i) { return T(SQUARE(SQUARE(x[i]))); }
         #define STORE(T) void store_##T(uint i, T value) { y[i] = float(SQUARE(value.x)); }
         TYPES(LOAD) TYPES(STORE)
         void main() { store_float(0, load_float(((1 + 2) * (3 + 4)))); }"
            .to_owned(),
        // A macro by its number.
        "#define OP_0(x) (x)
         #define OP_1(x) (-(x))
         #define OP_2(x) (1.0 / (x))
         #define OP_(n) OP_##n
         #define OP(n) OP_(n)
         y[0] = OP(0)(OP(1)(OP(2)(x[0])));"
            .to_owned(),
    ] {
        check(&text).unwrap();
    }
}

#[test]
fn definitions_reach_what_stands_in_other_files() {
    let bomb = doubling(30, "");
    let mut macros = Macros::default();
    macros.check("top", "#include \"bomb\"\nM30").unwrap();
    assert!(macros.check("bomb", &bomb).is_err());
    // The same file again is added up.
    let mut macros = Macros::default();
    macros.check("top", &doubling(18, "")).unwrap();
    let often = (0..100).take_while(|_| macros.check("use", "M18").is_ok()).count();
    assert_eq!(often, MOST_EXPANDED / (3 << 18), "each is 2^18 times the 3 bytes of a name");
    let mut macros = Macros::default();
    let files = (0..1000).take_while(|i| macros.check("file", &format!("// {i}")).is_ok()).count();
    assert_eq!(files, MOST_FILES + 1, "the source itself, and what it includes");
}

#[test]
fn the_macros_of_our_own_kernels_are_within_the_limit() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("glsl");
    let list = |folder: &Path| -> Vec<_> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_file()).collect()
    };
    let library = list(&folder.join("lib"));
    assert!(!library.is_empty());
    for kernel in list(&folder) {
        let mut macros = Macros::default();
        for file in library.iter().chain([&kernel]) {
            macros.check(&file.display().to_string(), &fs::read_to_string(file).unwrap()).unwrap();
        }
    }
}
