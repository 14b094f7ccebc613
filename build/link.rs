//! Whether programs with the feature `shaderc` will link, found out before they don't.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

const TRIAL: &str = "void *shaderc_compiler_initialize(void);\n\
                     int main(void) { return shaderc_compiler_initialize() == 0; }\n";

/// An error where the system's shaderc, which the shaderc crate would take, does not link. What can't be tried is not
/// doubted.
pub(crate) fn check(root: &Path, out: &Path) -> Result<(), Vec<String>> {
    println!("cargo::rerun-if-env-changed=SHADERC_LIB_DIR");
    let is_set = |name: &str| env::var_os(name).is_some();
    let elsewhere = ["SHADERC_LIB_DIR", "VULKAN_SDK", "DOCS_RS"].into_iter().any(is_set);
    let native = env::var("HOST") == env::var("TARGET") && env::var("CARGO_CFG_UNIX").is_ok();
    if !is_set("CARGO_FEATURE_SHADERC") || elsewhere || !native {
        return Ok(());
    }
    let found = Command::new("pkg-config").args(["--exists", "shaderc"]).status();
    if !found.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let (source, program) = (out.join("shaderc_trial.c"), out.join("shaderc_trial"));
    if fs::write(&source, TRIAL).is_err() {
        return Ok(());
    }
    let tried =
        Command::new("cc").arg(&source).arg("-o").arg(&program).args(["-lshaderc", "-lstdc++"]).output();
    match tried {
        Ok(tried) if !tried.status.success() => Err(refusal(root, &String::from_utf8_lossy(&tried.stderr))),
        _ => Ok(()),
    }
}

pub(crate) fn refusal(root: &Path, said: &str) -> Vec<String> {
    let why = said.lines().find(|line| line.contains("undefined")).unwrap_or_else(|| said.trim()).trim();
    vec![
        format!("feature `shaderc`: the system's shaderc does not link: {why}"),
        "Debian 12's lacks the libraries that it was built from; this makes one that has them:".to_owned(),
        "    apt-get install libshaderc-dev glslang-dev spirv-tools g++".to_owned(),
        format!("    {} ~/.cache/shaderc", root.join("scripts/shaderc-archive.sh").display()),
        "    export SHADERC_LIB_DIR=~/.cache/shaderc".to_owned(),
        format!("{} has other ways", root.join("docs/shaderc.md").display()),
    ]
}
