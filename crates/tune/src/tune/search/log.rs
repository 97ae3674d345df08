//! The tuner's log: trials are not repeated.
//!
//! One line of JSON per trial, written when the trial ends. An interrupted search resumes there, and a repeated search is
//! answered at once:
//!
//! ```text
//! {"key":"gather 3f… on sim:h200 …","plan":"unroll:4","status":"ok","time_ns":490000.0,"speedup":2.5,"outputs":"identical"}
//! ```
//!
//! An entry counts only for its key: the hash of the kernel with the facts about its pointers (alignment, length), of the
//! geometry and of all arguments, of the device with its limits, model or driver, and our version. Another kernel, another data
//! size or another driver gives another key. Entries of other keys stay. A model's prediction for a search on a GPU is stored
//! beside it, under a key of its own. Logs of several searches, or of the parts of one, [merge] into one.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ir::{Kernel, print};
use crate::prefetch::Plan;
use crate::report::{Outcome, Trial};
use crate::suggest::quoted;
use crate::tune::bench::Bench;
use crate::tune::hash::hash;
use crate::tune::subject::workload::Workload;

/// The longest log, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// One trial of one search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The subject of the search, its device and settings: see [`key`].
    pub key: String,
    /// The trial.
    #[serde(flatten)]
    pub trial: Trial,
    /// Bytes that device memory moved, where the device tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<f64>,
    /// The device's counters, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<String, f64>,
}

/// A log in a file.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    skipped: Vec<String>,
    inner: Mutex<Inner>,
}

/// The whole lines of a log.
struct Whole {
    entries: Vec<Entry>,
    /// How many bytes they are.
    bytes: u64,
    /// Lines that are no trials: where, and why.
    skipped: Vec<String>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    known: HashMap<(String, String), Entry>,
    /// Why a trial could not be written; the search goes on, and says so at its end.
    failure: Option<Error>,
}

