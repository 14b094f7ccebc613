//! Users' GLSL: what the compiler says, what becomes of an index out of bounds, and a file that changes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

#[path = "../examples/custom_kernel.rs"]
mod custom_kernel;
#[path = "gpu/harness.rs"]
mod harness;

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

use harness::gpu;
use tidemill::error::GlslError;
use tidemill::{Accelerator, DType, Dispatch, Error, Glsl, Kernel};

/// A folder of the test's own, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tidemill-glsl-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("lib")).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A message with this folder's path as `DIR`.
    fn brief(&self, error: &Error) -> String {
        error.to_string().replace(&*self.0.to_string_lossy(), "DIR")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const HEAD: &str = "#version 460
layout(local_size_x = 64) in;
layout(binding = 0, std430) readonly buffer In { float x[]; };
layout(binding = 1, std430) writeonly buffer Out { float y[]; };
";

/// One value per invocation; BODY gives `y[i]`.
fn map(value: &str) -> String {
    format!(
        "{HEAD}void main() {{\n    uint i = gl_GlobalInvocationID.x;\n    if (i < y.length()) y[i] = {value};\n}}\n"
    )
}

fn run(gpu: &Accelerator, kernel: &Kernel, x: &[f32]) -> Vec<f32> {
    let t = gpu.upload(x, [x.len()]).unwrap();
    let groups = [x.len().div_ceil(64) as u32, 1, 1];
    let run = Dispatch::new(kernel).input(&t).output([x.len()], DType::F32).groups(groups);
    gpu.run(|r| r.dispatch(run)).unwrap()[0].read().unwrap()
}

#[test]
fn a_text_with_defines_becomes_a_kernel() {
    let gpu = gpu();
    let glsl = Glsl::source("scale", map("FACTOR * x[i] + OFFSET"))
        .define("OFFSET", 0.5)
        .define("FACTOR", "(1 + 2)");
    let kernel = glsl.compile().unwrap();
    assert_eq!(kernel.name(), "scale");
    assert_eq!(kernel.reflection().bindings.len(), 2);
    assert_eq!(kernel.reflection().bindings[0].name, "In");
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    assert_eq!(run(&gpu, &kernel, &x), x.iter().map(|x| 3.0 * x + 0.5).collect::<Vec<_>>());

    let error = Glsl::source("scale", map("FACTOR * x[i]")).compile().unwrap_err();
    assert_eq!(error.to_string(), "GLSL: scale:7: 'FACTOR' : undeclared identifier");
    let error = Glsl::source("scale", map("x[i]")).define("2x", 1).compile().unwrap_err();
    assert_eq!(
        error.to_string(),
        "GLSL: define \"2x\" is not a name; use letters, digits and _, and begin with no digit"
    );
}

#[test]
fn arguments_are_checked_as_for_spirv() {
    let gpu = gpu();
    let kernel = Glsl::source("scale", map("x[i]")).compile().unwrap();
    let x = gpu.upload(&[1.0f32; 10], [10]).unwrap();
    let refused = |run: Dispatch<'_>| gpu.run(|r| r.dispatch(run)).unwrap_err().to_string();
    assert_eq!(refused(Dispatch::new(&kernel).input(&x)), "kernel scale: it has 2 bindings, 1 were given");
    assert_eq!(
        refused(Dispatch::new(&kernel).input(&x).input(&x)),
        "kernel scale: binding 1 is written by the shader, the argument is an input"
    );
    assert_eq!(
        refused(Dispatch::new(&kernel).input(&x).output([10], DType::F32).push(&[1u32])),
        "kernel scale: its push constants are 0 bytes, 4 were given"
    );
    // There would be no element to clamp to.
    let none = gpu.upload::<f32>(&[], [0]).unwrap();
    assert_eq!(
        refused(Dispatch::new(&kernel).input(&none).output([10], DType::F32)),
        "kernel scale: binding 0 needs at least 4 bytes, the tensor has 0"
    );
}

#[test]
fn includes_are_found_beside_the_file_and_in_folders() {
    let (gpu, folder, elsewhere) = (gpu(), Folder::new("includes"), Folder::new("elsewhere"));
    folder.write(
        "lib/outer.glsl",
        "#include \"inner.glsl\"\nfloat outer(float x) { return 10.0 * inner(x); }\n",
    );
    folder.write("lib/inner.glsl", "#include <base.glsl>\nfloat inner(float x) { return x + BASE; }\n");
    elsewhere.write("base.glsl", "const float BASE = 4.0;\n");
    let text = map("outer(x[i])").replacen('\n', "\n#include \"lib/outer.glsl\"\n", 1);
    let path = folder.write("nested.comp", &text);
    let glsl = Glsl::file(&path).include_dir(&elsewhere.0);
    let kernel = glsl.compile().unwrap();
    assert_eq!(kernel.name(), "nested");
    assert_eq!(run(&gpu, &kernel, &[1.0, 2.0]), [50.0, 60.0]);
    // A text finds them by folder alone.
    let kernel =
        Glsl::source("text", &*text).include_dir(&folder.0).include_dir(&elsewhere.0).compile().unwrap();
    assert_eq!(run(&gpu, &kernel, &[1.0, 2.0]), [50.0, 60.0]);

    // A mistake in an included file is told with that file's name and line.
    folder.write("lib/inner.glsl", "#include <base.glsl>\n\nfloat inner(float x) { return x + BASIS; }\n");
    let error = glsl.compile().unwrap_err();
    assert_eq!(folder.brief(&error), "GLSL: DIR/lib/inner.glsl:3: 'BASIS' : undeclared identifier");
    let Error::Glsl(GlslError::Mistakes { mistakes }) = &error else { panic!("{error:?}") };
    assert_eq!((mistakes.len(), mistakes[0].line), (1, Some(3)));
    assert_eq!(PathBuf::from(&mistakes[0].file), folder.0.join("lib/inner.glsl"));
}

#[test]
fn an_include_that_is_not_there_is_told_with_its_place() {
    let folder = Folder::new("missing");
    let path = folder.write("a.comp", "#version 460\n\n#include \"none.glsl\"\nvoid main() {}\n");
    let error = Glsl::file(&path).include_dir(folder.0.join("lib")).compile().unwrap_err();
    let text = folder.brief(&error);
    assert!(text.starts_with("GLSL: DIR/a.comp:3: "), "{text}");
    assert!(text.contains("there is no none.glsl in DIR, DIR/lib"), "{text}");
    let error =
        Glsl::source("a", "#version 460\n#include \"none.glsl\"\nvoid main() {}\n").compile().unwrap_err();
    assert!(error.to_string().contains("in no folder (give one with include_dir)"), "{error}");

    let path = folder.write("self.comp", "#version 460\n#include \"self.comp\"\nvoid main() {}\n");
    let error = Glsl::file(&path).compile().unwrap_err();
    assert!(error.to_string().contains("files are included more than 32 deep"), "{error}");
}

#[test]
fn mistakes_have_a_place_and_a_type() {
    let folder = Folder::new("mistakes");
    let path = folder.write("broken.comp", &map("x[i] +* 2.0").replace("uint i", "uint j, i"));
    let error = Glsl::file(&path).compile().unwrap_err();
    let text = folder.brief(&error);
    assert!(text.starts_with("GLSL: DIR/broken.comp:7: '' :  syntax error"), "{text}");
    let error = Glsl::file(folder.0.join("none.comp")).compile().unwrap_err();
    assert!(matches!(&error, Error::Glsl(GlslError::File { .. })), "{error:?}");
    assert_eq!(folder.brief(&error), "GLSL: DIR/none.comp: No such file or directory (os error 2)");
    let error = Glsl::source("nul", "void main() {}\0").compile().unwrap_err();
    assert_eq!(
        error.to_string(),
        "GLSL: nul contains a NUL character, where the compiler would stop; remove it"
    );
    let several = "#version 460\nvoid main() {\n    a = 1;\n    b = 2;\n}\n";
    let error = Glsl::source("two", several).compile().unwrap_err();
    assert_eq!(
        error.to_string(),
        "GLSL: two:3: 'a' : undeclared identifier\ntwo:4: 'b' : undeclared identifier"
    );
}

/// The harness fails the test if a byte behind a tensor is written.
#[test]
fn an_index_out_of_bounds_is_clamped_to_the_last_element() {
    let gpu = gpu();
    let kernel = Glsl::source("reads", map("x[i + 1000000000u] + x[int(i) - 1000]")).compile().unwrap();
    assert_eq!(run(&gpu, &kernel, &[1.0, 2.0, 3.0]), [6.0; 3]);

    let writes = format!("{HEAD}void main() {{ y[gl_GlobalInvocationID.x * 100000000u] = x[0]; }}");
    let kernel = Glsl::source("writes", writes).compile().unwrap();
    // What is not written is zero, although the shader calls it writeonly.
    assert_eq!(run(&gpu, &kernel, &[7.0; 5]), [7.0, 0.0, 0.0, 0.0, 7.0]);
}

#[test]
fn what_has_a_length_of_its_own_is_clamped_too() {
    let gpu = gpu();
    let text = "#version 460
        layout(local_size_x = 1) in;
        layout(constant_id = 3) const uint N = 4;
        layout(binding = 0) readonly buffer In { uvec4 first; uint at[]; };
        layout(binding = 1) buffer Out { uint y[]; };
        shared uint tile[N];
        shared uint square[N][N];
        const uint FIXED[3] = uint[3](10, 20, 30);
        uint pick(inout uint list[2], uint at) { return list[at]; }
        void main() {
            for (uint i = 0; i < N; i++) tile[i] = 100 + i;
            uint list[2] = uint[2](5, 6);
            mat2 m = mat2(1, 2, 3, 4);
            uint far = at[0];
            y[0] = tile[far];
            y[1] = FIXED[far];
            y[2] = pick(list, far);
            y[3] = uint(m[far][far]);
            y[4] = first[far];
            y[5] = (first + uvec4(1))[far];
            list[far] = 9;
            y[6] = list[1];
            uvec2 v = uvec2(1);
            v[far] = 8;
            y[7] = v.y;
            square[far][far] = 77;
            atomicAdd(y[far], square[N - 1][N - 1]);
        }";
    let kernel = Glsl::source("lengths", text).compile().unwrap();
    let x = gpu.upload(&[1u32, 2, 3, 4, 0xffff_fff0], [5]).unwrap();
    for n in [2u32, 4, 16] {
        let run = Dispatch::new(&kernel).input(&x).output([9], DType::U32).specialize(3, n);
        let y: Vec<u32> = gpu.run(|r| r.dispatch(run)).unwrap()[0].read().unwrap();
        assert_eq!(y, [99 + n, 30, 6, 4, 4, 5, 9, 8, 77]);
    }
    let run = Dispatch::new(&kernel).input(&x).output([9], DType::U32).specialize(3, 0u32);
    assert_eq!(
        gpu.run(|r| r.dispatch(run)).unwrap_err().to_string(),
        "kernel lengths: specialization constant 3 is 0 and is the length of a shared array; it must be 1 or more"
    );
    let run = Dispatch::new(&kernel).input(&x).output([9], DType::U32).specialize(3, 1u32 << 10);
    let limit = gpu.device().limits.shared_bytes;
    assert_eq!(
        gpu.run(|r| r.dispatch(run)).unwrap_err().to_string(),
        format!(
            "kernel lengths: its shared variables take 4198400 bytes, the device has {limit} for a workgroup"
        )
    );
}

#[test]
fn texels_are_clamped_by_their_views() {
    let gpu = gpu();
    let text = "#version 460
        layout(local_size_x = 1) in;
        layout(binding = 0, rgba32f) readonly uniform imageBuffer x;
        layout(binding = 1, r32f) writeonly uniform imageBuffer y;
        layout(binding = 2, r32ui) uniform uimageBuffer n;
        void main() {
            imageStore(y, 1 << 30, imageLoad(x, -5));
            imageAtomicAdd(n, 1 << 29, 3u);
        }";
    let kernel = Glsl::source("texels", text).compile().unwrap();
    let x: Vec<f32> = (0..8).map(|i| i as f32).collect();
    let t = gpu.upload(&x, [8]).unwrap();
    let run = Dispatch::new(&kernel).input(&t).output([3], DType::F32).output([2], DType::U32);
    let kept = gpu.run(|r| r.dispatch(run)).unwrap();
    assert_eq!(kept[0].read::<f32>().unwrap(), [0.0, 0.0, 4.0]);
    assert_eq!(kept[1].read::<u32>().unwrap(), [0, 3]);
}

#[test]
#[allow(unsafe_code, reason = "what the safe way refuses")]
fn what_cannot_be_guarded_is_refused_by_name() {
    let refused = |text: &str| Glsl::source("k", text).compile().unwrap_err().to_string();
    let tail = "; only `compile_unguarded` accepts it";
    let twice = "#version 460
        layout(binding = 0) readonly buffer A { float a[]; };
        layout(binding = 0) readonly buffer B { vec4 b[]; };
        layout(binding = 1) buffer C { float c; };
        void main() { c = a[0] + b[0].x; }";
    assert_eq!(refused(twice), format!("GLSL: k declares set 0 binding 0 twice{tail}"));
    // SAFETY: it is never dispatched.
    assert!(unsafe { Glsl::source("k", twice).compile_unguarded() }.is_ok());
    let sized = "#version 460
        layout(constant_id = 0) const uint N = 4;
        layout(binding = 0) buffer A { float a[N]; };
        void main() { a[1] = 2; }";
    assert_eq!(
        refused(sized),
        format!("GLSL: k has an array in a buffer whose length is a specialization constant{tail}")
    );
    let local = "#version 460
        layout(binding = 0) buffer A { uint a; };
        void main() { uint list[1 << 20]; for (uint i = 0; i < 9; i++) list[i * a] = i; a = list[a]; }";
    assert_eq!(
        refused(local),
        format!("GLSL: k has 4194308 bytes of local variables or more, the maximum is 65536{tail}")
    );
    let intrinsics = "#version 460
        #extension GL_EXT_spirv_intrinsics : enable
        #define PASTE(a, b) a ## b
        PASTE(spirv, _instruction)(id = 128) uint added(uint a, uint b);
        layout(binding = 0) buffer A { uint a; };
        void main() { a = added(1, 2); }";
    assert_eq!(refused(intrinsics), format!("GLSL: k uses GL_EXT_spirv_intrinsics{tail}"));
}

#[test]
fn a_file_that_changes_is_another_kernel() {
    let (gpu, folder) = (gpu(), Folder::new("reload"));
    let path = folder.write("live.comp", &map("x[i] + 1.0"));
    let glsl = Glsl::file(&path);
    let first = glsl.compile().unwrap();
    folder.write("live.comp", &map("x[i] * 8.0"));
    let second = glsl.compile().unwrap();
    assert_eq!(run(&gpu, &first, &[2.0]), [3.0]);
    assert_eq!(run(&gpu, &second, &[2.0]), [16.0]);
}

#[test]
fn the_example_sees_the_file_change() {
    let (gpu, folder) = (gpu(), Folder::new("watch"));
    let path = folder.write("live.comp", &map("x[i] + 1.0"));
    let mut seen = Vec::new();
    custom_kernel::watch(&gpu, &Glsl::file(&path), &path, |result| {
        seen.push(result.map_err(|error| folder.brief(&error)));
        match seen.len() {
            1 => drop(folder.write("live.comp", &map("x[i] + nothing"))),
            2 => drop(folder.write("live.comp", &map("x[i] * 2.0"))),
            _ => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    });
    assert_eq!(seen[0].as_deref().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    assert_eq!(seen[1], Err("GLSL: DIR/live.comp:7: 'nothing' : undeclared identifier".to_owned()));
    assert_eq!(seen[2].as_deref().unwrap(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]);
}

#[test]
fn subgroup_operations_run_where_the_device_has_them() {
    let gpu = gpu();
    let f = gpu.device().features;
    // Of each, what an invocation of a whole subgroup gets for x = 1; the number of its invocations is beside it.
    let kinds = [
        ("vote", f.subgroup_vote, "subgroupAll(x[i] == 1.0) ? float(gl_SubgroupSize) : 0.0"),
        ("ballot", f.subgroup_ballot, "float(subgroupBallotBitCount(subgroupBallot(x[i] == 1.0)))"),
        ("arithmetic", f.subgroup_arithmetic, "subgroupAdd(x[i])"),
        ("shuffle", f.subgroup_shuffle, "subgroupShuffle(x[i], 0u) * float(gl_SubgroupSize)"),
        ("shuffle_relative", f.subgroup_shuffle_relative, "subgroupShuffleUp(float(gl_SubgroupSize), 0u)"),
        ("clustered", f.subgroup_clustered, "subgroupClusteredAdd(x[i], 4u) * float(gl_SubgroupSize) / 4.0"),
        ("quad", f.subgroup_quad, "subgroupQuadBroadcast(x[i], 0u) * float(gl_SubgroupSize)"),
    ];
    let mut served = 0;
    for (kind, has, value) in kinds {
        let text = format!(
            "#version 460\n#extension GL_KHR_shader_subgroup_{kind} : require\n{}\
             void main() {{ uint i = gl_GlobalInvocationID.x; y[i] = ({value}) / float(gl_SubgroupSize); }}\n",
            HEAD.trim_start_matches("#version 460\n")
        );
        let kernel = Glsl::source(kind, &text).compile().unwrap();
        if has {
            served += 1;
            assert_eq!(run(&gpu, &kernel, &[1.0; 64]), [1.0; 64], "{kind}");
        } else {
            let x = gpu.upload(&[1.0f32; 64], [64]).unwrap();
            let refused =
                gpu.run(|r| Ok(r.dispatch(Dispatch::new(&kernel).input(&x).output([64], DType::F32))?[0]));
            assert!(matches!(refused, Err(Error::KernelNeeds { .. })), "{kind}");
        }
    }
    assert!(served > 1, "this driver has hardly any");
}

#[test]
fn texels_end_where_the_tensor_ends() {
    let gpu = gpu();
    let text = "#version 460
        layout(local_size_x = 1) in;
        layout(binding = 0, rgba32f) readonly uniform imageBuffer source;
        layout(binding = 1, rgba32f) writeonly uniform imageBuffer result;
        layout(binding = 2) writeonly buffer Size { int size; };
        void main() {
            size = imageSize(source);
            for (int i = 0; i < imageSize(source); i++) imageStore(result, i, imageLoad(source, i) + 1.0);
        }";
    let kernel = Glsl::source("texels", text).compile().unwrap();
    let run = |n: usize, out: usize| {
        let x = gpu.upload(&vec![1.0f32; n], [n]).unwrap();
        let run = Dispatch::new(&kernel).input(&x).output([out], DType::F32).output([1], DType::I32);
        let made = gpu.run(|r| r.dispatch(run))?;
        Ok::<_, Error>((made[0].read::<f32>()?, made[1].read::<i32>()?))
    };
    assert_eq!(run(8, 8).unwrap(), (vec![2.0; 8], vec![2]));
    for (n, out, binding, bytes) in [(5, 8, 0, 20), (8, 7, 1, 28), (3, 4, 0, 12), (1, 4, 0, 4)] {
        assert_eq!(
            run(n, out).unwrap_err().to_string(),
            format!(
                "kernel texels: binding {binding} takes texels of 16 bytes, the tensor has {bytes}, which is not a multiple of that; \
                 pad it, or declare a format of one component"
            )
        );
    }
    assert_eq!(
        run(0, 4).unwrap_err().to_string(),
        "kernel texels: binding 0 needs at least 16 bytes, the tensor has 0"
    );
}

#[test]
fn a_filler_shows_nothing_of_what_was_there() {
    let gpu = gpu();
    drop(gpu.upload(&[1234567u32; 64], [64]).unwrap());
    gpu.upload_with([64], |f: &mut tidemill::TensorWriter<'_, u32>| {
        assert_eq!(format!("{f:?}"), "TensorWriter(0 of 64 written)");
        f.extend([7; 64]);
        assert_eq!(format!("{f:#?}"), "TensorWriter(64 of 64 written)");
    })
    .unwrap();
}

#[cfg(unix)]
#[test]
fn includes_do_not_lead_out_of_their_folders() {
    let (folder, secret) = (Folder::new("inside"), Folder::new("outside"));
    let outside = secret.write("secret.glsl", "float secret() { return 1.0; }\n");
    folder.write("lib/inner.glsl", "#include \"../base.glsl\"\n");
    folder.write("base.glsl", "float secret() { return 2.0; }\n");
    std::os::unix::fs::symlink(&outside, folder.0.join("lib/link.glsl")).unwrap();
    std::os::unix::fs::symlink(&secret.0, folder.0.join("lib/linked")).unwrap();
    let name = secret.0.file_name().unwrap().to_str().unwrap();
    let text = |wanted: &str| map("secret()").replacen('\n', &format!("\n#include {wanted}\n"), 1);
    let inside = |wanted: &str| Glsl::source("x", text(wanted)).include_dir(&folder.0).compile();
    inside("\"lib/inner.glsl\"").unwrap();
    inside("<lib/../base.glsl>").unwrap();
    inside(&format!("\"{}\"", folder.0.join("base.glsl").display())).unwrap();
    for wanted in [
        format!("\"{}\"", outside.display()),
        format!("<{}>", outside.display()),
        format!("\"../{name}/secret.glsl\""),
        format!("<lib/../../{name}/secret.glsl>"),
        "\"lib/link.glsl\"".to_owned(),
        "\"lib/linked/secret.glsl\"".to_owned(),
    ] {
        let refused = inside(&wanted).unwrap_err().to_string();
        assert!(refused.contains("leads out of the folders"), "{wanted}: {refused}");
        Glsl::source("x", text(&wanted)).include_dir(&folder.0).include_dir(&secret.0).compile().unwrap();
    }
    // The folder of a file is its own.
    let file = folder.write("lib/top.comp", &text("\"../base.glsl\""));
    assert!(Glsl::file(&file).compile().is_err());
    Glsl::file(&file).include_dir(&folder.0).compile().unwrap();
}

#[test]
fn shared_memory_is_counted_with_its_padding() {
    let gpu = gpu();
    let limit = u64::from(gpu.device().limits.shared_bytes);
    let text = |declared: &str| {
        format!(
            "#version 460
            layout(local_size_x = 1) in;
            layout(constant_id = 0) const uint N = 4;
            layout(binding = 0) buffer Out {{ float y[]; }};
            {declared}
            void main() {{ use(); y[0] = 1.0; }}"
        )
    };
    let taken = |declared: &str, n: u32| {
        let kernel = Glsl::source("shared", text(declared)).compile().unwrap();
        let run = Dispatch::new(&kernel).output([1], DType::F32).specialize(0, n);
        match gpu.begin_recording().unwrap().dispatch(run) {
            Err(Error::KernelArguments {
                mismatch: tidemill::error::KernelMismatch::SharedMemory { got, .. },
                ..
            }) => got,
            other => panic!("{other:?}"),
        }
    };
    let n = limit as u32;
    // Three floats take the place of four, a struct is padded to its alignment, and what follows begins at its own.
    let vec3 = "shared vec3 a[N]; void use() { a[gl_LocalInvocationIndex] = vec3(1); }";
    assert_eq!(taken(vec3, n), 16 * limit);
    let mat3 = "shared mat3 a[N]; void use() { a[gl_LocalInvocationIndex] = mat3(1); }";
    assert_eq!(taken(mat3, n), 48 * limit);
    let mixed = "struct S { vec2 v; float f; };
        shared S a[N]; shared float b; shared vec4 c;
        void use() { a[gl_LocalInvocationIndex] = S(vec2(1), 1); b = 1; c = vec4(1); }";
    // 16 bytes each; the order of the two behind them is the compiler's.
    assert!([16 * limit + 20, 16 * limit + 32].contains(&taken(mixed, n)), "{}", taken(mixed, n));
}

/// Whether it was refused for its size, or its error.
fn too_large(text: String) -> String {
    match Glsl::source("large", text).compile() {
        Err(Error::Glsl(error @ (GlslError::TooLarge { .. } | GlslError::Unguardable { .. }))) => {
            error.to_string()
        }
        Err(other) => panic!("{other}"),
        Ok(_) => "compiled".to_owned(),
    }
}

#[test]
fn long_sums_and_deep_sources_compile_or_are_refused_on_any_stack() {
    let compile = |text: String| {
        let thread = std::thread::Builder::new().stack_size(128 << 10);
        thread.spawn(move || Glsl::source("large", text).compile()).unwrap().join().unwrap()
    };
    compile(map(&format!("x[i]{}", " + x[i]".repeat(5_000)))).unwrap();
    let refused = |result: tidemill::Result<Kernel>, what: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    refused(compile(map(&format!("x[i]{}", " + 1.0".repeat(40_000)))), "words and signs in a statement: ");
    refused(
        compile(map(&format!("{}1.0{}", "(".repeat(300), ")".repeat(300)))),
        "levels of nesting: 257, the maximum is 256",
    );
    refused(compile(map(&format!("1.0; // {}", "x".repeat(1 << 20)))), "bytes of source: ");
    // A directive in the middle of a statement ends nothing.
    let terms = format!("{}\n#pragma a\n", "+1".repeat(30_000));
    refused(compile(map(&format!("x[i]{}", terms.repeat(16)))), "words and signs in a statement: ");
    let directive = format!("#line 1 {}1\n", "(".repeat(300_000));
    refused(compile(with(&directive, "x[i]")), "levels of nesting: 257, the maximum is 256");
    // As deep as the limits allow; whatever becomes of it, the process lives.
    let _ = compile(map(&format!("x[i]{}", " + 1.0".repeat(32_000))));
    let _ = compile(map(&format!("1.0; {}y[0] = 1.0", "if (x[0] == 1.0) y[0] = 2.0; else ".repeat(20_000))));
    let _ = compile(map(&format!("{}x[i]", "-".repeat(60_000))));
}

#[test]
fn sources_that_explode_are_refused() {
    // Each calls the one before it twice.
    let calls: String = (1..=18)
        .map(|i| format!("float f{i}(float x) {{ return f{0}(x) + f{0}(x + 1.0); }}\n", i - 1))
        .collect();
    let functions = format!("float f0(float x) {{ return x * 2.0; }}\n{calls}");
    let refused = too_large(map("f18(x[i])").replacen("void main", &(functions.clone() + "void main"), 1));
    assert!(
        refused.contains("instructions or more") && refused.contains("the maximum is 131072"),
        "{refused}"
    );
    Glsl::source("small", map("f9(x[i])").replacen("void main", &(functions + "void main"), 1))
        .compile()
        .unwrap();
    let copies = "#version 460
        layout(local_size_x = 1) in;
        layout(binding = 0) readonly buffer A { int a[65536]; };
        layout(binding = 1) writeonly buffer B { int b[65536]; };
        void main() { b = a; }";
    let refused = too_large(copies.to_owned());
    assert!(refused.contains("instructions or more"), "{refused}");
    assert_eq!(too_large(copies.replace("65536", "4096")), "compiled");
}

/// A kernel with these lines in front.
fn with(lines: &str, value: &str) -> String {
    map(value).replacen('\n', &format!("\n{lines}"), 1)
}

#[test]
fn macros_that_explode_are_refused() {
    let bomb: String = (1..=40).map(|i| format!("#define M{i} M{0} + M{0}\n", i - 1)).collect();
    let bomb = format!("#define M0 1.0\n{bomb}");
    let pasted: String =
        (1..=40).map(|i| format!("#define M{i}(x) P(M, {0})(x) + P(M, {0})(x)\n", i - 1)).collect();
    let pasted = format!("#define P(a, b) a ## b\n#define M0(x) x\n{pasted}");
    let by_name: String = (1..=40)
        .map(|i| format!("#define T{i}(f, x) f(x) + f(x)\n#define M{i}(x) T{i}(M{0}, x)\n", i - 1))
        .collect();
    let by_name = format!("#define M0(x) x\n{by_name}");
    let condition = format!("{bomb}#if M40\n#endif\n");
    let deep = format!("#define D(x) x + x\n#define V {}1.0{}\n", "D(".repeat(40), ")".repeat(40));
    for (lines, value) in
        [(&bomb, "M40"), (&pasted, "M40(1.0)"), (&by_name, "M40(1.0)"), (&condition, "1.0"), (&deep, "V")]
    {
        let refused = too_large(with(lines, value));
        assert!(refused.contains("macros are expanded: "), "{refused}");
    }
    // In a file, and from outside.
    let folder = Folder::new("bomb");
    folder.write("bomb.glsl", &pasted);
    let including = with("#include <bomb.glsl>\n", "M40(x[i])");
    let error = Glsl::source("bomb", &*including).include_dir(&folder.0).compile().unwrap_err().to_string();
    assert!(error.contains("bytes while its macros are expanded: "), "{error}");
    let error =
        Glsl::source("bomb", with(&bomb, "ALL")).define("ALL", "M40").compile().unwrap_err().to_string();
    assert!(error.contains("bytes while its macros are expanded: "), "{error}");
}

#[test]
fn macros_of_the_compilers_own_decide_conditions() {
    let gpu = gpu();
    let lines = "#if __VERSION__ == 460 && defined(VULKAN) && VULKAN >= 100 && GL_KHR_shader_subgroup_basic
#define VALUE 5.0
#elif defined(NEVER)
#error never
#endif
#ifdef GL_no_such_extension
#error it is not there
#endif
";
    let kernel = Glsl::source("conditions", with(lines, "VALUE + float(__LINE__)")).compile().unwrap();
    // Of HEAD and these lines, and of the line itself in `map`.
    let line = HEAD.lines().count() + lines.lines().count() + 3;
    assert_eq!(run(&gpu, &kernel, &[0.0]), [5.0 + line as f32]);
    let error = Glsl::source("error", with("#if 1\n#error this one\n#endif\n", "1.0")).compile().unwrap_err();
    assert!(error.to_string().starts_with("GLSL: error:3: "), "{error}");
}

#[test]
fn ordinary_macros_compile() {
    let gpu = gpu();
    let lines = "#define SQUARE(x) ((x) * (x))
#define TYPES(F) F(float) F(int) F(vec2)
#define TWICE_(T) T twice_##T(T v) { return v + v; }
#define OP_0(x) (x)
#define OP_1(x) (1.0 + (x))
#define PASTE(n) OP_##n
#define OP(n) PASTE(n)
#define APPLY(f, x) f(x)
#define LONG(x) \\
    SQUARE(x) \\
    + 0.5
TYPES(TWICE_)
";
    let text =
        with(lines, "twice_float(OP(0)(x[i])) + float(twice_int(1)) + OP(1)(APPLY(SQUARE, LONG(x[i])))");
    let kernel = Glsl::source("macros", text).compile().unwrap();
    let expected = |x: f32| 2.0 * x + 2.0 + 1.0 + (x * x + 0.5) * (x * x + 0.5);
    assert_eq!(run(&gpu, &kernel, &[0.0, 1.0, 3.0]), [0.0, 1.0, 3.0].map(expected));
}

#[cfg(unix)]
#[test]
fn only_regular_files_up_to_a_size_are_read() {
    let folder = Folder::new("regular");
    let fifo = folder.0.join("fifo.comp");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let refused = |path: &std::path::Path| folder.brief(&Glsl::file(path).compile().unwrap_err());
    // Nothing waits for its other end.
    assert_eq!(refused(&fifo), "GLSL: DIR/fifo.comp: it is no regular file");
    assert_eq!(refused(std::path::Path::new("/dev/zero")), "GLSL: /dev/zero: it is no regular file");
    assert_eq!(refused(&folder.0), "GLSL: DIR: it is no regular file");
    let including = |name: &str| folder.write("top.comp", &with(&format!("#include \"{name}\"\n"), "1.0"));
    assert!(
        refused(&including("fifo.comp")).contains("there is no fifo.comp"),
        "{}",
        refused(&including("fifo.comp"))
    );
    // More than there is memory for.
    fs::File::create(folder.0.join("huge.comp")).unwrap().set_len(1 << 40).unwrap();
    let huge = "GLSL: DIR/huge.comp: bytes of source: 1099511627776, the maximum is 1048576";
    assert_eq!(refused(&folder.0.join("huge.comp")), huge);
    assert_eq!(refused(&including("huge.comp")), huge);
    // A link is the file that it leads to.
    std::os::unix::fs::symlink(folder.write("real.comp", &map("x[i]")), folder.0.join("link.comp")).unwrap();
    Glsl::file(folder.0.join("link.comp")).compile().unwrap();
}

/// A kernel that reads and writes one tensor, and one that has no output at all.
#[test]
fn a_kernel_may_update_a_tensor() {
    let gpu = gpu();
    let text = "#version 460
layout(local_size_x = 64) in;
layout(binding = 0, std430) readonly buffer In { float x[]; };
layout(binding = 1, std430) buffer State { float t[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < x.length()) t[i] = 2.0 * t[i] + x[i];
}
";
    let kernel = Glsl::source("update", text).compile().unwrap();
    let (t, x) =
        (gpu.upload(&[1.0f32, 2.0, 3.0, 4.0], [4]).unwrap(), gpu.upload(&[10.0f32; 3], [3]).unwrap());
    let r = gpu.begin_recording().unwrap();
    let before = r.neg(&t).unwrap();
    assert!(r.dispatch(Dispatch::new(&kernel).input(&x).inout(&t)).unwrap().is_empty());
    // What the kernel reads of the tensor itself is what was there before.
    assert!(r.dispatch(Dispatch::new(&kernel).input(&t).inout(&t)).unwrap().is_empty());
    let after = r.neg(&t).unwrap();
    let (before, after) = (r.keep(before).unwrap(), r.keep(after).unwrap());
    let mut plan = r.into_plan().unwrap();
    let _ = plan.submit().unwrap();
    assert_eq!(before.read::<f32>().unwrap(), [-1.0, -2.0, -3.0, -4.0]);
    assert_eq!(after.read::<f32>().unwrap(), [-36.0, -42.0, -48.0, -12.0]);
    let _ = plan.submit().unwrap();
    assert_eq!(before.read::<f32>().unwrap(), [-36.0, -42.0, -48.0, -12.0]);
    assert_eq!(t.read::<f32>().unwrap(), [246.0, 282.0, 318.0, 36.0]);

    let both = Glsl::source(
        "both",
        "#version 460
layout(binding = 0, std430) buffer A { float a[]; };
layout(binding = 1, std430) buffer B { float b[]; };
void main() { a[0] = 1.0; b[0] = 2.0; }
",
    )
    .compile()
    .unwrap();
    let r = gpu.begin_recording().unwrap();
    let refused = r.dispatch(Dispatch::new(&both).inout(&t).inout(&t)).unwrap_err();
    assert!(
        refused
            .to_string()
            .ends_with("bindings 0 and 1 would both update the same tensor; give one of them a copy")
    );
    let refused = r.dispatch(Dispatch::new(&kernel).inout(&x).inout(&t)).unwrap_err();
    assert!(
        refused.to_string().contains("binding 0 is readonly in the shader, the argument is updated"),
        "{refused}"
    );
    r.dispatch(Dispatch::new(&both).inout(&t).inout(&x)).unwrap();
    let _ = r.end_recording().unwrap();
    assert_eq!((t.read::<f32>().unwrap()[0], x.read::<f32>().unwrap()), (1.0, vec![2.0, 10.0, 10.0]));
}
