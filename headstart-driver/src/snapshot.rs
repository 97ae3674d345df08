//! A chosen launch with the memory that its parameters reach, before and after.
//!
//! A snapshot serialises: it waits until the device is idle, and for the launch. Both waits have a time limit, because a kernel
//! may spin until the host acts. If anything fails, the launch itself is made as the program requested, and the partial
//! snapshot is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::fmt::Write;
use std::fs;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::abi::{CUresult, Handle, NOT_READY, SUCCESS};
use crate::functions::Function;
use crate::launches::Launch;
use crate::lock::Lock;
use crate::memory::{self, Allocation, MemoryKind};
use crate::settings::{self, Mode};
use crate::{addresses, events, kinds, real, record, stored};

/// A launch that is to be captured.
pub struct Chosen {
    image: String,
    name: String,
    which: Which,
    folder: String,
    /// Of the kinds of the kernel's launches this one takes longest.
    is_main: bool,
    variables: Vec<String>,
    is_done: AtomicBool,
}

/// A launch of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// By its number among all of the kernel.
    Launch(u64),
    /// By the hash of its kind, and its number among those: threads may launch in another order each time.
    OfKind(u64, u64),
}

impl Which {
    /// As a line has it: a number, or a hash and a number.
    fn read(word: &str) -> Option<Which> {
        match word.split_once(':') {
            None => word.parse().ok().map(Which::Launch),
            Some((hash, number)) => {
                let hash = u64::from_str_radix(hash, 16).ok()?;
                Some(Which::OfKind(hash, number.parse().ok()?))
            }
        }
    }
}

/// Bytes that the launches of lesser kinds have reached, by image and kernel: they share what one may reach.
static SHARED: Lock<BTreeMap<(String, String), u64>> = Lock::new(BTreeMap::new());

/// Room that is left on the disk.
const SPARE: u64 = 256 << 20;

/// Streams that exist, beside the null streams.
static STREAMS: Lock<BTreeSet<usize>> = Lock::new(BTreeSet::new());
/// One snapshot at a time.
static ONE: Lock<()> = Lock::new(());

/// Holds the locks for the time of a fork.
pub fn hold() {
    ONE.hold();
    STREAMS.hold();
    SHARED.hold();
}

/// Ends [`hold`].
pub fn release() {
    SHARED.release();
    STREAMS.release();
    ONE.release();
}

/// The program has a new stream.
pub fn stream_created(stream: Handle) {
    if settings::mode() != Mode::Capture {
        return;
    }
    STREAMS.take().insert(stream as usize);
}

/// The program gives a stream back.
pub fn stream_destroyed(stream: Handle) {
    STREAMS.take().remove(&(stream as usize));
}

/// The launches of `selection.txt`: a line each, of image, kernel, which launch, folder, `main` or `lesser`, and the module's variables,
/// tabs between.
fn selection() -> &'static [Chosen] {
    static SELECTION: OnceLock<Vec<Chosen>> = OnceLock::new();
    SELECTION.get_or_init(|| {
        let text = fs::read_to_string(settings::get().folder.join("selection.txt")).unwrap_or_default();
        let chosen = |line: &str| {
            let mut words = line.split('\t');
            Some(Chosen {
                image: words.next()?.to_owned(),
                name: words.next()?.to_owned(),
                which: Which::read(words.next()?)?,
                folder: words.next()?.to_owned(),
                is_main: words.next()? == "main",
                variables: words.map(str::to_owned).collect(),
                is_done: AtomicBool::new(false),
            })
        };
        text.lines().filter_map(chosen).collect()
    })
}

