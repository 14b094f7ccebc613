//! Files about a device that are kept between runs: measured peaks, calibrations, and what tuning has found.

use std::path::{Path, PathBuf};

use crate::disk::{self, fnv1a, verify_checksum, with_checksum};
use crate::kernels::variant::Winner;
use crate::runtime::config::CacheDir;
use crate::vk::physical::DeviceInfo;

/// Names the device, its driver and this crate's version: what another of these has measured is not true here.
fn key(info: &DeviceInfo) -> String {
    let cores = match info.workarounds.runs_on_host_cores {
        true => std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        false => 0,
    };
    format!("{}|{cores}|{}", info.cache_key, env!("CARGO_PKG_VERSION"))
}

/// The file of this name for a device.
pub(crate) fn file(info: &DeviceInfo, folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}-{:016x}.txt", fnv1a(key(info).as_bytes())))
}

/// A text that is kept by this name for a device; `None` if there is none, or not as it was written.
pub(crate) fn read(info: &DeviceInfo, folder: Option<&Path>, name: &str) -> Option<String> {
    let text = disk::read_text(&file(info, folder?, name))?;
    verify_checksum(&text, &key(info)).map(str::to_owned)
}

/// Keeps a text by this name, or nothing where nothing is kept on disk.
pub(crate) fn write(info: &DeviceInfo, folder: Option<&Path>, name: &str, text: &str) {
    if let Some(folder) = folder {
        disk::write(&file(info, folder, name), with_checksum(&key(info), text).as_bytes());
    }
}

/// The file of this name on a machine without a device, in the platform's own cache folder.
fn file_without_device(name: &str) -> Option<PathBuf> {
    Some(CacheDir::Platform.path()?.join(format!("{name}.txt")))
}

/// As [`read`], on a machine without a device.
pub(crate) fn read_without_device(name: &str) -> Option<String> {
    let text = disk::read_text(&file_without_device(name)?)?;
    verify_checksum(&text, env!("CARGO_PKG_VERSION")).map(str::to_owned)
}

/// As [`write`], on a machine without a device.
pub(crate) fn write_without_device(name: &str, text: &str) {
    if let Some(file) = file_without_device(name) {
        let _ = file.parent().map(disk::open_folder);
        disk::write(&file, with_checksum(env!("CARGO_PKG_VERSION"), text).as_bytes());
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
    let text = disk::read_text(&tuning_file(info, folder))?;
    from_text(&text, &key(info), find)
}

/// Writes what was found; a disk that refuses costs the next start its speed and nothing else.
pub(crate) fn save_tuning(info: &DeviceInfo, folder: &Path, winners: &[Winner]) {
    disk::write(&tuning_file(info, folder), to_text(&key(info), winners).as_bytes());
}

fn to_text(key: &str, winners: &[Winner]) -> String {
    let mut text = String::new();
    for Winner { family, class, variant } in winners {
        text += &format!("{family} {} {variant}\n", class.name());
    }
    with_checksum(key, &text)
}

fn from_text(
    text: &str,
    key: &str,
    find: impl Fn(&str, &str, &str) -> Option<Winner>,
) -> Option<Vec<Winner>> {
    let winner = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        [family, class, variant] => find(family, class, variant),
        _ => None,
    };
    verify_checksum(text, key)?.lines().map(winner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::families::find_winner;
    use crate::vk::physical::DeviceKind;

    #[test]
    fn files_are_of_one_device_driver_and_version() {
        let info = DeviceInfo::example(DeviceKind::Discrete);
        let key = key(&info);
        for part in [info.name.as_str(), info.driver.as_str(), env!("CARGO_PKG_VERSION")] {
            assert!(key.contains(part), "{part} in {key}");
        }
        let mut other = info.clone();
        other.cache_key = other.cache_key.replace("driver 1.2", "driver 1.3");
        let folder = Path::new("folder");
        assert_ne!(tuning_file(&info, folder), tuning_file(&other, folder));
        // On a software driver the number of cores counts.
        let software =
            DeviceInfo { workarounds: DeviceInfo::example(DeviceKind::Cpu).workarounds, ..info.clone() };
        assert_ne!(super::key(&software), key);
        assert_eq!(tuning_file(&info, folder), tuning_file(&info.clone(), folder));
    }

    #[test]
    fn a_file_of_winners_is_taken_only_whole_and_for_its_own_device() {
        let winners: Vec<Winner> =
            [("matmul", "large", "buffer-tile-64"), ("elementwise", "small", "buffer-64x8")]
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
