//! Programs of C11 and C++17 against the library, with warnings as errors, under AddressSanitizer: once with the
//! validation layer, and once without it but with a search for leaks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod toolchain;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tidemill::{Accelerator, Config, Epilogue, Prewarm};
use toolchain::{compiler, crate_dir, folder, from_docs, prefix, said, succeed};

/// Compiles a program with AddressSanitizer.
fn compile(source: &Path, name: &str) -> PathBuf {
    compile_with(&prefix().join("include"), source, name)
}

/// The same, with the header in this folder.
fn compile_with(include: &Path, source: &Path, name: &str) -> PathBuf {
    let (program, lib) = (folder("programs").join(name), prefix().join("lib"));
    let mut cc = compiler(source);
    cc.args(["-fsanitize=address", concat!("-DVERSION=\"", env!("CARGO_PKG_VERSION"), "\"")]);
    cc.arg("-I").arg(include).arg("-I").arg(crate_dir().join("tests/programs"));
    cc.arg("-L").arg(&lib);
    cc.arg(format!("-Wl,-rpath,{}", lib.display())).args(["-ltidemill_c", "-lm", "-pthread"]);
    if ["embed.c", "exit.c"].iter().any(|name| source.ends_with(name)) {
        cc.arg("-lvulkan");
    }
    cc.arg("-o").arg(&program);
    succeed(&mut cc);
    program
}

/// A program of the tests' own.
fn own(name: &str) -> PathBuf {
    compile(&crate_dir().join("tests/programs").join(name), &name.replace('.', "_"))
}

/// A program with settings of its own, and files of its own between runs. One that hangs is ended, and has failed.
fn limited(program: &Path, settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["300", "env"]).args(settings.iter().map(|(name, value)| format!("{name}={value}")));
    command.arg(program).env("XDG_CACHE_HOME", folder("cache"));
    // Mesa's compiled kernels are anyone's: the other tests have made most of them.
    let of_the_system = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = of_the_system.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    if let Some(cache) = cache.filter(|_| std::env::var_os("MESA_SHADER_CACHE_DIR").is_none()) {
        command.env("MESA_SHADER_CACHE_DIR", cache);
    }
    command
}

/// Under the validation layer, which leaks by itself.
fn validated(program: &Path) -> Command {
    limited(program, &[("ASAN_OPTIONS", "detect_leaks=0")])
}

/// With a search for leaks. What the driver keeps until the end is found by way of its libraries, so they must stay
/// loaded: they are preloaded, behind the sanitizer, which wants to be first.
fn searched(program: &Path) -> Command {
    let asan = succeed(Command::new("cc").arg("-print-file-name=libasan.so"));
    let preload = format!("{} libvulkan_lvp.so libVkLayer_MESA_device_select.so", asan.trim());
    let settings = [
        ("ASAN_OPTIONS", "detect_leaks=1"),
        ("NO_VALIDATION", "1"),
        ("TIDEMILL_DEVICE", "llvmpipe"),
        ("LD_PRELOAD", &preload),
    ];
    limited(program, &settings)
}

/// In both ways.
fn passes(program: &Path, arguments: &[&Path]) {
    for mut command in [validated(program), searched(program)] {
        assert_eq!(succeed(command.args(arguments)), "ok\n");
    }
}

#[test]
fn every_operation() {
    passes(&own("ops.c"), &[]);
}

#[test]
fn bad_input_is_refused_with_a_sentence() {
    passes(&own("errors.c"), &[]);
}

#[test]
fn cpp_threads_and_streams() {
    passes(&own("threads.cpp"), &[]);
}

#[test]
fn hybrid_chains() {
    passes(&own("hybrid.c"), &[]);
}

#[test]
fn cpp_values() {
    passes(&own("values.cpp"), &[&crate_dir().join("../tests/fixtures/scale.spv")]);
}

#[test]
fn other_libraries_by_dlpack() {
    passes(&own("dlpack.c"), &[]);
}

