use super::*;

/// Files by their names; of the compiler's own macros, one.
struct Files<'a>(&'a [(&'a str, &'a str)]);

impl Surroundings for Files<'_> {
    fn include(&mut self, wanted: &Wanted<'_>) -> Result<Result<(String, String), String>, GlslError> {
        if wanted.depth > 8 {
            return Ok(Err("too deep".to_owned()));
        }
        let found = self.0.iter().find(|(name, _)| *name == wanted.name);
        let found = found.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        Ok(found.ok_or_else(|| format!("there is no {}", wanted.name)))
    }

    fn predefined(&mut self, version: &str, name: &str) -> Option<String> {
        match name {
            "VULKAN" => Some("100".to_owned()),
            "__VERSION__" => Some(version.split(' ').next()?.to_owned()),
            _ => None,
        }
    }
}

fn with_files(files: &[(&str, &str)], text: &str) -> Result<String, String> {
    let defines = [("WIDTH".to_owned(), "(4)".to_owned()), ("EMPTY".to_owned(), String::new())];
    preprocess("top", text, &defines, &mut Files(files)).map_err(|error| error.to_string())
}

fn made(text: &str) -> Result<String, String> {
    with_files(&[], text)
}

/// The words of what a source becomes.
fn words(text: &str) -> String {
    made(text).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_has_no_macros_keeps_its_words_and_lines() {
    let text = "#version 460\n\nvoid main() { // a comment\n  x += 1.5e-3 + a.xy[2] << 0x1E+1;\n}\n";
    assert_eq!(made(text).unwrap(), "#version 460\n\nvoid main() {\nx += 1.5e-3 + a.xy[2] << 0x1E+1;\n}\n");
    // Lines that go on, and comments over lines, are one line and leave empty ones.
    assert_eq!(made("a /* 1\n2 */ b\nin\\\nt c;\r\nd\re").unwrap(), "a b\n\nint c;\n\nd\ne\n");
    assert_eq!(made("# extension GL_X : enable\n#pragma x\n#error no\n#\n").unwrap().lines().count(), 4);
}

#[test]
fn macros_are_expanded_as_in_c() {
    for (text, expected) in [
        ("#define A 1\nA + B", "1 + B"),
        ("WIDTH EMPTY x", "( 4 ) x"),
        ("#define F(x) -x\n-F(-1) F (2) F", "- - - 1 - 2 F"),
        ("#define F(a, b) a b\nF((1, 2), 3)", "( 1 , 2 ) 3"),
        ("#define F() x\nF() F( )", "x x"),
        ("#define F (x)\nF", "( x )"),
        ("#define A B\n#define B A\nA B", "A B"),
        ("#define f(x) x + f(x)\nf(f(1))", "1 + f ( 1 ) + f ( 1 + f ( 1 ) )"),
        ("#define TWO a b\n#define G(x) <x>\nG(TWO) x", "< a b > x"),
        // Names of macros that are handed to others.
        ("#define CALL(f, x) f(x)\n#define SQ(x) x * x\nCALL(SQ, 3)", "3 * 3"),
        (
            "#define TYPES(F) F(int) F(vec2)\n#define OP(T) T op_##T();\nTYPES(OP)",
            "int op_int ( ) ; vec2 op_vec2 ( ) ;",
        ),
        // What is pasted is not expanded before, and is looked at after.
        (
            "#define A 1\n#define B 2\n#define AB 12\n#define P(x, y) x ## y\nP(A, B) P(, A) P(A, ) P(,)",
            "12 1 1",
        ),
        (
            "#define N 3\n#define P_(a, b) a##b\n#define P(a, b) P_(a, b)\nP(x, N) P_(x, N) P_(1, 2)",
            "x3 xN 12",
        ),
        ("#define P(a) a ## _ ## a\nP(x)", "x_x"),
        ("#define P(a) <## a\nP(<) P(=)", "<< <="),
        // A name at the end of what a macro makes takes the arguments behind it.
        ("#define SQ(x) x * x\n#define NAME SQ\nNAME(2)", "2 * 2"),
        ("#define A 1\n#undef A\nA", "A"),
        ("#define A 1\n#define A 1\nA", "1"),
        ("a\n__LINE__\n#define L(x) x##y __LINE__\nL(a)", "a 2 ay 4"),
        ("#define S(x) x\nS(\"a, b (\") S('c)", "\"a, b (\" ' c"),
        ("#define M(x) x\nM(1\n+ 2) + __LINE__", "1 + 2 + 3"),
    ] {
        assert_eq!(words(text), expected, "{text}");
    }
    assert_eq!(
        made("#define M(x) x\nM(1\n+ 2)\nz").unwrap().lines().nth(3),
        Some("z"),
        "lines stay where they are"
    );
}

#[test]
fn conditions_choose_one_part() {
    let choose = |condition: &str| {
        words(&format!("#version 460 core\n#define YES 1\n{condition}\na\n#elif YES\nb\n#else\nc\n#endif\n"))
            .replace("#version 460 core", "")
            .trim()
            .to_owned()
    };
    for condition in [
        "#if 1",
        "#ifdef YES",
        "#ifndef NO",
        "#if defined(YES) && !defined NO",
        "#if WIDTH * 2 == 8",
        "#if NO == 0",
        "#if __VERSION__ >= 450 && VULKAN == 100",
        "#ifdef VULKAN",
    ] {
        assert_eq!(choose(condition), "a", "{condition}");
    }
    for condition in ["#if 0", "#ifdef NO", "#ifndef YES", "#if __VERSION__ < 450"] {
        assert_eq!(choose(condition), "b", "{condition}");
    }
    // What is not chosen is not looked at.
    let inner = "#if 0\n#if 1 /\n#define X 1\n#nothing\n#else\n#endif\n#include <none>\n#elif 1\nX\n#elif 1 /\n#else\nn\n#endif\n";
    assert_eq!(words(inner), "X");
    assert_eq!(words("#if 1\n#else\n#else_\n#endif\nx"), "x");
}

#[test]
fn files_are_put_in_with_their_lines() {
    let files = [("lib/a.glsl", "#define A 7\nint a;\n#include <b>\nint c;"), ("b", "int b = A;\n")];
    let made = with_files(&files, "int x;\n#include \"lib/a.glsl\"\nint y = A;\n").unwrap();
    let expected = "int x;\n#line 1 \"lib/a.glsl\"\n\nint a;\n#line 1 \"b\"\nint b = 7 ;\n#line 4 \"lib/a.glsl\"\nint c;\n\
                    #line 3 \"top\"\nint y = 7 ;\n";
    assert_eq!(made, expected);
    let guarded = [("g", "#ifndef G\n#define G\nint g;\n#endif\n")];
    let twice = with_files(&guarded, "#include <g>\n#include <g>\n").unwrap();
    assert_eq!(twice.matches("int g;").count(), 1);
    // Names can't end what they stand in.
    let odd = [("a\"/*\\b", "")];
    let made = with_files(&odd, "#include <a\"/*\\b>").unwrap();
    assert!(made.starts_with("#line 1 \"a?/?/b\"\n"), "{made}");
    assert_eq!(
        with_files(&[("r", "#include <r>")], "#include <r>"),
        Err("r:1: '#include' : too deep".to_owned())
    );
    let after = with_files(&[], "#line 100\n\n#include <none>\n");
    assert_eq!(after, Err("top:101: '#include' : there is no none".to_owned()));
}

#[test]
fn mistakes_have_their_place() {
    for (text, expected) in [
        ("\n#define", "top:2: '#define' : without a name"),
        ("#define 1x 2", "top:1: '1x' : is no name for a macro"),
        ("#define GL_X 1", "top:1: 'GL_X' : is a name of the language's own"),
        ("#undef __LINE__", "top:1: '__LINE__' : is a name of the language's own"),
        ("#define A 1\n#define A 2", "top:2: 'A' : macro redefined with another meaning"),
        ("#define F(a, a) a", "top:1: 'F' : its parameters are no names, or twice the same"),
        ("#define F(a", "top:1: 'F' : its parameters do not end"),
        ("#define F(a) a\nx\nF(1", "top:3: 'F' : its arguments do not end"),
        ("#define F(a) a\nF(1\n#if 1\n)\n#endif", "top:2: 'F' : its arguments do not end"),
        ("#define F(a) a\nF(1, 2)", "top:2: 'F' : takes 1 arguments, 2 were given"),
        ("#define P(a, b) a ## b\nP(+, -)", "top:2: '##' : + and - are no word together"),
        ("#define P ## a", "top:1: '##' : at an end of a macro"),
        ("#define H #\nH define A", "top:2: '#' : not at the beginning of a line"),
        ("#if 1", "top:2: '#if' : without #endif"),
        ("#endif", "top:1: '#endif' : without #if"),
        ("#else", "top:1: '#else' : without #if"),
        ("#if 1\n#else\n#elif 1\n#endif", "top:3: '#elif' : without #if"),
        ("#if 1 +\n#endif", "top:1: '#if' : an operand is missing"),
        ("#nothing", "top:1: '#nothing' : invalid directive"),
        ("#include none", "top:1: '#include' : without \"a name\" or <a name>"),
        ("x /* y", "top:2: '/*' : the comment does not end"),
    ] {
        let got = made(text).map_err(|error| error.lines().next().unwrap_or_default().to_owned());
        assert_eq!(got, Err(expected.to_owned()), "{text}");
    }
}

/// Each would be more than memory has room for, or take more than a lifetime.
#[test]
fn what_explodes_is_refused() {
    let levels = |step: fn(usize) -> String| (1..=40).map(step).collect::<String>();
    let refused = |text: &str| {
        let error = made(text).unwrap_err();
        assert!(error.contains("macros are expanded: ") && error.contains("the maximum is"), "{error}");
    };
    refused(&(levels(|i| format!("#define M{i} M{0} + M{0}\n", i - 1)) + "M40"));
    refused(&(levels(|i| format!("#define M{i}(x) M{0}(x) + M{0}(x)\n", i - 1)) + "M40(1)"));
    // Backwards.
    refused(
        &((1..=40).rev().map(|i| format!("#define M{i} M{0} + M{0}\n", i - 1)).collect::<String>() + "M40"),
    );
    // Names that are pasted together.
    let pasted = levels(|i| format!("#define M{i}(x) P(M, {0})(x) + P(M, {0})(x)\n", i - 1));
    refused(&("#define P(a, b) a ## b\n".to_owned() + &pasted + "M40(1)"));
    // Macros that are handed to others.
    refused(
        &(levels(|i| format!("#define T{i}(f, x) f(x) f(x)\n#define M{i}(x) T{i}(M{}, x)\n", i - 1))
            + "M40(1)"),
    );
    // An argument, again and again.
    refused(&format!("#define D(x) x x\n{}1{}", "D(".repeat(30), ")".repeat(30)));
    // Nothing, often.
    refused(&("#define M0\n".to_owned() + &levels(|i| format!("#define M{i} M{0} M{0}\n", i - 1)) + "M40"));
    // What is thrown away, and what a condition asks for.
    let bomb = "#define M0 1\n".to_owned() + &levels(|i| format!("#define M{i} M{0} + M{0}\n", i - 1));
    refused(&(bomb.clone() + "#define SECOND(a, b) b\n#define FIRST(x) SECOND(x, 1)\nFIRST(M40)"));
    refused(&(bomb.clone() + "#if M40\n#endif"));
    // Over files.
    let files = [("bomb", bomb.as_str())];
    assert!(with_files(&files, "#include <bomb>\nM40").is_err());
    // Many calls with little in each: what is kept is bounded, too.
    let long = "x".repeat(1000);
    refused(&(format!("#define L {long}\n") + &"L\n".repeat(2000)));
    // Work that makes nothing: parameters without arguments.
    let many = "x ".repeat(20_000);
    refused(&(format!("#define E(x) {many}\n") + &"E()\n".repeat(20_000)));
    // And what is deep.
    let deep = |n: usize| made(&format!("#define I(x) x\n{}1{}", "I(".repeat(n), ")".repeat(n)));
    assert!(deep(200).is_ok());
    assert_eq!(
        deep(300),
        Err("top: macros inside of arguments of macros: 257, the maximum is 256".to_owned())
    );
    let conditions = |n: usize| made(&("#if 1\n".repeat(n) + &"#endif\n".repeat(n)));
    assert!(conditions(256).is_ok());
    assert_eq!(conditions(257), Err("top: levels of #if: 257, the maximum is 256".to_owned()));
    // As large as sources may be, and no macro in it.
    assert!(made(&"int a = 1;\n".repeat(90_000)).is_ok());
    assert!(made("#define A B\n#define B A\nfloat y = A;").is_ok());
}
