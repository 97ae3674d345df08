//! The preloaded library's record of a process: its kernels, how often each was launched, and how long it took.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::error::{Error, Result};
use crate::files;
use crate::suggest::quoted;

/// Bytes of a kernel's counts in the file.
const SIZE: usize = 1024;
/// Where the counts of refusals begin.
const REFUSALS: usize = 528;
/// Classes of launches by their time, an octave each.
const CLASSES: usize = 24;
/// The longest file of lines.
const MOST_BYTES: u64 = 256 << 20;

/// A process of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Its number.
    pub number: u32,
    /// The command line.
    pub command: String,
    /// The driver's version; 0 if it is not known.
    pub driver: i64,
    /// The first device's compute capability, 90 for 9.0; nothing if no image was loaded.
    pub capability: Option<u32>,
    /// Whether it ended in good order; otherwise it was killed, or is running still.
    pub has_ended: bool,
    /// The images that it loaded, by hash.
    pub images: HashSet<String>,
    /// The texts that machine code was linked from, by the hashes of both.
    pub linked: HashMap<String, Vec<String>>,
    /// The kernels that it asked for.
    pub kernels: Vec<Seen>,
    /// Folders of launches that were captured, and the hash of the kind of each.
    pub captured: Vec<(String, String)>,
    /// Folders of launches that were chosen and not captured, and why.
    pub skipped: Vec<(String, String)>,
    /// The better kernels that were put in place.
    pub better: Vec<Better>,
    /// What the first launch had that a better kernel's fact refused, by the better kernel's file and the number of the fact.
    pub refused: HashMap<(String, usize), String>,
    /// Further errors.
    pub troubles: Vec<String>,
}

/// A better kernel that was put in place in a process.
#[derive(Clone, Debug, PartialEq)]
pub struct Better {
    /// The file of its module.
    pub file: String,
    /// The counts of its launches.
    pub counts: Counts,
    /// How many launches each of its facts refused, by its number; the last is for what is no fact.
    pub refusals: Vec<u64>,
}

/// A kernel that a process asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Its name in its image.
    pub name: String,
    /// The image's hash; nothing if that is not known.
    pub image: Option<String>,
    /// The kind of its launches that the counts are of: its hash, and its parameters in words; nothing if they are of all that have
    /// no kind of their own.
    pub kind: Option<(String, String)>,
    /// The counts.
    pub counts: Counts,
}

/// The counts of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Launches.
    pub launches: u64,
    /// Launches whose time is known.
    pub timed: u64,
    /// Their times, in nanoseconds.
    pub total_ns: u64,
    /// The longest of them, in nanoseconds.
    pub longest_ns: u64,
    /// Which launch of the kind that was, from 0.
    pub(crate) longest: u64,
    /// Its work-groups, or those of the first launch.
    pub groups: [u32; 3],
    /// Its work-items of a work-group.
    pub group: [u32; 3],
    /// Its dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// Launches into stream captures, and nodes of graphs.
    pub in_graphs: u32,
    /// Launches that took the kernel put in place.
    pub replaced: u64,
    /// Launches that did not meet the kernel's assumptions.
    pub refused: u64,
    /// Timed launches of it, and their times in nanoseconds.
    pub replaced_timed: (u64, u64),
    /// Timed launches of the original beside them, and their times in nanoseconds.
    pub original_timed: (u64, u64),
    /// Whether the original was taken again, since it was faster.
    pub is_switched_back: bool,
    /// Launches that took the original for comparison.
    pub compared: u64,
    /// Launches after the original was taken for good.
    pub left: u64,
    /// Launches whose time is known, by that: an octave of times each.
    pub(crate) classes: [Class; CLASSES],
}

/// Launches that take about as long: no launch of a class takes twice as long as another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Their times, in nanoseconds.
    pub(crate) total_ns: u64,
    /// Which launch of the kind was the first of them, from 0.
    pub launch: u64,
}

impl Counts {
    /// Time of all launches, from those whose time is known, in nanoseconds.
    pub fn estimated_ns(&self) -> f64 {
        match self.timed {
            0 => 0.0,
            timed => self.total_ns as f64 * (self.launches.max(timed) as f64 / timed as f64),
        }
    }

    /// The launch that says most of the kernel, and the share of its time that launches of about that length take.
    ///
    /// Half of the time is in launches that take at least as long, half in those that take at most as long: so a better
    /// kernel's gain for it is a gain where the time is. The longest launch may be an outlier.
    pub fn typical(&self) -> (u64, f64) {
        let total: u64 = self.classes.iter().map(|class| class.total_ns).sum();
        let mut before = 0;
        for class in &self.classes {
            before += class.total_ns;
            if class.total_ns > 0 && 2 * before >= total {
                return (class.launch, class.total_ns as f64 / total as f64);
            }
        }
        (self.longest, 1.0)
    }

