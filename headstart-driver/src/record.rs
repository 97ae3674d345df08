//! The records of a process: a file of lines, and a file of counts.
//!
//! ```text
//! process-PID.txt      headstart 1, then a line for each image, function, kind of launches and trouble; at last `end`
//! process-PID.counts   an array of Counts, mapped: what was counted is there even if the program is killed
//! images/HASH          every image that was loaded
//! ```
//!
//! A process that was cut off has no `end`. A child after a fork begins files of its own.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::images::ImageHash;
use crate::lock::Lock;
use crate::settings;

/// Kernels and kinds of launches with counts of their own; further ones share the last count.
const MOST_FUNCTIONS: usize = 4096;

/// Classes of launches by their time, an octave each.
pub const CLASSES: usize = 24;
/// Launches of the first class take less nanoseconds than 2 to this power; each class after it twice as many.
const FIRST_CLASS: u32 = 10;

/// Launches that take about as long.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Class {
    /// Their times, in nanoseconds.
    pub total_ns: AtomicU64,
    /// Which launch of the kind was the first of them, from 0.
    pub launch: AtomicU64,
}

/// The class of a launch that takes so long.
pub fn class_of(ns: u64) -> usize {
    let octave = (ns.max(1).ilog2() + 1).saturating_sub(FIRST_CLASS);
    (octave as usize).min(CLASSES - 1)
}

/// A kernel's counts, as in the file.
#[repr(C)]
#[derive(Debug)]
pub struct Counts {
    /// Launches.
    pub launches: AtomicU64,
    /// Launches whose time is known.
    pub timed: AtomicU64,
    /// Their times, in nanoseconds.
    pub total_ns: AtomicU64,
    /// The longest of them, in nanoseconds.
    pub longest_ns: AtomicU64,
    /// Which launch of the kind that was, from 0.
    pub longest: AtomicU64,
    /// Its geometry.
    pub grid: [AtomicU32; 3],
    /// Its work-group.
    pub block: [AtomicU32; 3],
    /// Its dynamic shared memory, in bytes.
    pub shared_bytes: AtomicU32,
    /// Launches into a stream capture, and nodes of graphs: how often these run is not known.
    pub in_graphs: AtomicU32,
    /// Launches that took the kernel put in place.
    pub replaced: AtomicU64,
    /// Launches that met a fact's opposite and took the original.
    pub refused: AtomicU64,
    /// Timed launches of the kernel put in place, and their time in nanoseconds.
    pub replaced_timed: AtomicU64,
    /// See `replaced_timed`.
    pub replaced_ns: AtomicU64,
    /// Timed launches of the original beside those, and their time in nanoseconds.
    pub original_timed: AtomicU64,
    /// See `original_timed`.
    pub original_ns: AtomicU64,
    /// 1 once it was switched back.
    pub switched_back: AtomicU64,
    /// Launches whose time is known, by that.
    pub classes: [Class; CLASSES],
    /// Launches that took the original for comparison.
    pub compared: AtomicU64,
    /// Launches after the original was taken for good.
    pub left: AtomicU64,
    /// Launches that a fact refused, by its number; further facts share the last but one, and the last is for all else.
    pub refusals: [AtomicU64; REFUSALS],
}

/// Numbers of refusals.
pub const REFUSALS: usize = 62;

// Readers of the file count on it.
const _: () = assert!(size_of::<Counts>() == 1024);

/// Where it is counted if there is no file.
static NOWHERE: Counts = Counts::new();

impl Counts {
    /// Nothing was counted.
    pub const fn new() -> Counts {
        Counts {
            launches: AtomicU64::new(0),
            timed: AtomicU64::new(0),
            total_ns: AtomicU64::new(0),
            longest_ns: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            grid: [const { AtomicU32::new(0) }; 3],
            block: [const { AtomicU32::new(0) }; 3],
            shared_bytes: AtomicU32::new(0),
            in_graphs: AtomicU32::new(0),
            replaced: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            replaced_timed: AtomicU64::new(0),
            replaced_ns: AtomicU64::new(0),
            original_timed: AtomicU64::new(0),
            original_ns: AtomicU64::new(0),
            switched_back: AtomicU64::new(0),
            classes: [const {
                Class {
                    total_ns: AtomicU64::new(0),
                    launch: AtomicU64::new(0),
                }
            }; CLASSES],
            compared: AtomicU64::new(0),
            left: AtomicU64::new(0),
            refusals: [const { AtomicU64::new(0) }; REFUSALS],
        }
    }
}

impl Default for Counts {
    fn default() -> Counts {
        Counts::new()
    }
}

struct Process {
    lines: File,
    counts: *const Counts,
}

// SAFETY: the counts are atomics in memory that stays mapped.
unsafe impl Send for Process {}

static PROCESS: Lock<Option<Process>> = Lock::new(None);
static FUNCTIONS: AtomicUsize = AtomicUsize::new(0);

/// Holds the lock for the time of a fork.
pub fn hold() {
    PROCESS.hold();
}

