//! Better kernels in place of the program's own, for launches that meet their assumptions.
//!
//! `exec.txt` says which kernels ([`facts`](crate::facts)). A kernel with a line that is not understood is left as it is. The better kernel is loaded when the program loads the image,
//! never at a launch: loading may wait for the device. Launches into a stream capture and nodes of graphs keep the original;
//! [`graphs`](crate::graphs) has better ones beside them.
//!
//! The first launches take the two kernels in turns, and later ones now and then, with their times: where the better one is
//! slower in this program, the original is taken again.

use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::fs;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::abi::{CUresult, Handle, SUCCESS};
use crate::addresses::{self, Validity};
use crate::facts::{Better, Fact, MOST_WORDS, Place, places, read};
use crate::functions::Known;
use crate::images::ImageHash;
use crate::launches::Launch;
use crate::lock::Lock;
use crate::memory::{self, Kind};
use crate::reach::{self, Last, Reaches};
use crate::record::{self, Counts};
use crate::settings::{self, Mode};
use crate::{events, functions, real};

/// Launches that take the two kernels in turns.
const TRIAL: u64 = 32;
/// Of later ones one in so many is timed, and the next one takes the original for comparison.
const SAMPLE: u64 = 256;
/// Timed launches of each kernel before one is said to be slower.
const ENOUGH: u64 = 8;
/// A better kernel, loaded.
pub struct Replacement {
    handle: Handle,
    /// Where the addresses that it keeps are right; none where it keeps none.
    only_in: Option<Validity>,
    is_library: bool,
    facts: Vec<Fact>,
    reaches: Reaches,
    reached: Last,
    places: Vec<Place>,
    counts: &'static Counts,
    launches: AtomicU64,
    is_off: AtomicBool,
    /// The result for the words of the last launch, and the count of memory changes then.
    last: Lock<Option<Seen>>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Replacement {}
// SAFETY: see above; all else is atomic or locked.
unsafe impl Sync for Replacement {}

#[derive(Clone, Copy)]
struct Seen {
    words: [u64; MOST_WORDS],
    grid: [u32; 3],
    changes: u64,
    holds: bool,
}

/// Modules and libraries of ours, by the program's module or library and the name of its kernel.
static SIDE: Lock<Option<HashMap<(usize, String), Side>>> = Lock::new(None);

/// A better kernel, and the module or library of ours that it is of.
#[derive(Clone, Copy)]
struct Side {
    owner: usize,
    kernel: usize,
    is_library: bool,
}

/// Holds the lock for the time of a fork.
pub fn hold() {
    SIDE.hold();
}

/// Ends [`hold`].
pub fn release() {
    SIDE.release();
}

fn table() -> &'static [Better] {
    static TABLE: OnceLock<Vec<Better>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let text = fs::read_to_string(settings::get().folder.join("exec.txt")).unwrap_or_default();
        read(&text)
    })
}

/// The program has loaded an image: better kernels for it are loaded, too.
///
/// # Safety
/// `owner` is the module or library.
pub unsafe fn loaded(owner: Handle, image: Option<ImageHash>, is_library: bool) {
    let Some(image) = image.filter(|_| settings::mode() == Mode::Exec) else {
        return;
    };
    let image = image.to_string();
    for better in table().iter().filter(|better| better.image == image) {
        if let Some(wanted) = better.machine
            && !is_machine(wanted)
        {
            let (driver, capability) = wanted;
            let why = format!(
                "it was tuned with driver {driver} for compute capability {capability}, and other machine code may fuse other products"
            );
            record::line(&["trouble", &better.name, &why]);
            continue;
        }
        // SAFETY: the caller's.
        match events::relaxed(|| unsafe { load(better, is_library) }) {
            Ok(side) => {
                let key = (owner as usize, better.name.clone());
                SIDE.take().get_or_insert_default().insert(key, side);
            }
            Err(why) => record::line(&["trouble", &better.name, &why]),
        }
    }
}

/// Whether this is the driver, and all devices have this compute capability.
fn is_machine((driver, capability): (u64, u64)) -> bool {
    let (mut version, mut devices) = (0, 0);
    // SAFETY: places for the answers.
    let known = unsafe {
        real::cuDriverGetVersion(&raw mut version) == SUCCESS
            && real::cuDeviceGetCount(&raw mut devices) == SUCCESS
    };
    let has_capability = |device: c_int| real::capability(device).map(u64::from) == Some(capability);
    known && u64::try_from(version) == Ok(driver) && (0..devices).all(has_capability)
}