impl Log {
    /// Opens a log, or begins one. A last line that was not finished is cut off: its trial will be made again.
    ///
    /// # Errors
    /// The file cannot be read and written, or is no log.
    pub fn open(path: &Path) -> Result<Log> {
        let refused = |error: std::io::Error| unusable(path, &error);
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(refused(std::io::Error::other("it is not a regular file")));
        }
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .append(true)
            .open(path)
            .map_err(refused)?;
        let Whole {
            entries,
            bytes,
            skipped,
        } = read(path, &mut file)?;
        file.set_len(bytes).map_err(refused)?;
        let known = entries.into_iter().map(|entry| (place(&entry), entry)).collect();
        Ok(Log {
            path: path.to_owned(),
            skipped,
            inner: Mutex::new(Inner {
                file,
                known,
                failure: None,
            }),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lines that were no trials, and why: those are made again.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// The trial of a plan, if it was made.
    pub(crate) fn find(&self, key: &str, plan: &Plan) -> Option<Entry> {
        self.inner()
            .known
            .get(&(key.to_owned(), plan.to_string()))
            .cloned()
    }

    /// How many trials of this key there are.
    #[cfg(test)]
    pub(crate) fn count(&self, key: &str) -> usize {
        self.inner().known.keys().filter(|(own, _)| own == key).count()
    }

    /// Adds a trial. A failure that is our fault is not stored: it is to be tried again.
    pub(crate) fn add(&self, entry: Entry) {
        if matches!(entry.trial.outcome, Outcome::Failed { .. }) {
            return;
        }
        let mut inner = self.inner();
        let written = line(&entry).and_then(|line| {
            // One write a line: a kill leaves at most the last one unfinished.
            inner
                .file
                .write_all(line.as_bytes())
                .map_err(|error| unusable(&self.path, &error))
        });
        if let Err(error) = written {
            inner.failure.get_or_insert(error);
        }
        inner.known.insert(place(&entry), entry);
    }

    /// Whether everything could be written.
    ///
    /// # Errors
    /// The first reason why not.
    pub(crate) fn check(&self) -> Result<()> {
        self.inner().failure.clone().map_or(Ok(()), Err)
    }
}

fn place(entry: &Entry) -> (String, String) {
    (entry.key.clone(), entry.trial.plan.to_string())
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    let said = match (error.kind(), path.parent()) {
        (std::io::ErrorKind::NotFound, Some(folder)) => {
            format!("there is no folder {}", quoted(&folder.to_string_lossy()))
        }
        _ => error.to_string(),
    };
    Error::usage(format!("the log cannot be used: {said}")).at(quoted(&path.to_string_lossy()))
}

fn line(entry: &Entry) -> Result<String> {
    let text = serde_json::to_string(entry);
    let text = text.map_err(|error| Error::bug(format!("a trial does not become JSON: {error}")))?;
    Ok(format!("{text}\n"))
}

/// Reads the whole lines of a log.
fn read(path: &Path, file: &mut File) -> Result<Whole> {
    let refused = |error: std::io::Error| unusable(path, &error);
    let metadata = file.metadata().map_err(refused)?;
    if !metadata.is_file() {
        return Err(refused(std::io::Error::other("it is not a regular file")));
    }
    let length = metadata.len();
    if length > MAX_BYTES {
        return Err(Error::input("the log is too large")
            .at(quoted(&path.to_string_lossy()))
            .accepted("at most 256 MiB"));
    }
    file.seek(SeekFrom::Start(0)).map_err(refused)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(refused)?;
    let whole = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |last| last + 1);
    let mut entries = Vec::new();
    let mut skipped = Vec::new();
    for (number, line) in bytes[..whole].split(|&byte| byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        // One bad line loses that trial only: it is made again.
        match serde_json::from_slice::<Entry>(line) {
            Ok(entry) if is_possible(&entry) => entries.push(entry),
            Ok(_) => skipped.push((number + 1, "a time must be more than 0".to_owned())),
            Err(error) => skipped.push((number + 1, error.to_string())),
        }
    }
    if let (Some((line, why)), true) = (skipped.first(), entries.is_empty()) {
        return Err(Error::input(format!("not a trial of a log: {why}"))
            .at(format!("{}, line {line}", quoted(&path.to_string_lossy())))
            .accepted("a file that `headstart tune --log FILE` writes"));
    }
    // A file without any line break is a log that was killed at its first line, or no log.
    if whole == 0 && !bytes.is_empty() && !bytes.starts_with(b"{\"key\"") {
        return Err(Error::input("not a log")
            .at(quoted(&path.to_string_lossy()))
            .accepted("a file that `headstart tune --log FILE` writes"));
    }
    Ok(Whole {
        entries,
        bytes: whole as u64,
        skipped: skipped
            .iter()
            .map(|(line, why)| format!("line {line}: {why}"))
            .collect(),
    })
}

/// Whether a trial can have happened: nothing takes no time, or no number of it.
fn is_possible(entry: &Entry) -> bool {
    match entry.trial.outcome {
        Outcome::Ok { time_ns, speedup, .. } => {
            time_ns.is_finite() && time_ns > 0.0 && speedup.is_finite() && speedup > 0.0
        }
        Outcome::Dropped { after, at_most } => after.is_finite() && at_most.is_finite() && at_most >= 0.0,
        _ => true,
    }
}

/// The lines of several logs as one: of each key and plan the last one.
///
/// # Errors
/// One of them cannot be read, or is no log.
pub fn merge(paths: &[PathBuf]) -> Result<Merged> {
    let mut position: HashMap<(String, String), usize> = HashMap::new();
    let mut entries: Vec<Entry> = Vec::new();
    for path in paths {
        let refused = |error: std::io::Error| unusable(path, &error);
        // To open a pipe waits for a writer.
        if !std::fs::metadata(path).map_err(refused)?.is_file() {
            return Err(refused(std::io::Error::other("it is not a regular file")));
        }
        let mut file = File::open(path).map_err(refused)?;
        for entry in read(path, &mut file)?.entries {
            match position.get(&place(&entry)) {
                Some(&known) => entries[known] = entry,
                None => {
                    position.insert(place(&entry), entries.len());
                    entries.push(entry);
                }
            }
        }
    }
    let trials = entries.len();
    let mut keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    Ok(Merged {
        searches: keys.len(),
        trials,
        text: entries.iter().map(line).collect::<Result<String>>()?,
    })
}

/// Logs that were merged.
#[derive(Clone, Debug)]
pub struct Merged {
    /// How many keys there are.
    pub searches: usize,
    /// How many trials.
    pub trials: usize,
    /// The log's text.
    pub text: String,
}

/// The key that decides whether a trial counts: kernel, geometry, parameters, device, version. It is readable, and two of them
/// differ if anything differs that could change which plan is best.
pub(crate) fn key(bench: &dyn Bench, workload: &Workload, plain: &Kernel) -> String {
    format!(
        "{} {} with {} as {:?} x {:?} on {} {}, headstart {}",
        plain.name,
        hash(&print(plain)),
        hash(&format_args!("{:?}", workload.given)),
        workload.groups,
        workload.group,
        bench.device().description().name,
        hash(&bench.platform().identity()),
        env!("CARGO_PKG_VERSION")
    )
}

/// A part of a search: part `index` of `count`, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl std::str::FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Shard> {
        let numbers = text.split_once('/').and_then(|(index, count)| {
            let (index, count) = (index.parse().ok()?, count.parse().ok()?);
            (1 <= index && index <= count).then_some(Shard { index, count })
        });
        numbers.ok_or_else(|| {
            Error::usage(format!("{} is not a part of a search", quoted(text)))
                .accepted("`I/N` with I from 1 to N, such as `2/8`")
        })
    }
}