#[test]
fn kernels_plans_and_profiles() {
    let out = folder("profiles");
    let kernel = crate_dir().join("../tests/fixtures/scale.spv");
    passes(&own("plans.c"), &[&kernel, &out]);
    let json = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(out.join(name)).unwrap()).unwrap()
    };
    let profile = json("profile.json");
    let labels: Vec<_> = profile["rows"].as_array().unwrap().iter().map(|row| &row["label"]).collect();
    assert_eq!(labels, ["scale 3 f32", "mul 3 f32"]);
    assert!(profile["busy_ns"].as_u64().unwrap() > 0);
    assert_eq!(profile["mode"], "timeline");
    let run = json("run.json");
    assert_eq!((run["name"].as_str(), run["submissions"].as_u64()), (Some("a run from C"), Some(3)));
    assert_eq!(run["profiles"].as_array().unwrap().len(), 3);
    assert!(json("trace.json")["traceEvents"].as_array().unwrap().len() > 6);
    let stats = json("stats.json");
    assert_eq!(stats["pool"]["guard_bytes_touched"], 0);
    assert!(stats["submissions"].as_u64().unwrap() >= 9);
    assert!(!json("device.json")["name"].as_str().unwrap().is_empty());
    let files = std::fs::read_dir(out.join("cache")).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().any(|name| name.starts_with("seen-c_host-")), "{names:?}");
}

#[test]
fn what_takes_long_and_what_looks_inside() {
    let out = folder("more");
    passes(&own("more.c"), &[&out]);
    let json = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(out.join(name)).unwrap()).unwrap()
    };
    let explained = json("explain.json");
    assert_eq!(explained["recorded"].as_array().unwrap().len(), 2);
    assert_eq!(explained["values"][0]["dims"], serde_json::json!([8, 8]));
    assert_eq!(explained["values"][0]["role"], "input");
    assert!(explained["run"][0]["kernel"].is_string());
    let tuning = json("tuning.json");
    assert_eq!((tuning["cancelled"].as_bool(), tuning["trials"].as_array().unwrap().len()), (Some(true), 1));
    assert_eq!(tuning["trials"][0]["family"], "softmax");
    let variants = json("variants.json");
    assert!(variants.as_array().unwrap().iter().any(|v| v["family"] == "matmul" && v["in_use"] == true));
    assert!(json("peaks.json")["gflops"].as_f64().unwrap() > 0.0);
}

#[test]
#[ignore = "needs RenderDoc"]
fn a_capture_from_c() {
    let name = folder("captures").join("from_c");
    assert_eq!(succeed(validated(&own("capture.c")).arg(&name)), "ok\n");
    assert!(name.with_extension("rdc").metadata().unwrap().len() > 10_000);
}

#[test]
fn a_host_shares_its_own_device() {
    passes(&own("embed.c"), &[]);
}

#[test]
fn a_host_may_exit_without_closing() {
    let program = own("exit.c");
    for _ in 0..3 {
        assert_eq!(succeed(&mut validated(&program)), "ok\n");
    }
}

#[test]
fn a_host_may_close_the_library() {
    // Not linked with it: what a program needs itself is never unloaded.
    let (program, lib) = (folder("programs").join("plugin_c"), prefix().join("lib/libtidemill_c.so"));
    let mut cc = compiler(&crate_dir().join("tests/programs/plugin.c"));
    cc.arg("-fsanitize=address")
        .arg("-I")
        .arg(prefix().join("include"))
        .args(["-ldl", "-pthread", "-o"])
        .arg(&program);
    succeed(&mut cc);
    // A hang is a matter of moments, so several times.
    for _ in 0..10 {
        assert_eq!(succeed(validated(&program).arg(&lib)), "ok\n");
    }
}

#[test]
fn a_leak_would_be_found() {
    let output = searched(&own("leak.c")).output().unwrap();
    assert!(!output.status.success());
    assert!(said(&output).contains("LeakSanitizer: detected memory leaks"), "{}", said(&output));
    // By the library's file, or by its sources where frames have names.
    assert!(said(&output).contains("tidemill_c"), "{}", said(&output));
}

/// `older.c` and `refused.c` have the headers of earlier versions. A change that breaks the first of this ABI raises
/// `TM_ABI_VERSION`, and its header comes to the fixtures.
#[test]
fn programs_of_an_older_header_work_or_are_refused() {
    let programs = crate_dir().join("tests/programs");
    let fixtures = crate_dir().join("tests/fixtures");
    let header = std::fs::read_to_string(crate_dir().join("include/tidemill.h")).unwrap();
    let version = header.lines().find_map(|line| line.strip_prefix("#define TM_ABI_VERSION ")).unwrap();
    let folder = fixtures.join(format!("abi{version}"));
    assert!(folder.exists(), "{} has the first header of the current ABI", folder.display());
    passes(&compile_with(&folder, &programs.join("older.c"), "older_c"), &[]);
    let refused = compile_with(&fixtures.join("abi1"), &programs.join("refused.c"), "refused_c");
    assert_eq!(succeed(&mut validated(&refused)), "ok\n");
}

