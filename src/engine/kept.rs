//! Files about a device that are kept between runs: measured peaks, and what tuning has found.

use std::path::{Path, PathBuf};

use super::choices::Winner;
use super::core::Core;
use crate::vk::physical::{DeviceInfo, DeviceKind};
use crate::vk::pipeline::{fnv1a, write_atomically};

/// Names the device, its driver and this crate's version: what another of these has measured is not true here.
fn key(info: &DeviceInfo) -> String {
    // A software driver's name does not tell how many cores it runs on.
    let cores = match info.kind {
        DeviceKind::Cpu => std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        _ => 0,
    };
    format!("{}|{cores}|{}", info.cache_key, env!("CARGO_PKG_VERSION"))
}

/// The file of this name for a device.
pub(crate) fn file(info: &DeviceInfo, folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}-{:016x}.txt", fnv1a(key(info).as_bytes())))
}

/// A text that is kept by this name for a device; `None` if there is none.
pub(crate) fn read(core: &Core, name: &str) -> Option<String> {
    std::fs::read_to_string(file(&core.device.info, core.folder()?, name)).ok()
}

/// Keeps a text by this name, or nothing where nothing is kept on disk.
pub(crate) fn write(core: &Core, name: &str, text: &str) {
    if let Some(folder) = core.folder() {
        write_atomically(&file(&core.device.info, folder, name), text.as_bytes());
    }
}

/// The file of what tuning has found.
pub(crate) fn tuning_file(info: &DeviceInfo, folder: &Path) -> PathBuf {
    file(info, folder, "tuning")
}

/// What was found in an earlier run. A file that is missing, corrupt, another device's or an older version's is a miss.
pub(crate) fn load_tuning(
    info: &DeviceInfo,
    folder: &Path,
    find: impl Fn(&str, &str, &str) -> Option<Winner>,
) -> Option<Vec<Winner>> {
    let text = std::fs::read_to_string(tuning_file(info, folder)).ok()?;
    from_text(&text, &key(info), find)
}

/// Writes what was found; a disk that refuses costs the next start its speed and nothing else.
pub(crate) fn save_tuning(info: &DeviceInfo, folder: &Path, winners: &[Winner]) {
    write_atomically(&tuning_file(info, folder), to_text(&key(info), winners).as_bytes());
}

fn to_text(key: &str, winners: &[Winner]) -> String {
    let mut text = format!("for {key}\n");
    for Winner { family, class, variant } in winners {
        text += &format!("{family} {} {variant}\n", class.name());
    }
    let sum = fnv1a(text.as_bytes());
    text + &format!("sum {sum:016x}\n")
}

fn from_text(
    text: &str,
    key: &str,
    find: impl Fn(&str, &str, &str) -> Option<Winner>,
) -> Option<Vec<Winner>> {
    let (body, sum) = text.strip_suffix('\n')?.rsplit_once("sum ")?;
    if sum != format!("{:016x}", fnv1a(body.as_bytes())) {
        return None;
    }
    let rest = body.strip_prefix("for ")?.strip_prefix(key)?.strip_prefix('\n')?;
    let winner = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        [family, class, variant] => find(family, class, variant),
        _ => None,
    };
    rest.lines().map(winner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::catalog::find_winner;

    #[test]
    fn a_file_of_winners_is_taken_only_whole_and_for_its_own_device() {
        let winners: Vec<Winner> = [("matmul", "large", "buffer-tile-64"), ("map", "small", "buffer-64x8")]
            .into_iter()
            .filter_map(|(family, class, variant)| find_winner(family, class, variant))
            .collect();
        assert_eq!(winners.len(), 2);
        let text = to_text("a|b", &winners);
        assert_eq!(from_text(&text, "a|b", find_winner), Some(winners.clone()));
        assert_eq!(from_text(&text, "a|c", find_winner), None);
        assert_eq!(from_text(&text, "a", find_winner), None);
        for cut in 0..text.len() {
            assert_eq!(from_text(&text[..cut], "a|b", find_winner), None, "cut at {cut}");
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let flipped = String::from_utf8_lossy(&bytes);
            assert_eq!(from_text(&flipped, "a|b", find_winner), None, "flipped at {at}");
        }
        // A variant that has gone: its file is another version's.
        let gone = to_text("a|b", &winners).replace("buffer-tile-64", "buffer-tile-99");
        assert_eq!(from_text(&gone, "a|b", find_winner), None);
    }
}