/// Whether this launch is to be captured, which has this number among the kernel's.
///
/// # Safety
/// It is one that the driver takes.
pub unsafe fn chosen(function: &'static Function, number: u64, launch: &Launch) -> Option<&'static Chosen> {
    let image = || function.image.map_or("-".to_owned(), |image| image.to_string());
    let of_kernel = |chosen: &&Chosen| chosen.name == function.name && chosen.image == image();
    let own = selection().iter().filter(of_kernel).collect::<Vec<_>>();
    if own.is_empty() || events::is_captured(launch.stream, launch.per_thread) {
        // A launch by its number says why it is not captured.
        return own.into_iter().find(|chosen| {
            chosen.which == Which::Launch(number) && !chosen.is_done.swap(true, Ordering::Relaxed)
        });
    }
    // SAFETY: the caller's.
    let (hash, counts) = unsafe { function.kinds.of(function, launch) };
    let of_kind = counts.launches.fetch_add(1, Ordering::Relaxed);
    let is_it = |chosen: &&Chosen| match chosen.which {
        Which::Launch(wanted) => wanted == number,
        Which::OfKind(wanted, at) => wanted == hash && at == of_kind,
    };
    own.into_iter()
        .find(|chosen| is_it(chosen) && !chosen.is_done.swap(true, Ordering::Relaxed))
}

/// Makes a launch and captures it.
///
/// # Safety
/// It is one that the driver takes.
pub unsafe fn take(
    chosen: &Chosen,
    (function, number): (&Function, u64),
    launch: &Launch,
    run: impl FnOnce(Handle) -> CUresult,
) -> CUresult {
    let _one = ONE.take();
    let give_up = |why: &str| record::line(&["skipped", &chosen.folder, why]);
    if events::is_captured(launch.stream, launch.per_thread) {
        give_up("it is launched into a graph");
        return run(launch.handle);
    }
    let patience = Duration::from_secs(settings::get().patience_s);
    // SAFETY: the caller's.
    let before = unsafe { Snapshot::before(chosen, function, launch, patience) };
    let mut snapshot = match before {
        Ok(snapshot) => snapshot,
        Err(why) => {
            give_up(&why);
            return run(launch.handle);
        }
    };
    let kind = match chosen.which {
        Which::OfKind(kind, _) => kind,
        // SAFETY: the caller's.
        Which::Launch(_) => unsafe { kinds::hash(function, launch) },
    };
    let kind = format!("{kind:016x}");
    let result = run(launch.handle);
    let captured = match result {
        SUCCESS => snapshot
            .after(patience)
            // SAFETY: the caller's.
            .and_then(|()| unsafe { snapshot.write(chosen, (function, number), launch) }),
        other => Err(format!("the driver refused the launch with error {other}")),
    };
    match captured {
        Ok(()) => record::line(&["captured", &chosen.folder, &kind]),
        Err(why) => give_up(&why),
    }
    result
}

struct Snapshot {
    parameters: Vec<u8>,
    layout: Vec<(usize, usize)>,
    memory: Vec<Kept>,
    variables: Vec<(String, Kept)>,
    copier: Copier,
    started: Instant,
}

struct Kept {
    allocation: Allocation,
    before: String,
    after: String,
}

impl Snapshot {
    unsafe fn before(
        chosen: &Chosen,
        function: &Function,
        launch: &Launch,
        patience: Duration,
    ) -> Result<Snapshot, String> {
        let started = Instant::now();
        // SAFETY: the caller's.
        let (parameters, layout) = unsafe { parameters(function, launch)? };
        wait_for_all(patience).map_err(|why| format!("before the launch {why}"))?;
        let mut snapshot = Snapshot {
            parameters,
            layout,
            memory: Vec::new(),
            variables: Vec::new(),
            copier: Copier::default(),
            started,
        };
        let known: BTreeMap<u64, Allocation> =
            memory::all().into_iter().map(|own| (own.start, own)).collect();
        let mut reached = BTreeSet::new();
        let mut open = Vec::new();
        let kernel = (chosen.image.clone(), chosen.name.clone());
        let others = match chosen.is_main {
            true => 0,
            false => SHARED.take().get(&kernel).copied().unwrap_or(0),
        };
        let mut total = others;
        let mut reach = |address: u64, open: &mut Vec<Allocation>| -> Result<(), String> {
            let Some(allocation) = containing(&known, address) else {
                return Ok(());
            };
            if !reached.insert(allocation.start) {
                return Ok(());
            }
            if allocation.kind == MemoryKind::Managed {
                return Err(format!(
                    "it reaches managed memory at {:#x}, whose pages move",
                    allocation.start
                ));
            }
            total = total.saturating_add(allocation.bytes);
            let most = settings::get().most_bytes;
            if total > most {
                return Err(match others {
                    0 => format!("it reaches more than {most} bytes of memory"),
                    _ => format!(
                        "launches of the kernel's lesser kinds together reach more than {most} bytes of memory"
                    ),
                });
            }
            open.push(allocation);
            Ok(())
        };
        for word in words(&snapshot.parameters) {
            reach(word, &mut open)?;
        }
        for name in &chosen.variables {
            let own = variable(launch.handle, name)
                .ok_or_else(|| format!("the driver has no variable `{name}`"))?;
            let (before, found) = snapshot.copier.keep(own, &known)?;
            for address in found {
                reach(address, &mut open)?;
            }
            snapshot.variables.push((name.clone(), Kept::new(own, before)));
        }
        while let Some(allocation) = open.pop() {
            let (before, found) = snapshot.copier.keep(allocation, &known)?;
            for address in found {
                reach(address, &mut open)?;
            }
            snapshot.memory.push(Kept::new(allocation, before));
        }
        snapshot.memory.sort_by_key(|kept| kept.allocation.start);
        if !chosen.is_main {
            SHARED.take().insert(kernel, total);
        }
        Ok(snapshot)
    }

    fn after(&mut self, patience: Duration) -> Result<(), String> {
        wait_for_all(patience).map_err(|why| format!("after the launch {why}"))?;
        let variables = self.variables.iter_mut().map(|(_, kept)| kept);
        for kept in self.memory.iter_mut().chain(variables) {
            (kept.after, _) = self.copier.keep(kept.allocation, &BTreeMap::new())?;
        }
        Ok(())
    }

    /// Writes the manifest, which completes a capture.
    unsafe fn write(
        &self,
        chosen: &Chosen,
        (function, number): (&Function, u64),
        launch: &Launch,
    ) -> Result<(), String> {
        let mut text =
            String::from("# A launch that `headstart capture` has copied with its memory.\nformat = 1\n");
        let image = function.image.map_or("-".to_owned(), |image| image.to_string());
        let three = |sizes: [u32; 3]| format!("[{}, {}, {}]", sizes[0], sizes[1], sizes[2]);
        let (driver, device, capability) = machine();
        let _ = writeln!(text, "kernel = {}", quoted(&function.name));
        let _ = writeln!(text, "image = \"{image}\"");
        let _ = writeln!(text, "launch = {number} # of this kernel in its process, from 0");
        let _ = writeln!(text, "process = {}", std::process::id());
        let _ = writeln!(
            text,
            "device = {}\ncapability = {capability}\ndriver = {driver}",
            quoted(&device)
        );
        let _ = writeln!(
            text,
            "groups = {}\ngroup = {}",
            three(launch.grid),
            three(launch.block)
        );
        let _ = writeln!(text, "shared_bytes = {}", launch.shared_bytes);
        let _ = writeln!(text, "cooperative = {}", launch.is_cooperative);
        // SAFETY: the caller's.
        for own in unsafe { launch.attributes() } {
            let value: String = own
                .value
                .iter()
                .map(|word| format!("{:016x}", word.swap_bytes()))
                .collect();
            let _ = writeln!(text, "[[attributes]]\nid = {}\nvalue = \"{value}\"", own.id);
        }
        let bytes: String = self.parameters.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(text, "\n[parameters]\nbytes = \"{bytes}\"");
        let layout: Vec<String> = self
            .layout
            .iter()
            .map(|(offset, size)| format!("[{offset}, {size}]"))
            .collect();
        let _ = writeln!(text, "layout = [{}] # offset and size of each", layout.join(", "));
        for kept in &self.memory {
            let _ = writeln!(text, "\n[[memory]]");
            kept.write(&mut text);
        }
        for (name, kept) in &self.variables {
            let _ = writeln!(text, "\n[[variables]]\nname = {}", quoted(name));
            kept.write(&mut text);
        }
        let took = self.started.elapsed().as_secs_f64();
        let _ = writeln!(text, "\n[taken]\nseconds = {took:.3}");
        let folder = settings::get().folder.join(&chosen.folder);
        fs::create_dir_all(&folder)
            .and_then(|()| record::write_whole(&folder.join("launch.toml"), text.as_bytes()))
            .map_err(|error| format!("the manifest could not be written: {error}"))
    }
}

impl Kept {
    fn new(allocation: Allocation, before: String) -> Kept {
        Kept {
            allocation,
            before,
            after: String::new(),
        }
    }

    fn write(&self, text: &mut String) {
        let kind = match self.allocation.kind {
            MemoryKind::Device => "device",
            MemoryKind::Host => "host",
            MemoryKind::Managed => "managed",
            MemoryKind::Foreign => "foreign",
        };
        let _ = writeln!(
            text,
            "address = {:#x}\nbytes = {}\nkind = \"{kind}\"\nbefore = \"{}\"\nafter = \"{}\"",
            self.allocation.start, self.allocation.bytes, self.before, self.after
        );
    }
}

/// A string as TOML has it.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04x}", c as u32),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

/// The host's memory that a piece of an allocation is copied to: the same for all of them, since gigabytes of new memory take longer
/// than the copies.
#[derive(Default)]
struct Copier(Vec<u8>);

impl Copier {
    /// Stores an allocation: its name, and the allocations that words in it lead to.
    fn keep(
        &mut self,
        allocation: Allocation,
        known: &BTreeMap<u64, Allocation>,
    ) -> Result<(String, BTreeSet<u64>), String> {
        let folder = &settings::get().folder;
        let room = stored::room(folder);
        if room < allocation.bytes + SPARE {
            return Err(format!("the disk has {room} bytes left"));
        }
        let range = match (known.keys().next(), known.values().next_back()) {
            (Some(lowest), Some(highest)) => *lowest..highest.end(),
            _ => 0..0,
        };
        let mut found = BTreeSet::new();
        let mut pieces = |pass: &mut dyn FnMut(&[u8]) -> Result<(), String>| {
            let mut at = 0;
            while at < allocation.bytes {
                let piece = self.read(allocation, at)?;
                let addresses = words(piece).filter(|word| range.contains(word));
                found.extend(addresses.filter_map(|word| Some(containing(known, word)?.start)));
                pass(piece)?;
                at += piece.len() as u64;
            }
            Ok(())
        };
        let name = stored::keep(&folder.join("buffers"), allocation.bytes, &mut pieces)?;
        Ok((name, found))
    }

    /// The piece of an allocation that begins at this byte.
    fn read(&mut self, allocation: Allocation, at: u64) -> Result<&[u8], String> {
        let length = (allocation.bytes - at).min(stored::PIECE as u64) as usize;
        if self.0.len() < length {
            self.0
                .try_reserve_exact(length - self.0.len())
                .map_err(|_| format!("the host has no {length} bytes for a copy"))?;
            self.0.resize(length, 0);
        }
        let piece = &mut self.0[..length];
        let from = allocation.start + at;
        // SAFETY: a part of the program's allocation of this size, and room for it.
        let result = events::relaxed(|| unsafe {
            real::cuMemcpyDtoH_v2(piece.as_mut_ptr().cast::<c_void>(), from, length)
        });
        match result {
            SUCCESS => Ok(piece),
            other => Err(format!("memory at {from:#x} could not be copied: error {other}")),
        }
    }
}

/// Words that may be addresses, at every multiple of 8.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).map(|word| {
        let mut bits = [0; 8];
        bits.copy_from_slice(word);
        u64::from_le_bytes(bits)
    })
}

