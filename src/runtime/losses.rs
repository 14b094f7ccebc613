//! What was in flight when devices were lost, for the life of the process: what is there at two losses is named as the
//! cause.

use parking_lot::Mutex;

/// The most losses that are remembered.
const MOST: usize = 16;

/// A device, by the name of its cache files, and the labels in flight.
type Loss = (String, Vec<String>);

static LOSSES: Mutex<Vec<Loss>> = Mutex::new(Vec::new());

/// Remembers a loss. Gives the labels that were in flight at an earlier loss of the same device, too, each once.
pub(crate) fn note(device: &str, in_flight: &[String]) -> Vec<String> {
    note_in(&mut LOSSES.lock(), device, in_flight)
}

fn note_in(losses: &mut Vec<Loss>, device: &str, in_flight: &[String]) -> Vec<String> {
    let mut again: Vec<String> = Vec::new();
    for label in in_flight {
        let before = losses.iter().any(|(other, labels)| other == device && labels.contains(label));
        if before && !again.contains(label) {
            again.push(label.clone());
        }
    }
    if losses.len() == MOST {
        losses.remove(0);
    }
    losses.push((device.to_owned(), in_flight.to_vec()));
    again
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_twice_is_named() {
        let mut losses = Vec::new();
        let mut lose = |device: &str, labels: &[&str]| {
            let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
            note_in(&mut losses, device, &labels)
        };
        assert_eq!(lose("card", &["add", "spin", "spin"]), [""; 0], "twice at once is once");
        assert_eq!(lose("another", &["spin"]), [""; 0], "of another device");
        assert_eq!(lose("card", &["mul", "spin", "spin"]), ["spin"]);
        assert_eq!(lose("card", &["mul", "add"]), ["mul", "add"]);
        for _ in 0..MOST {
            lose("card", &[]);
        }
        assert_eq!(lose("card", &["spin"]), [""; 0], "long ago");
    }
}