/// Ends [`hold`].
pub fn release() {
    PROCESS.release();
}

/// Whether lines can be written, or their writer has ended.
pub fn comes_free() -> bool {
    PROCESS.comes_free()
}

/// A child after a fork has no files yet. What it inherits of CUDA does not work there.
pub fn forget() {
    // The parent's file is the parent's: it is not written here.
    if let Some(process) = PROCESS.take().take() {
        std::mem::forget(process);
    }
}

/// Opens the files of this process.
fn open() -> Option<Process> {
    let folder = &settings::get().folder;
    if folder.as_os_str().is_empty() {
        return None;
    }
    fs::create_dir_all(folder.join("images")).ok()?;
    let name = format!("process-{}", std::process::id());
    let counts = counts(&folder.join(format!("{name}.counts")))?;
    let mut lines = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join(format!("{name}.txt")))
        .ok()?;
    lines
        .write_all(format!("headstart 1\ncommand\t{}\n", command()).as_bytes())
        .ok()?;
    Some(Process { lines, counts })
}

/// The counts of this process, in a file.
fn counts(path: &Path) -> Option<*const Counts> {
    let bytes = MOST_FUNCTIONS * size_of::<Counts>();
    let file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(path)
        .ok()?;
    // Where the disk is full, a page without a place on it would end the program when it is written.
    // SAFETY: a file that is open for writing.
    if unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) } != 0 {
        let _ = fs::remove_file(path);
        return None;
    }
    // SAFETY: a new mapping of a file of this length, which stays.
    let counts = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    (counts != libc::MAP_FAILED).then(|| counts.cast::<Counts>().cast_const())
}

/// The command of this process, on one line.
fn command() -> String {
    let bytes = fs::read("/proc/self/cmdline").unwrap_or_default();
    let words: Vec<String> = bytes
        .split(|&byte| byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).replace(['\n', '\t'], " "))
        .collect();
    words.join(" ")
}

/// Does something with this process's files, which are opened first.
fn with<T>(use_them: impl FnOnce(&mut Process) -> T) -> Option<T> {
    let mut process = PROCESS.take();
    if process.is_none() {
        *process = open();
        if process.is_none() {
            // Nowhere to write: the program must not notice.
            drop(process);
            settings::turn_off();
            return None;
        }
    }
    process.as_mut().map(use_them)
}

/// A line, without characters that would end it.
pub fn line(words: &[&str]) {
    let text: Vec<String> = words.iter().map(|word| word.replace(['\n', '\t'], " ")).collect();
    with(|process| {
        let _ = process
            .lines
            .write_all(format!("{}\n", text.join("\t")).as_bytes());
    });
}

/// A new kernel; where it is counted.
pub fn function(image: Option<ImageHash>, name: &str) -> &'static Counts {
    counted(image, &["function"], &[name])
}

/// A new kind of a kernel's launches, in words; where they are counted.
pub fn kind(image: Option<ImageHash>, name: &str, hash: u64, like: &str) -> &'static Counts {
    counted(image, &["kind"], &[name, &format!("{hash:016x}"), like])
}

/// A better kernel of a kernel, by its file; where its launches are counted.
pub fn better(image: Option<ImageHash>, name: &str, file: &str) -> &'static Counts {
    counted(image, &["better"], &[name, file])
}

/// Whether further counts are for further kernels alone.
pub fn is_nearly_full() -> bool {
    FUNCTIONS.load(Ordering::Relaxed) >= MOST_FUNCTIONS / 4 * 3
}

fn counted(image: Option<ImageHash>, what: &[&str], names: &[&str]) -> &'static Counts {
    let number = FUNCTIONS.fetch_add(1, Ordering::Relaxed).min(MOST_FUNCTIONS - 1);
    let image = image.map_or("-".to_owned(), |image| image.to_string());
    line(&[what, &[&number.to_string(), &image], names].concat());
    // SAFETY: the mapping has this many counts, and stays; zeros are valid counts.
    with(|process| unsafe { &*process.counts.add(number) }).unwrap_or(&NOWHERE)
}

/// A new image: kept once for all processes.
pub fn image(hash: ImageHash, bytes: &[u8]) {
    let path = settings::get().folder.join("images").join(hash.to_string());
    if with(|_| ()).is_none() {
        return;
    }
    if !path.exists() && write_whole(&path, bytes).is_err() {
        line(&["trouble", "an image could not be written", &hash.to_string()]);
        return;
    }
    line(&["image", &hash.to_string(), &bytes.len().to_string()]);
}

/// Writes a file whole or not at all.
///
/// # Errors
/// The system's.
pub fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let partial = beside(path);
    let written = fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written
}

/// A name beside a file, for as long as it is not whole.
pub fn beside(path: &Path) -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{number}.partial", std::process::id()));
    PathBuf::from(name)
}

/// The program ends in good order.
pub fn end() {
    let is_open = PROCESS.take().is_some();
    if is_open {
        line(&["end"]);
    }
}