fn containing(all: &BTreeMap<u64, Allocation>, address: u64) -> Option<Allocation> {
    let (_, allocation) = all.range(..=address).next_back()?;
    (address < allocation.end()).then_some(*allocation)
}

/// A module's variable.
fn variable(handle: Handle, name: &str) -> Option<Allocation> {
    let mut owner = ptr::null_mut();
    // SAFETY: a function or kernel that the program launches, and a place for its module.
    let found = unsafe {
        if real::cuFuncGetModule(&raw mut owner, handle) == SUCCESS {
            addresses::variable(owner, false, name)
        } else if real::cuKernelGetLibrary(&raw mut owner, handle) == SUCCESS {
            addresses::variable(owner, true, name)
        } else {
            return None;
        }
    };
    found.ok().map(|(start, bytes)| Allocation {
        start,
        bytes: bytes as u64,
        kind: MemoryKind::Device,
    })
}

/// The bytes of all parameters, and where each lies.
unsafe fn parameters(function: &Function, launch: &Launch) -> Result<(Vec<u8>, Vec<(usize, usize)>), String> {
    let layout = function.parameters(launch.handle).map(<[_]>::to_vec);
    // SAFETY: the caller's.
    unsafe {
        if let Some(packed) = launch.packed() {
            let whole = vec![(0, packed.len())];
            return Ok((packed.to_vec(), layout.unwrap_or(whole)));
        }
        let layout = layout.ok_or("the driver does not say how large parameters are; 12.4 and later do")?;
        let length = layout
            .iter()
            .map(|(offset, size)| offset + size)
            .max()
            .unwrap_or(0);
        let mut bytes = vec![0; length];
        if launch.parameters.is_null() && !layout.is_empty() {
            return Err("it has no parameters".to_owned());
        }
        for (index, &(offset, size)) in layout.iter().enumerate() {
            let parameter = (*launch.parameters.add(index)).cast::<u8>();
            bytes[offset..offset + size].copy_from_slice(std::slice::from_raw_parts(parameter, size));
        }
        Ok((bytes, layout))
    }
}