/// Loads a better kernel: as machine code if the driver takes it, which compiles nothing then, or else as text.
unsafe fn load(better: &Better, is_library: bool) -> Result<Side, String> {
    // SAFETY: the caller's.
    let of = |file: &str| unsafe { load_file(file, better, is_library) };
    let assembled = better.assembled.as_deref().and_then(|file| of(file).ok());
    assembled.map_or_else(|| of(&better.file), Ok)
}

unsafe fn load_file(file: &str, better: &Better, is_library: bool) -> Result<Side, String> {
    let path = settings::get().folder.join(file);
    let mut bytes = fs::read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    // Text ends with a zero.
    bytes.push(0);
    let entry = CString::new(better.entry.as_str()).map_err(|error| error.to_string())?;
    let image = bytes.as_ptr().cast::<c_void>();
    let (mut owner, mut kernel) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: an image of ours, and places for the handles.
    let result = unsafe {
        match is_library {
            true => {
                let none = ptr::null_mut;
                match real::cuLibraryLoadData(
                    &raw mut owner,
                    image,
                    ptr::null_mut(),
                    none(),
                    0,
                    ptr::null_mut(),
                    none(),
                    0,
                ) {
                    SUCCESS => real::cuLibraryGetKernel(&raw mut kernel, owner, entry.as_ptr()),
                    other => other,
                }
            }
            false => match real::cuModuleLoadData(&raw mut owner, image) {
                SUCCESS => real::cuModuleGetFunction(&raw mut kernel, owner, entry.as_ptr()),
                other => other,
            },
        }
    };
    if result != SUCCESS {
        return Err(format!("the driver refused {file} with error {result}"));
    }
    if is_library {
        // Where loading is lazy it is done now. Without a context it cannot be yet.
        let mut function = ptr::null_mut();
        // SAFETY: a kernel of ours.
        let _ = unsafe { real::cuKernelGetFunction(&raw mut function, kernel) };
    }
    Ok(Side {
        owner: owner as usize,
        kernel: kernel as usize,
        is_library,
    })
}

/// The program has asked for a kernel of a module or library.
pub fn registered(known: Known, handle: Handle, owner: Handle) {
    if settings::mode() != Mode::Exec {
        return;
    }
    let function = known.function;
    let key = (owner as usize, function.name.clone());
    let side = SIDE.take().as_ref().and_then(|side| side.get(&key).copied());
    let image = function.image.map(|image| image.to_string());
    let better = table()
        .iter()
        .find(|better| better.name == function.name && Some(&better.image) == image.as_ref());
    let (Some(side), Some(better)) = (side, better) else {
        return;
    };
    if known
        .replacement()
        .is_some_and(|own| own.handle as usize == side.kernel)
    {
        return;
    }
    let only_in = match better.addresses.is_empty() {
        true => None,
        false => {
            // SAFETY: the program's module or library, and ours for it, of the same kind.
            let kept = events::relaxed(|| unsafe {
                addresses::keep(&better.addresses, owner, side.owner as Handle, side.is_library)
            });
            match kept {
                Ok(validity) => Some(validity),
                Err(why) => return record::line(&["trouble", &better.name, &why]),
            }
        }
    };
    let new = Box::new(Replacement {
        handle: side.kernel as Handle,
        only_in,
        is_library: side.is_library,
        facts: better.facts.clone(),
        reaches: better.reaches.clone(),
        reached: Last::new(),
        places: places(&better.facts, &better.reaches),
        counts: function.counts,
        launches: AtomicU64::new(0),
        is_off: AtomicBool::new(function.counts.switched_back.load(Ordering::Relaxed) != 0),
        last: Lock::new(None),
    });
    // It is never freed: a launch may be looking at it.
    known.replace(Box::leak(new));
    if side.is_library {
        // A graph's node has the kernel's function in the context.
        let mut function = ptr::null_mut();
        // SAFETY: the program's kernel, and a place for a handle.
        if events::relaxed(|| unsafe { real::cuKernelGetFunction(&raw mut function, handle) }) == SUCCESS {
            functions::alias(function, handle);
        }
    }
}

