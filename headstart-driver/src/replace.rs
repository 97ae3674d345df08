//! Better kernels in place of the program's own, for launches that meet their assumptions.
//!
//! `exec.txt` says which kernels ([`facts`](crate::facts)). A kernel with a line that is not understood is left as it is. The
//! better kernel is loaded when the program loads the image (`side`), never at a launch: loading may wait for the device. Whether
//! a launch meets its assumptions is looked up in `holds`. Launches into a stream capture and nodes of graphs keep the original;
//! [`graphs`](crate::graphs) has better ones beside them.
//!
//! The first launches take the two kernels in turns, and later ones now and then, with their times: where the better one is
//! slower in this program, the original is taken again.

mod holds;
mod resident;
mod side;
#[cfg(test)]
mod tests;

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use holds::Seen;
use resident::Resident;
pub use side::{forget_modules, hold, loaded, release, unloaded};

use crate::abi::{CUresult, Handle, SUCCESS};
use crate::addresses::{self, Validity};
use crate::facts::{Fact, Place, places};
use crate::functions::Known;
use crate::launches::Launch;
use crate::lock::Lock;
use crate::reach::{Last, Reaches};
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
    resident: Resident,
    /// The result for the words of the last launch, and the count of memory changes then.
    last: Lock<Option<Seen>>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Replacement {}
// SAFETY: see above; all else is atomic or locked.
unsafe impl Sync for Replacement {}

/// The program has asked for a kernel of a module or library.
pub fn registered(known: Known, handle: Handle, owner: Handle) {
    if settings::mode() != Mode::Exec {
        return;
    }
    let function = known.function;
    let side = side::of(owner, &function.name);
    let image = function.image.map(|image| image.to_string());
    let better = side::table()
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
        resident: Resident::new(),
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

/// The program sets an attribute of a kernel: the better one gets it, too.
///
/// # Safety
/// The driver has accepted it for the original.
pub unsafe fn attribute(known: Option<Known>, set: impl FnOnce(Handle)) {
    if let Some(replacement) = known.and_then(|known| known.replacement()) {
        set(replacement.handle);
        replacement.resident.forget();
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
}

/// The kinds of attribute that the better kernel gets as the original does.
pub fn is_shared_attribute(attribute: c_int) -> bool {
    // Dynamic shared memory, and the share of it in L1.
    matches!(attribute, 8 | 9 | 14)
}