/// Waits until no stream has anything to do. A kernel that waits for the host would never end: so it asks, and gives up.
fn wait_for_all(patience: Duration) -> Result<(), String> {
    let mut streams: Vec<usize> = STREAMS.take().iter().copied().collect();
    // The null streams: the legacy one, and this thread's own.
    streams.extend([0, 1, 2]);
    let until = Instant::now() + patience;
    for stream in streams {
        loop {
            // SAFETY: a stream of the program, or a special one. One that is gone meanwhile is an error, which is passed over.
            match events::relaxed(|| unsafe { real::cuStreamQuery(stream as Handle) }) {
                NOT_READY if Instant::now() > until => {
                    return Err(format!(
                        "the device was busy for more than {} s",
                        patience.as_secs()
                    ));
                }
                NOT_READY => thread::sleep(Duration::from_micros(50)),
                _ => break,
            }
        }
    }
    Ok(())
}

/// The driver's version, the device's name, and its compute capability: 90 for 9.0.
fn machine() -> (i32, String, u32) {
    let (mut version, mut device, mut capability) = (0, 0, None);
    let mut name = [0u8; 256];
    // SAFETY: places for the answers.
    unsafe {
        let _ = real::cuDriverGetVersion(&raw mut version);
        if real::cuCtxGetDevice(&raw mut device) == SUCCESS {
            let _ = real::cuDeviceGetName(name.as_mut_ptr().cast(), 255, device);
            capability = real::capability(device);
        }
    }
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
    (
        version,
        String::from_utf8_lossy(&name[..end]).into_owned(),
        capability.unwrap_or_default(),
    )
}
