//! The recipes of docs/c.md: pkg-config and CMake find what `capi/install.sh` puts somewhere.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod toolchain;

use std::process::Command;

use toolchain::{compiler, crate_dir, folder, from_docs, prefix, said, succeed};

fn runs(command: &mut Command) {
    let text = succeed(command.env("XDG_CACHE_HOME", folder("cache")));
    assert!(text.contains("equal to the CPU's"), "{text}");
}

#[test]
#[ignore = "needs pkg-config, which `./dev setup --ci` installs"]
fn pkg_config() {
    let asked = |arguments: &[&str]| -> Vec<String> {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig")).args(arguments).arg("tidemill");
        succeed(&mut command).split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(asked(&["--modversion"]), [env!("CARGO_PKG_VERSION")]);
    let (source, out) = (crate_dir().join("../examples/c_mlp/main.c"), folder("recipes"));
    let shared = out.join("shared");
    succeed(compiler(&source).args(asked(&["--cflags", "--libs"])).args(["-lm", "-o"]).arg(&shared));
    runs(Command::new(&shared).env("LD_LIBRARY_PATH", prefix().join("lib")));

    let fixed = out.join("static");
    let libs = asked(&["--static", "--libs"]).into_iter().map(|flag| match flag.as_str() {
        "-ltidemill_c" => "-l:libtidemill_c.a".to_owned(),
        _ => flag,
    });
    succeed(compiler(&source).args(asked(&["--cflags"])).args(libs).arg("-o").arg(&fixed));
    runs(&mut Command::new(&fixed));
}

#[test]
#[ignore = "needs CMake, which `./dev setup --ci` installs"]
fn find_package() {
    for kind in ["tidemill::tidemill", "tidemill::static"] {
        let source = folder(&format!("recipes/{}", kind.replace(':', "")));
        let project = from_docs("cmake").replacen("tidemill::tidemill", kind, 1);
        std::fs::write(source.join("CMakeLists.txt"), project).unwrap();
        std::fs::copy(crate_dir().join("../examples/c_mlp/main.c"), source.join("main.c")).unwrap();
        let build = source.join("build");
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(&source).arg("-B").arg(&build).arg("-DCMAKE_C_FLAGS=-Wall -Wextra -Werror");
        configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display()));
        succeed(&mut configure);
        succeed(Command::new("cmake").arg("--build").arg(&build));
        runs(&mut Command::new(build.join("app")));
    }
}

#[test]
#[ignore = "needs CMake, which `./dev setup --ci` installs"]
fn another_series_is_not_found() {
    let source = folder("recipes/newer");
    let project = from_docs("cmake").replacen("tidemill 0.2", "tidemill 0.3", 1);
    std::fs::write(source.join("CMakeLists.txt"), project).unwrap();
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&source).arg("-B").arg(source.join("build"));
    let output = configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display())).output().unwrap();
    assert!(
        !output.status.success() && said(&output).contains("requested version \"0.3\""),
        "{}",
        said(&output)
    );
}

#[test]
fn both_crates_have_one_version() {
    let root = std::fs::read_to_string(crate_dir().join("../Cargo.toml")).unwrap();
    let version = root.lines().find_map(|line| line.strip_prefix("version = ")).unwrap();
    assert_eq!(version, format!("\"{}\"", env!("CARGO_PKG_VERSION")));
}
