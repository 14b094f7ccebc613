//! `spirv/MANIFEST`: which sources the checked-in modules were made from.

use std::collections::{BTreeMap, BTreeSet};

use crate::kernels::Module;

/// One line per module, `name hash`, sorted by name.
pub(crate) fn write(modules: &[Module]) -> String {
    modules.iter().map(|module| format!("{} {}\n", module.name, module.hash())).collect()
}

/// The hash of each module's sources, by its name.
pub(crate) fn recorded(manifest: &str) -> BTreeMap<&str, &str> {
    let lines = manifest.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| line.split_once(' ').unwrap_or((line, ""))).collect()
}

/// Compares what the sources ask for with the manifest and with the names of the `.spv` files that are there.
/// Each mistake names its module.
pub(crate) fn check(modules: &[Module], manifest: &str, files: &BTreeSet<String>) -> Vec<String> {
    let recorded = recorded(manifest);
    let mut mistakes = Vec::new();
    for module in modules {
        let name = &module.name;
        match recorded.get(name.as_str()) {
            _ if !files.contains(name) => mistakes.push(format!("spirv/{name}.spv is missing")),
            None => mistakes.push(format!("spirv/{name}.spv is not in spirv/MANIFEST")),
            Some(hash) if *hash != module.hash() => {
                let kernel = &module.kernel;
                mistakes.push(format!(
                    "spirv/{name}.spv is stale: glsl/{kernel}.comp or a file it includes has changed"
                ));
            }
            Some(_) => {}
        }
    }
    let wanted: BTreeSet<&str> = modules.iter().map(|module| module.name.as_str()).collect();
    let present: BTreeSet<&str> = files.iter().map(String::as_str).chain(recorded.keys().copied()).collect();
    for name in present.difference(&wanted) {
        mistakes.push(format!("spirv/{name}.spv is surplus: no kernel in glsl/ makes it"));
    }
    mistakes
}

/// What is wrong with the bytes of a module, if anything: a damaged checkout is better found here than by a
/// driver.
pub(crate) fn damage(bytes: &[u8]) -> Option<&'static str> {
    if bytes.len() < 20 || !bytes.len().is_multiple_of(4) {
        Some("is no SPIR-V: its length is not that of a module")
    } else if bytes[..4] != [0x03, 0x02, 0x23, 0x07] {
        Some("is no SPIR-V: it does not begin with the magic number")
    } else {
        None
    }
}