/// A module or library of the program is about to go: so do ours for it.
pub fn unloaded(owner: Handle) {
    let mut gone = Vec::new();
    if let Some(side) = SIDE.take().as_mut() {
        side.retain(|(of, _), side| {
            let stays = *of != owner as usize;
            if !stays {
                gone.push(*side);
            }
            stays
        });
    }
    for side in gone {
        // SAFETY: a module or library of ours, whose kernel no launch takes any more.
        let _ = unsafe {
            match side.is_library {
                true => real::cuLibraryUnload(side.owner as Handle),
                false => real::cuModuleUnload(side.owner as Handle),
            }
        };
    }
}

/// A context is gone, and with it everything loaded in it.
pub fn forget_modules() {
    addresses::forget();
    if let Some(side) = SIDE.take().as_mut() {
        side.retain(|_, side| side.is_library);
    }
}

/// The program sets an attribute of a kernel: the better one gets it, too.
///
/// # Safety
/// The driver has accepted it for the original.
pub unsafe fn attribute(known: Option<Known>, set: impl FnOnce(Handle)) {
    if let Some(replacement) = known.and_then(|known| known.replacement()) {
        set(replacement.handle);
    }
}

/// Makes a launch with the better kernel, if there is one and the launch meets its facts.
///
/// # Safety
/// It is one that the driver takes.
pub unsafe fn launched(launch: &Launch, known: Known, run: impl Fn(Handle) -> CUresult) -> CUresult {
    let counts = known.function.counts;
    counts.launches.fetch_add(1, Ordering::Relaxed);
    let Some(replacement) = known.replacement() else {
        return run(launch.handle);
    };
    if replacement.is_off.load(Ordering::Relaxed) {
        return run(launch.handle);
    }
    if events::is_captured(launch.stream, launch.per_thread) {
        // It is a node, and is looked at when its graph is instantiated.
        counts.launches.fetch_sub(1, Ordering::Relaxed);
        return run(launch.handle);
    }
    // SAFETY: the caller's.
    if !unsafe { replacement.is_for(launch) } {
        counts.refused.fetch_add(1, Ordering::Relaxed);
        return run(launch.handle);
    }
    let number = replacement.launches.fetch_add(1, Ordering::Relaxed);
    let (takes_better, is_timed) = match number {
        // The first launch of a kernel pays for one-time work.
        0..TRIAL => (number % 2 == 0, number > 1),
        _ if number % SAMPLE == 0 => (true, true),
        _ if number % SAMPLE == 1 => (false, true),
        _ => (true, false),
    };
    let handle = match takes_better {
        true => replacement.handle,
        false => launch.handle,
    };
    // SAFETY: the program's stream, which is not captured.
    let running = match is_timed {
        true => unsafe { events::begin(launch.stream, launch.per_thread) },
        false => None,
    };
    let result = run(handle);
    if takes_better && result != SUCCESS {
        // More registers or shared memory than the launch leaves, or than fits if all work-groups must be resident. The
        // program's earlier errors are reported for the original as well.
        let result = run(launch.handle);
        if result == SUCCESS {
            replacement.refused(known, launch);
        }
        return result;
    }
    if takes_better {
        counts.replaced.fetch_add(1, Ordering::Relaxed);
    }
    if let Some(running) = running.filter(|_| result == SUCCESS) {
        let told = move |ns: u64| replacement.timed(takes_better, ns);
        // SAFETY: as above.
        unsafe { events::end(running, launch.stream, launch.per_thread, Box::new(told)) };
    }
    result
}