/// The functions of the header: what they give, their names, their parameters.
fn functions() -> Vec<(String, String, Vec<String>)> {
    let header = std::fs::read_to_string(crate_dir().join("include/tidemill.h")).unwrap();
    let (_, functions) = header.split_once("extern \"C\" {").expect("functions are declared for C++, too");
    let (functions, _) = functions.split_once("}  // extern \"C\"").expect("that has an end");
    let code = functions.lines().filter(|line| !line.starts_with("//") && !line.starts_with('#'));
    let code: String = code.collect::<Vec<_>>().join(" ");
    let parse = |declaration: &str| {
        let (head, parameters) = declaration.split_once('(')?;
        let at = head.rfind([' ', '*'])? + 1;
        let parameters = parameters.strip_suffix(')')?.split(',').map(|p| p.trim().to_owned());
        let parameters = parameters.filter(|parameter| parameter != "void").collect();
        Some((head[..at].trim().to_owned(), head[at..].to_owned(), parameters))
    };
    code.split(';').map(str::trim).filter_map(parse).collect()
}

/// What no program calls is not tested.
#[test]
fn every_function_of_the_header_is_called() {
    let programs = std::fs::read_dir(crate_dir().join("tests/programs")).unwrap();
    let programs = programs.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    let programs: String = programs.collect();
    let names: Vec<String> = functions().into_iter().map(|(_, name, _)| name).collect();
    assert!(names.len() > 100, "{names:?}");
    // By their names, or as what frees a handle.
    let called =
        |name: &&String| programs.contains(&format!("{name}(")) || programs.contains(&format!("{name}>"));
    let missing: Vec<_> = names.iter().filter(|name| !called(name)).collect();
    assert!(missing.is_empty(), "no program calls {missing:?}");
}

/// A program that calls every function with nothing: each must say what is missing, and none may crash.
#[test]
fn every_function_takes_null() {
    let mut body = String::new();
    for (gives, name, parameters) in functions() {
        let nothing = |parameter: &String| match parameter {
            p if p.contains('*') => "NULL",
            p if p.starts_with("tm_value ") => "nothing",
            _ => "0",
        };
        let arguments = parameters.iter().map(nothing).collect::<Vec<_>>().join(", ");
        body += &match (gives.as_str(), name.as_str()) {
            ("tm_status", name) if name == "tm_check_abi" || name.ends_with("_init") => {
                format!("    FAILS({name}({arguments}), TM_ABI_MISMATCH, \"{name}: \");\n")
            }
            ("tm_status", _) => {
                format!("    FAILS({name}({arguments}), TM_INVALID_ARGUMENT, \"{name}: \");\n")
            }
            ("void", _) => format!("    {name}({arguments});\n"),
            _ => format!("    (void){name}({arguments});\n"),
        };
    }
    let text = format!(
        "#include \"check.h\"\n\nint main(void) {{\n    (void)make_gpu;\n    tm_value nothing = {{0}};\n{body}    \
         printf(\"ok\\n\");\n    return 0;\n}}\n"
    );
    let source = folder("programs").join("nulls.c");
    std::fs::write(&source, text).unwrap();
    passes(&compile(&source, "nulls"), &[]);
}

#[test]
fn the_program_in_the_documentation() {
    let source = folder("programs").join("documented.c");
    std::fs::write(&source, from_docs("c")).unwrap();
    let program = compile(&source, "documented");
    assert_eq!(succeed(&mut validated(&program)), "2.25 6.25 12.25 20.25\n");
}

/// The network of the tour, from Rust.
fn network() -> Vec<f32> {
    let wave = |n: usize, step: f32, scale: f32| -> Vec<f32> {
        (0..n).map(|i| scale * (i as f32 * step).sin()).collect()
    };
    let (batch, wide, hidden, classes) = (64, 784, 256, 10);
    let config = Config::new().validation(true).memory_checks(true).no_cache().prewarm(Prewarm::Off);
    let gpu = Accelerator::new(&config).unwrap();
    let x = gpu.upload(&wave(batch * wide, 0.37, 1.0), [batch, wide]).unwrap();
    let w1 = gpu.upload(&wave(wide * hidden, 0.11, 0.1), [wide, hidden]).unwrap();
    let b1 = gpu.upload(&wave(hidden, 0.73, 0.5), [hidden]).unwrap();
    let w2 = gpu.upload(&wave(hidden * classes, 0.53, 0.2), [hidden, classes]).unwrap();
    let p = gpu.run(|r| {
        let h = r.matmul_with(&x, &w1, Epilogue::bias(&b1).relu())?;
        let y = r.matmul(h, &w2)?;
        r.softmax(y, -1)
    });
    let p = p.unwrap().read::<f32>().unwrap();
    assert!(gpu.validation_messages().is_empty());
    p
}