    /// Counts the same kernel's launches of another process, too. Which launch is which is said of one of them.
    pub fn add(&mut self, other: &Counts) {
        let is_longer = other.longest_ns > self.longest_ns || self.launches == 0;
        let (longest, rest) = match is_longer {
            true => (*other, *self),
            false => (*self, *other),
        };
        *self = longest;
        self.launches += rest.launches;
        self.timed += rest.timed;
        self.total_ns += rest.total_ns;
        self.in_graphs += rest.in_graphs;
        self.replaced += rest.replaced;
        self.refused += rest.refused;
        self.compared += rest.compared;
        self.left += rest.left;
        self.is_switched_back |= rest.is_switched_back;
        for (own, more) in [
            (&mut self.replaced_timed, rest.replaced_timed),
            (&mut self.original_timed, rest.original_timed),
        ] {
            *own = (own.0 + more.0, own.1 + more.1);
        }
        for (own, class) in self.classes.iter_mut().zip(rest.classes) {
            own.launch = match class.total_ns > own.total_ns {
                true => class.launch,
                false => own.launch,
            };
            own.total_ns += class.total_ns;
        }
    }
}

impl Process {
    /// All processes that a folder has files of, by number.
    ///
    /// # Errors
    /// The folder or one of the files cannot be read.
    pub fn all_in(folder: &Path) -> Result<Vec<Process>> {
        let place = quoted(&folder.to_string_lossy());
        let unreadable =
            |error: std::io::Error| Error::usage(format!("the capture cannot be read: {error}")).at(&place);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            let name = name.to_string_lossy();
            let number = name
                .strip_prefix("process-")
                .and_then(|rest| rest.strip_suffix(".txt"));
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                found.push(Process::read(folder, number)?);
            }
        }
        found.sort_by_key(|process| process.number);
        Ok(found)
    }

    fn read(folder: &Path, number: u32) -> Result<Process> {
        let path = folder.join(format!("process-{number}.txt"));
        let place = quoted(&path.to_string_lossy());
        let text = files::text(&path, MOST_BYTES).map_err(|error| {
            Error::input(format!("the file of a process cannot be read: {error}")).at(&place)
        })?;
        let counts = std::fs::read(folder.join(format!("process-{number}.counts"))).unwrap_or_default();
        Process::parse(number, &text, &counts).map_err(|error| error.at(&place))
    }

    fn parse(number: u32, text: &str, counts: &[u8]) -> Result<Process> {
        let mut lines = text.lines();
        if lines.next() != Some("headstart 1") {
            return Err(Error::input("no file of a process").accepted("one that begins with `headstart 1`"));
        }
        let mut process = Process {
            number,
            command: String::new(),
            driver: 0,
            capability: None,
            has_ended: false,
            images: HashSet::new(),
            linked: HashMap::new(),
            kernels: Vec::new(),
            captured: Vec::new(),
            skipped: Vec::new(),
            better: Vec::new(),
            refused: HashMap::new(),
            troubles: Vec::new(),
        };
        for line in lines {
            let words: Vec<&str> = line.split('\t').collect();
            match words[..] {
                ["command", command] => command.clone_into(&mut process.command),
                ["driver", version] => process.driver = version.parse().unwrap_or(0),
                ["capability", number] => process.capability = number.parse().ok(),
                ["image", hash, _] => {
                    process.images.insert(hash.to_owned());
                }
                ["function", slot, image, name] | ["kind", slot, image, name, _, _] => {
                    let slot: usize = slot.parse().unwrap_or(usize::MAX);
                    process.kernels.push(Seen {
                        name: name.to_owned(),
                        image: (image != "-").then(|| image.to_owned()),
                        kind: words[4..]
                            .first_chunk()
                            .map(|&[hash, like]| (hash.to_owned(), like.to_owned())),
                        counts: counts_at(counts, slot),
                    });
                }
                ["linked", code, ref texts @ ..] => {
                    let texts = texts.iter().map(|&text| text.to_owned()).collect();
                    process.linked.insert(code.to_owned(), texts);
                }
                ["captured", name, kind] => {
                    process.captured.push((name.to_owned(), kind.to_owned()));
                }
                ["better", slot, _, _, file] => {
                    let slot: usize = slot.parse().unwrap_or(usize::MAX);
                    process.better.push(Better {
                        file: file.to_owned(),
                        counts: counts_at(counts, slot),
                        refusals: refusals_at(counts, slot),
                    });
                }
                ["refused", file, number, found] => {
                    let key = (file.to_owned(), number.parse().unwrap_or(usize::MAX));
                    process.refused.insert(key, found.to_owned());
                }
                ["skipped", name, why] => process.skipped.push((name.to_owned(), why.to_owned())),
                ["trouble", ref what @ ..] => process.troubles.push(what.join(": ")),
                ["end"] => process.has_ended = true,
                // A line that was cut off, or of a later version.
                _ => {}
            }
        }
        Ok(process)
    }
}

/// The number in these little-endian bytes.
fn number(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0u64, |number, &byte| number << 8 | u64::from(byte))
}

