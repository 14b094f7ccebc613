//! Gives the shared library the name by which programs find it at run time, which changes with the ABI, and has it stay
//! loaded once it is: `dlclose` would run its exit hook under the loader's lock, and the background thread that the
//! hook waits for may need that lock to end (seen with glibc 2.36: both wait for ever).

fn main() {
    println!("cargo:rerun-if-changed=src/lib.rs");
    let target = |key: &str| std::env::var(format!("CARGO_CFG_TARGET_{key}")).unwrap_or_default();
    if target("OS") == "linux" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtidemill_c.so.{}", abi_version());
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}

/// The number in `pub const TM_ABI_VERSION: u32 = …;`.
fn abi_version() -> String {
    let source = std::fs::read_to_string("src/lib.rs").unwrap_or_default();
    let line = source.lines().find_map(|line| line.strip_prefix("pub const TM_ABI_VERSION: u32 = "));
    line.map_or_else(String::new, |rest| rest.trim_end_matches(';').to_owned())
}
