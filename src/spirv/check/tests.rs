//! What compilers make is taken, what is damaged is not.

use std::path::Path;
use std::process::Command;

use super::*;
use crate::spirv::Reflection;

/// The modules in a folder, by name.
fn modules(folder: &str) -> Vec<(String, Vec<u32>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = std::fs::read_dir(folder).expect("modules").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "spv")).collect();
    files.sort();
    let read = |path: std::path::PathBuf| {
        let bytes = std::fs::read(&path).expect("a module");
        let words = bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
        (path.file_stem().expect("a name").to_string_lossy().into_owned(), words)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn what_compilers_make_is_taken() {
    let refused: Vec<String> = modules("spirv")
        .into_iter()
        .filter_map(|(name, words)| check(&words).err().map(|why| format!("{name} {why}")))
        .collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    for (name, words) in modules("tests/fixtures") {
        match name.as_str() {
            // Images that are no texel buffers, and samplers.
            "bindings" => assert!(check(&words).is_err()),
            // An array of descriptors without a length.
            "unsized" => assert!(check(&words).is_err()),
            "uniform_texel" => assert_eq!(check(&words), Err("has the instruction OpImageFetch".to_owned())),
            _ => assert_eq!(check(&words), Ok(()), "{name}"),
        }
    }
}

#[test]
fn damaged_modules_are_never_a_panic() {
    for (_, words) in modules("tests/fixtures") {
        for cut in 0..words.len() {
            let _ = check(&words[..cut]);
            for change in [0x0001_0007, 1, 2, 0x8000_0000] {
                let mut flipped = words.clone();
                flipped[cut] ^= change;
                let _ = check(&flipped);
            }
        }
    }
}

/// The judge is SPIRV-Tools' validator (Debian: spirv-tools), asked about each damaged module that was taken.
#[test]
#[ignore = "needs spirv-val; takes a minute"]
fn what_is_taken_is_valid() {
    const ROUNDS: usize = 3;
    let file = std::env::temp_dir().join(format!("tidemill-check-{}.spv", std::process::id()));
    let (mut taken, mut wrong) = (0, Vec::new());
    for (name, words) in modules("tests/fixtures") {
        let mut state = 0x9e37_79b9u32;
        for at in (5..words.len()).cycle().take(ROUNDS * words.len()) {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let mut changed = words.clone();
            // Another small number: mostly another id.
            changed[at] =
                if state & 1 == 0 { changed[at] ^ (1 << (state >> 29)) } else { (state >> 16) % words[3] };
            let refused = check(&changed).is_err() || Reflection::parse(&changed).is_err();
            if changed[at] == words[at] || refused {
                continue;
            }
            taken += 1;
            let bytes: Vec<u8> = changed.iter().flat_map(|word| word.to_le_bytes()).collect();
            std::fs::write(&file, bytes).expect("a temporary file");
            let judged = Command::new("spirv-val").args(["--target-env", "vulkan1.3"]).arg(&file).output();
            let judged = judged.expect("spirv-val should be there: Debian's package spirv-tools");
            let said = String::from_utf8_lossy(&judged.stderr).lines().next().unwrap_or("").to_owned();
            // Debian 12's knows fewer languages, and the language of a module does not matter; and it looks at blocks
            // that are never reached, too.
            let harmless = ["source language", "branches to the loop continue target"];
            if !judged.status.success() && !harmless.iter().any(|what| said.contains(what)) {
                wrong.push(format!("{name}, word {at}: {said}"));
            }
        }
    }
    let _ = std::fs::remove_file(&file);
    println!("{taken} changed modules were taken, {} of them are not valid", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