/// The bytes of a count.
fn bytes_at(file: &[u8], slot: usize) -> Option<&[u8]> {
    let start = slot.saturating_mul(SIZE);
    file.get(start..start.saturating_add(SIZE))
}

fn refusals_at(file: &[u8], slot: usize) -> Vec<u64> {
    let own = bytes_at(file, slot).unwrap_or_default();
    own.get(REFUSALS..)
        .unwrap_or_default()
        .chunks(8)
        .map(number)
        .collect()
}

fn counts_at(file: &[u8], slot: usize) -> Counts {
    let Some(own) = bytes_at(file, slot) else {
        return Counts::default();
    };
    let number = |at: usize, bytes: usize| number(&own[at..at + bytes]);
    let long = |at: usize| number(at, 8);
    let short = |at: usize| number(at, 4) as u32;
    Counts {
        launches: long(0),
        timed: long(8),
        total_ns: long(16),
        longest_ns: long(24),
        longest: long(32),
        groups: [short(40), short(44), short(48)],
        group: [short(52), short(56), short(60)],
        shared_bytes: short(64),
        in_graphs: short(68),
        replaced: long(72),
        refused: long(80),
        replaced_timed: (long(88), long(96)),
        original_timed: (long(104), long(112)),
        is_switched_back: long(120) != 0,
        classes: std::array::from_fn(|number| Class {
            total_ns: long(128 + 16 * number),
            launch: long(136 + 16 * number),
        }),
        compared: long(512),
        left: long(520),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(classes: &[(usize, u64, u64)]) -> Counts {
        let mut counts = Counts {
            launches: 9,
            longest: 8,
            ..Counts::default()
        };
        for &(number, total_ns, launch) in classes {
            counts.classes[number] = Class { total_ns, launch };
        }
        counts
    }

    #[test]
    fn the_typical_launch_is_where_the_time_is() {
        assert_eq!(Counts::default().typical(), (0, 1.0));
        assert_eq!(counts(&[]).typical(), (8, 1.0), "no time is known");
        assert_eq!(counts(&[(4, 100, 0)]).typical(), (0, 1.0));
        // One long launch beside many short ones; and a long one that is most of it.
        assert_eq!(counts(&[(3, 600, 1), (9, 400, 5)]).typical(), (1, 0.6));
        assert_eq!(counts(&[(3, 300, 1), (9, 700, 5)]).typical(), (5, 0.7));
        assert_eq!(
            counts(&[(2, 300, 1), (3, 300, 2), (9, 400, 5)]).typical(),
            (2, 0.3)
        );
        // Over two processes; the second one's launch of the class is where more of it is.
        let mut both = counts(&[(3, 300, 1), (9, 400, 5)]);
        both.add(&counts(&[(3, 310, 7)]));
        assert_eq!((both.launches, both.typical()), (18, (7, 610.0 / 1010.0)));
    }

    #[test]
    fn a_process_that_was_cut_off_has_what_it_counted() {
        let text = "headstart 1\ncommand\t./program 3\ndriver\t13000\nimage\tab\t10\nfunction\t1\tab\tone\n\
                    function\t0\t-\ttwo\nkind\t0\tab\tone\tfe\ta 2^9\nlinked\tcd\tab\tef\nskipped\tone\tbusy\nbetter\t1\tab\tone\tone.ptx\n\
                    refused\tone.ptx\t2\tseven\nfuncti";
        let mut counts = vec![0u8; 2 * SIZE];
        counts[SIZE] = 7;
        counts[SIZE + 40] = 3;
        counts[SIZE + 128 + 16 * 23] = 5;
        counts[SIZE + 136 + 16 * 23] = 6;
        counts[2 * SIZE - 8] = 9;
        counts[SIZE + REFUSALS + 16] = 4;
        let process = Process::parse(12, text, &counts).expect("a process");
        assert!(!process.has_ended && process.driver == 13000 && process.command == "./program 3");
        assert_eq!(process.kernels[0].counts.launches, 7);
        assert_eq!(process.kernels[0].counts.groups, [3, 0, 0]);
        assert_eq!(process.kernels[0].counts.typical(), (6, 1.0));
        assert_eq!(process.kernels[1].image, None);
        assert_eq!(process.kernels[1].kind, None);
        assert_eq!(
            process.kernels[2].kind,
            Some(("fe".to_owned(), "a 2^9".to_owned()))
        );
        let better = &process.better[0];
        assert_eq!((better.file.as_str(), better.counts.launches), ("one.ptx", 7));
        assert_eq!((better.refusals[2], better.refusals.last()), (4, Some(&9)));
        assert_eq!(process.refused[&("one.ptx".to_owned(), 2)], "seven");
        assert_eq!(process.linked["cd"], ["ab", "ef"]);
        assert_eq!(process.skipped, [("one".to_owned(), "busy".to_owned())]);
        assert!(
            Process::parse(12, &format!("{text}on\nend\n"), &[])
                .expect("a process")
                .has_ended
        );
        assert!(Process::parse(1, "something", &[]).is_err());
    }
}