impl Replacement {
    /// The original is taken in every case.
    pub fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Relaxed)
    }

    /// A function of the current context.
    pub fn function(&self) -> Handle {
        let mut function = ptr::null_mut();
        // SAFETY: a kernel of ours, and a place for a handle.
        match self.is_library
            && unsafe { real::cuKernelGetFunction(&raw mut function, self.handle) } == SUCCESS
        {
            true => function,
            false => self.handle,
        }
    }

    /// Whether a launch may take it: all facts hold, and what it keeps is right there.
    ///
    /// # Safety
    /// It is one that the driver takes.
    pub unsafe fn is_for(&self, launch: &Launch) -> bool {
        let is_here = self.only_in.is_none_or(|validity| validity.is_now(launch));
        // SAFETY: the caller's.
        !self.is_off() && is_here && unsafe { self.holds(launch) }
    }

    /// The driver does not launch the better kernel where it launches the original, which is taken from now on.
    fn refused(&self, known: Known, launch: &Launch) {
        if self.is_off.swap(true, Ordering::Relaxed) {
            return;
        }
        let [x, y, z] = launch.grid;
        let geometry = format!("{x}×{y}×{z} work-groups");
        let what = "the driver did not launch the better kernel where it launches the original, which is taken again";
        record::line(&["trouble", &known.function.name, what, &geometry]);
    }

    /// A launch took so long. Where the better kernel is slower, the original is taken from now on.
    fn timed(&self, is_better: bool, ns: u64) {
        let counts = self.counts;
        let (timed, total) = match is_better {
            true => (&counts.replaced_timed, &counts.replaced_ns),
            false => (&counts.original_timed, &counts.original_ns),
        };
        timed.fetch_add(1, Ordering::Relaxed);
        total.fetch_add(ns, Ordering::Relaxed);
        let mean = |timed: &AtomicU64, total: &AtomicU64| {
            let timed = timed.load(Ordering::Relaxed);
            (timed >= ENOUGH).then(|| total.load(Ordering::Relaxed) as f64 / timed as f64)
        };
        let better = mean(&counts.replaced_timed, &counts.replaced_ns);
        let original = mean(&counts.original_timed, &counts.original_ns);
        if let (Some(better), Some(original)) = (better, original)
            && better > original * 1.02
        {
            self.is_off.store(true, Ordering::Relaxed);
            counts.switched_back.store(1, Ordering::Relaxed);
        }
    }

    /// Whether a launch meets all facts.
    ///
    /// # Safety
    /// It is one that the driver takes.
    unsafe fn holds(&self, launch: &Launch) -> bool {
        let mut words = [0u64; MOST_WORDS];
        // SAFETY: the caller's.
        if !unsafe { self.words(launch, &mut words) } {
            return false;
        }
        let shapes = self.facts.iter().all(|fact| match *fact {
            Fact::Group(group) => group == launch.block,
            Fact::Shared(bytes) => bytes == launch.shared_bytes,
            _ => true,
        });
        if !shapes {
            return false;
        }
        let changes = memory::changes();
        let last = *self.last.take();
        let is_same =
            |seen: &Seen| seen.changes == changes && seen.words == words && seen.grid == launch.grid;
        if let Some(seen) = last.filter(is_same) {
            return seen.holds;
        }
        let word = |place: Place| -> u64 {
            let number = self.places.iter().position(|own| *own == place);
            number.map_or(0, |number| words[number])
        };
        let holds = self.facts.iter().all(|fact| match *fact {
            Fact::Group(_) | Fact::Shared(_) => true,
            Fact::Apart(one, other) => {
                let both = (memory::at(word(one)), memory::at(word(other)));
                let (Some(one_in), Some(other_in)) = both else {
                    // Nothing is accessed through a null pointer.
                    return word(one) == 0 || word(other) == 0;
                };
                // What others may write is apart from nothing.
                one_in.kind != Kind::Foreign
                    && other_in.kind != Kind::Foreign
                    && (one_in.start != other_in.start || self.are_apart(one, other, &word, launch.grid))
            }
            Fact::Ends(place, length, size) => {
                let address = word(place);
                memory::at(address).is_some_and(|own| own.start == address && own.bytes / size == length)
            }
            Fact::Aligned(place, bytes) => word(place) % bytes == 0,
            Fact::Known(place) => {
                let address = word(place);
                address == 0 || memory::at(address).is_some_and(|own| own.kind != Kind::Foreign)
            }
        });
        *self.last.take() = Some(Seen {
            words,
            grid: launch.grid,
            changes,
            holds,
        });
        holds
    }

    /// Whether a launch reaches no byte through both of two pointers into one allocation.
    fn are_apart(&self, one: Place, other: Place, word: &impl Fn(Place) -> u64, grid: [u32; 3]) -> bool {
        let number = |pointer: Place| self.reaches.number(pointer.index, pointer.inside);
        let (Some(first), Some(second)) = (number(one), number(other)) else {
            return false;
        };
        let reached = self
            .reaches
            .of(&self.reached, |scalar| word(Place::of(scalar)), grid);
        let (Some(one_reached), Some(other_reached)) = (reached[first], reached[second]) else {
            return false;
        };
        reach::are_apart((word(one), one_reached), (word(other), other_reached))
    }

    /// The words at all places; false if they cannot be had.
    unsafe fn words(&self, launch: &Launch, words: &mut [u64; MOST_WORDS]) -> bool {
        if self.places.is_empty() {
            return true;
        }
        if launch.parameters.is_null() {
            // Packed parameters have other places.
            return false;
        }
        for (word, place) in words.iter_mut().zip(&self.places) {
            // SAFETY: the launch has a pointer to each parameter, and the kernel a pointer or a number at this place of it.
            *word = unsafe {
                let parameter = (*launch.parameters.add(place.index))
                    .cast::<u8>()
                    .add(place.inside);
                match place.bytes {
                    1 => u64::from(parameter.read()),
                    2 => u64::from(parameter.cast::<u16>().read_unaligned()),
                    4 => u64::from(parameter.cast::<u32>().read_unaligned()),
                    _ => parameter.cast::<u64>().read_unaligned(),
                }
            };
        }
        true
    }
}

