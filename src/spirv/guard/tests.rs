//! What guarding changes of a module, and what it makes of damaged ones.

use super::*;
use crate::spirv::Reflection;

/// The fixtures of the other tests, by name.
fn fixtures() -> Vec<(String, Vec<u32>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let files = std::fs::read_dir(folder).expect("the fixtures").map(|entry| entry.expect("an entry").path());
    let modules = files.filter(|path| path.extension().is_some_and(|e| e == "spv"));
    let read = |path: std::path::PathBuf| {
        let bytes = std::fs::read(&path).expect("a fixture");
        let words = bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
        (path.display().to_string(), words)
    };
    modules.map(read).collect()
}

#[test]
fn a_guarded_module_says_the_same_of_itself() {
    let mut changed = 0;
    for (name, words) in fixtures() {
        let Ok((guarded, _)) = guard(&words) else { continue };
        changed += usize::from(guarded != words);
        let (Ok(before), Ok(after)) = (Reflection::parse(&words), Reflection::parse(&guarded)) else {
            continue;
        };
        assert_eq!(before.bindings, after.bindings, "{name}");
        assert_eq!(before.specializations, after.specializations, "{name}");
        assert_eq!(
            guard(&guarded).map(|(_, shared)| shared),
            guard(&words).map(|(_, shared)| shared),
            "{name}"
        );
    }
    assert!(changed > 5, "{changed} fixtures were changed");
}

#[test]
fn damaged_modules_are_refused_or_guarded_and_never_a_panic() {
    for (_, words) in fixtures() {
        for cut in 0..words.len() {
            let _ = guard(&words[..cut]);
            let mut flipped = words.clone();
            flipped[cut] ^= 0x0001_0007;
            let _ = guard(&flipped);
        }
    }
}