impl Shard {
    /// Those of the items that are this part's: every N-th, so that neighbours, which take alike long, are spread.
    pub fn of<T>(self, items: Vec<T>) -> Vec<T> {
        let own = |(position, _): &(usize, T)| position % self.count == self.index - 1;
        items
            .into_iter()
            .enumerate()
            .filter(own)
            .map(|(_, item)| item)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Outputs;

    fn entry(key: &str, plan: &str, time_ns: f64) -> Entry {
        Entry {
            key: key.to_owned(),
            trial: Trial {
                takes: None,
                between: None,
                plan: plan.parse().expect("a plan"),
                outcome: Outcome::Ok {
                    time_ns,
                    speedup: 1000.0 / time_ns,
                    outputs: Outputs::Identical,
                },
            },
            memory_bytes: Some(64.0),
            counted: BTreeMap::new(),
        }
    }

    #[test]
    fn a_killed_search_loses_at_most_its_last_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.jsonl");
        let log = Log::open(&path).expect("a new log");
        log.add(entry("k", "unroll:4", 500.0));
        log.add(entry("k", "unroll:8", 250.0));
        log.check().expect("written");
        drop(log);
        let text = std::fs::read_to_string(&path).expect("there");
        let plan = |text: &str| text.parse::<Plan>().expect("a plan");
        // Wherever in the last line it was killed.
        let second = text.find('\n').expect("two lines") + 1;
        for end in second..text.len() {
            std::fs::write(&path, &text[..end]).expect("written");
            let log = Log::open(&path).expect("still a log");
            assert!(log.find("k", &plan("unroll:4")).is_some());
            assert!(log.find("k", &plan("unroll:8")).is_none(), "{end}");
            log.add(entry("k", "unroll:8", 250.0));
            drop(log);
            assert_eq!(std::fs::read_to_string(&path).expect("there"), text);
        }
    }

    #[test]
    fn another_key_gets_no_answer() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = Log::open(&folder.path().join("log.jsonl")).expect("a new log");
        log.add(entry("k", "unroll:4", 500.0));
        assert_eq!(log.find("l", &"unroll:4".parse().expect("a plan")), None);
        assert_eq!((log.count("k"), log.count("l")), (1, 0));
    }

    #[test]
    fn what_is_no_log_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notes.txt");
        for text in [
            "my notes",
            "my notes\n",
            "{\"key\":1}\n",
            "{\"key\":\"k\",\"plan\":\"unroll:4\"}\n",
        ] {
            std::fs::write(&path, text).expect("written");
            let error = Log::open(&path).expect_err("refused").to_string();
            assert!(error.contains("notes.txt") && !error.contains('\n'), "{error}");
            assert_eq!(std::fs::read_to_string(&path).expect("there"), text);
        }
    }

    #[test]
    fn a_bad_line_loses_that_line_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.jsonl");
        let log = Log::open(&path).expect("a new log");
        log.add(entry("k", "unroll:4", 500.0));
        log.add(entry("k", "unroll:8", 250.0));
        drop(log);
        let text = std::fs::read_to_string(&path).expect("there");
        let no_time = text.replace("250.0", "0.0");
        std::fs::write(
            &path,
            format!("{no_time}no trial\n{}", text.replace("unroll", "x")),
        )
        .expect("written");
        let log = Log::open(&path).expect("still a log");
        let plan = |text: &str| text.parse::<Plan>().expect("a plan");
        assert!(log.find("k", &plan("unroll:4")).is_some());
        assert!(log.find("k", &plan("unroll:8")).is_none());
        let lines: Vec<&str> = log.skipped().iter().map(|line| &line[..7]).collect();
        assert_eq!(lines, ["line 2:", "line 3:", "line 4:", "line 5:"]);
        assert_eq!(merge(&[path]).expect("a log").trials, 1);
    }

    #[test]
    fn parts_merge_into_the_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        for (path, entries) in paths.iter().zip([
            vec![entry("k", "unroll:4", 500.0), entry("l", "none", 1.0)],
            vec![entry("k", "unroll:8", 250.0), entry("k", "unroll:4", 400.0)],
        ]) {
            let log = Log::open(path).expect("a new log");
            entries.into_iter().for_each(|entry| log.add(entry));
        }
        let merged = merge(&paths).expect("logs");
        assert_eq!((merged.searches, merged.trials), (2, 3));
        assert!(merged.text.contains("400.0") && !merged.text.contains("500.0"));
        assert!(merge(&[folder.path().join("none")]).is_err());
    }

    #[test]
    fn shards_share_all_plans_out() {
        let plans = || -> Vec<Plan> {
            (2..12)
                .map(|group| format!("unroll:{group}").parse().expect("a plan"))
                .collect()
        };
        let mut all: Vec<String> = Vec::new();
        for index in 1..=3 {
            let shard: Shard = format!("{index}/3").parse().expect("a shard");
            all.extend(shard.of(plans()).iter().map(Plan::to_string));
        }
        let mut expected: Vec<String> = plans().iter().map(Plan::to_string).collect();
        all.sort();
        expected.sort();
        assert_eq!(all, expected);
        for text in ["0/3", "4/3", "1", "1/0", "a/b", "", "-1/2"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