/// The kinds of attribute that the better kernel gets as the original does.
pub fn is_shared_attribute(attribute: c_int) -> bool {
    // Dynamic shared memory, and the share of it in L1.
    matches!(attribute, 8 | 9 | 14)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_looked_at_for_each_launch() {
        memory::allocated(0x10_0000, 0x1000, Kind::Device);
        memory::allocated(0x20_0000, 0x1000, Kind::Device);
        memory::allocated(0x30_0000, 0x1000, Kind::Foreign);
        let place = |index| Place {
            index,
            inside: 0,
            bytes: 8,
        };
        let facts = vec![
            Fact::Group([64, 1, 1]),
            Fact::Shared(0),
            Fact::Apart(place(0), place(1)),
            Fact::Ends(place(0), 0x400, 4),
            Fact::Aligned(place(1), 16),
            Fact::Known(place(0)),
        ];
        let reaches = Reaches::default();
        let counts: &'static Counts = Box::leak(Box::default());
        let replacement = Replacement {
            handle: ptr::null_mut(),
            only_in: None,
            is_library: false,
            places: places(&facts, &reaches),
            facts,
            reaches,
            reached: Last::new(),
            counts,
            launches: AtomicU64::new(0),
            is_off: AtomicBool::new(false),
            last: Lock::new(None),
        };
        let holds = |one: u64, other: u64, group: u32, shared_bytes: u32| {
            let mut values = [one, other];
            let mut pointers = values
                .each_mut()
                .map(|value| ptr::from_mut(value).cast::<c_void>());
            let launch = Launch {
                handle: ptr::null_mut(),
                grid: [1; 3],
                block: [group, 1, 1],
                shared_bytes,
                stream: ptr::null_mut(),
                per_thread: false,
                is_cooperative: false,
                parameters: pointers.as_mut_ptr(),
                extra: ptr::null_mut(),
                attributes: ptr::null(),
                attribute_count: 0,
            };
            // SAFETY: two parameters of 8 bytes.
            unsafe { replacement.holds(&launch) }
        };
        for _ in 0..2 {
            assert!(holds(0x10_0000, 0x20_0010, 64, 0));
        }
        assert!(!holds(0x10_0000, 0x20_0010, 32, 0), "another size of work-groups");
        assert!(!holds(0x10_0000, 0x20_0010, 64, 4), "dynamic shared memory");
        assert!(!holds(0x10_0000, 0x10_0010, 64, 0), "one allocation");
        assert!(!holds(0x10_0001, 0x20_0010, 64, 0), "not its start");
        assert!(!holds(0x10_0000, 0x20_0008, 64, 0), "alignment");
        assert!(!holds(0x10_0000, 0x30_0000, 64, 0), "others may write it");
        assert!(
            holds(0x10_0000, 0, 64, 0),
            "a null pointer is apart from everything"
        );
        assert!(!holds(0x10_0000, 16, 64, 0), "no memory");
        assert!(holds(0x10_0000, 0x20_0010, 64, 0));
        memory::freed(0x20_0000);
        assert!(!holds(0x10_0000, 0x20_0010, 64, 0), "it was given back");
        memory::allocated(0x20_0000, 0x1000, Kind::Device);
        assert!(holds(0x10_0000, 0x20_0010, 64, 0));
    }

    #[test]
    fn pointers_into_one_allocation_are_apart_where_the_launch_reaches_other_bytes() {
        memory::allocated(0x70_0000, 0x1000, Kind::Device);
        memory::allocated(0x71_0000, 0x1000, Kind::Foreign);
        // As many words as parameter 2 says, and as there are work-groups.
        let text = "kernel\tab\tk\tk.ptx\tk\napart\t0\t0\t1\t0\n\
            terms\tc:0\tp:2:0:4\tc:4\tmul:1:2\tc:1\tsub:3:4\tbetween:0:5\tg:0\tmul:7:2\tsub:8:4\tbetween:0:9\n\
            reach\t0\t0\t6\nreach\t1\t0\t10\n";
        let Better { facts, reaches, .. } = read(text).pop().expect("a kernel");
        assert_eq!((facts.len(), reaches.number(1, 0)), (1, Some(1)));
        let wrong = text.replace("reach\t1\t0\t10", "reach\t1\t0\t11");
        assert!(read(&wrong).is_empty(), "there is no such term");
        let counts: &'static Counts = Box::leak(Box::default());
        let replacement = Replacement {
            handle: ptr::null_mut(),
            only_in: None,
            is_library: false,
            places: places(&facts, &reaches),
            facts,
            reaches,
            reached: Last::new(),
            counts,
            launches: AtomicU64::new(0),
            is_off: AtomicBool::new(false),
            last: Lock::new(None),
        };
        let holds = |one: u64, other: u64, words: u32, groups: u32| {
            let (mut one, mut other, mut words) = (one, other, words);
            let mut pointers = [
                ptr::from_mut(&mut one).cast::<c_void>(),
                ptr::from_mut(&mut other).cast(),
                ptr::from_mut(&mut words).cast(),
            ];
            let launch = Launch {
                handle: ptr::null_mut(),
                grid: [groups, 1, 1],
                block: [64, 1, 1],
                shared_bytes: 0,
                stream: ptr::null_mut(),
                per_thread: false,
                is_cooperative: false,
                parameters: pointers.as_mut_ptr(),
                extra: ptr::null_mut(),
                attributes: ptr::null(),
                attribute_count: 0,
            };
            // SAFETY: two parameters of 8 bytes and one of 4.
            unsafe { replacement.holds(&launch) }
        };
        assert!(holds(0x70_0000, 0x70_0100, 0x40, 8));
        assert!(!holds(0x70_0000, 0x70_0100, 0x41, 8), "a word more is read");
        assert!(holds(0x70_0000, 0x70_0100, 0x40, 8));
        assert!(holds(0x70_0020, 0x70_0000, 0x40, 8));
        assert!(!holds(0x70_0020, 0x70_0000, 0x40, 9), "another work-group");
        assert!(!holds(0x71_0000, 0x71_0100, 0x40, 8), "others may write it");
        let begun = std::time::Instant::now();
        for launch in 0..100_000 {
            assert!(holds(0x70_0020, 0x70_0000, 0x40, 1 + launch % 8));
        }
        println!("{:.0} ns a launch", begun.elapsed().as_nanos() as f64 / 1e5);
    }

    #[test]
    fn what_is_slower_is_switched_back() {
        let counts: &'static Counts = Box::leak(Box::default());
        let replacement = Replacement {
            handle: ptr::null_mut(),
            only_in: None,
            is_library: false,
            places: Vec::new(),
            facts: Vec::new(),
            reaches: Reaches::default(),
            reached: Last::new(),
            counts,
            launches: AtomicU64::new(0),
            is_off: AtomicBool::new(false),
            last: Lock::new(None),
        };
        for _ in 0..ENOUGH {
            replacement.timed(false, 1000);
            assert!(!replacement.is_off.load(Ordering::Relaxed));
            replacement.timed(true, 1100);
        }
        assert!(replacement.is_off.load(Ordering::Relaxed));
        assert_eq!(counts.switched_back.load(Ordering::Relaxed), 1);
    }
}
