//! Gives the shared library the name by which programs find it at run time: it changes with the ABI.

fn main() {
    println!("cargo:rerun-if-changed=src/lib.rs");
    let target = |key: &str| std::env::var(format!("CARGO_CFG_TARGET_{key}")).unwrap_or_default();
    if target("OS") == "linux" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtidemill_c.so.{}", abi_version());
    }
}

/// The number in `pub const TM_ABI_VERSION: u32 = …;`.
fn abi_version() -> String {
    let source = std::fs::read_to_string("src/lib.rs").unwrap_or_default();
    let line = source.lines().find_map(|line| line.strip_prefix("pub const TM_ABI_VERSION: u32 = "));
    line.map_or_else(String::new, |rest| rest.trim_end_matches(';').to_owned())
}