#[test]
fn the_tours_network_gives_the_same_bits_from_c_and_cpp() {
    let expected: Vec<u32> = network().iter().map(|p| p.to_bits()).collect();
    for (name, source) in [("c_mlp", "c_mlp/main.c"), ("cpp_mlp", "cpp_mlp/main.cpp")] {
        let program = compile(&crate_dir().join("../examples").join(source), name);
        let file = folder("programs").join(name).with_extension("result");
        let text = succeed(validated(&program).arg(&file));
        assert!(text.contains("equal to the CPU's"), "{text}");
        let bytes = std::fs::read(&file).unwrap();
        let bits: Vec<u32> =
            bytes.chunks_exact(4).map(|b| u32::from_ne_bytes(b.try_into().unwrap())).collect();
        assert_eq!(bits, expected, "{name}");
        // Without a file it needs no layer, and leaks nothing.
        assert!(succeed(&mut searched(&program)).contains("equal to the CPU's"));
    }
}

/// What the pieces of docs/embedding.md use and do not declare.
const HOST_OF_THE_PAGE: &str = r#"
#include <vulkan/vulkan.h>
extern VkInstance instance;
extern VkPhysicalDevice physical;
extern VkDevice device;
extern VkQueue queue;
extern uint32_t family;
extern VkDeviceCreateInfo made_with;
extern VkPhysicalDeviceFeatures core;
extern VkPhysicalDeviceVulkan11Features v11;
extern VkPhysicalDeviceVulkan12Features v12;
extern VkPhysicalDeviceVulkan13Features v13;
extern VkBuffer buffer;
extern VkSemaphore timeline;
extern VkCommandBuffer commands;
extern uint64_t bytes;
extern size_t n;
"#;

#[test]
fn the_pieces_of_the_page_on_embedding_compile() {
    let page = std::fs::read_to_string(crate_dir().join("../docs/embedding.md")).unwrap();
    let languages = [
        (
            "c",
            "#include <stdio.h>\n#include <stdlib.h>\n#include <tidemill.h>\n#define TRY(call) if ((call) != TM_OK) abort()\n\
             extern int mutex;\nvoid lock_queue(void *user);\nvoid unlock_queue(void *user);\n\
             extern tm_accelerator *gpu;\nextern tm_tensor *x, *y;\nextern tm_recording *r;\n",
        ),
        (
            "cpp",
            "#include <cstdio>\n#include <mutex>\n#include <tidemill.hpp>\nextern std::mutex mutex;\n\
             extern tidemill::Accelerator gpu;\nextern tidemill::Tensor y;\nextern tidemill::Recording r;\n",
        ),
    ];
    for (language, head) in languages {
        let mut text = format!("{head}{HOST_OF_THE_PAGE}");
        let fence = format!("\n```{language}\n");
        let pieces = page.split(&fence).skip(1);
        let pieces: Vec<&str> = pieces.map(|rest| rest.split("\n```\n").next().unwrap()).collect();
        assert_eq!(pieces.len(), 6, "a piece of {language} for each step");
        for (i, piece) in pieces.iter().enumerate() {
            text += &format!("void step_{i}(void);\nvoid step_{i}(void) {{\n{piece}\n}}\n");
        }
        let source = folder("programs").join(format!("pieces.{language}"));
        std::fs::write(&source, text).unwrap();
        let mut cc = compiler(&source);
        succeed(cc.args(["-Wno-unused", "-fsyntax-only", "-I"]).arg(prefix().join("include")));
    }
}

#[test]
fn the_cpp_program_in_the_documentation() {
    let source = folder("programs").join("documented.cpp");
    std::fs::write(&source, from_docs("cpp")).unwrap();
    let program = compile(&source, "documented_cpp");
    assert_eq!(succeed(&mut validated(&program)), "2.25 6.25 12.25 20.25\n");
}
