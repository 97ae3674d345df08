//! Better kernels in place of the program's own, for launches that meet their assumptions.
//!
//! `exec.txt` says which kernels ([`facts`](crate::facts)), several of one where its launches are of several kinds. A kernel with a
//! line that is not understood is left as it is. Better kernels are loaded when the program first has a context (`side`), never at
//! a launch: loading may wait for the device. Whether a launch meets its assumptions is looked up in `holds`; the first better
//! kernel whose facts hold takes the launch. Launches into a stream capture and nodes of graphs keep the original;
//! [`graphs`](crate::graphs) has better ones beside them.
//!
//! Which launches are compared with the original says `turns`: where the better kernel is slower in this program, the original is
//! taken again.

mod holds;
mod resident;
mod side;
#[cfg(test)]
mod tests;
pub mod turns;

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use holds::{Refusal, Seen};
use resident::Resident;
use side::Side;
pub use side::{begin, forget_modules, hold, release, unloaded};

use crate::abi::{CUresult, Handle, SUCCESS};
use crate::addresses::{self, Validity};
use crate::facts::{Better, Fact, Place, places};
use crate::functions::Known;
use crate::launches::Launch;
use crate::lock::Lock;
use crate::reach::{Last, Reaches};
use crate::record::{self, Counts};
use crate::settings::{self, Mode};
use crate::{events, functions, images};
use turns::Times;

/// Better kernels of one kernel at most.
const MOST: usize = 8;

/// The better kernels of a kernel, in the order in which launches try them.
pub struct Replacements {
    all: Vec<Replacement>,
}

/// A better kernel, loaded.
pub struct Replacement {
    handle: Handle,
    file: String,
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
    times: Times,
    /// What launches of the original usually take, in nanoseconds; 0 as long as it is not known.
    usual_ns: AtomicU64,
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
    let image = function.image.map(|image| image.to_string());
    let is_own = |better: &Better| better.name == function.name && Some(&better.image) == image.as_ref();
    if !side::table().iter().any(is_own) {
        return;
    }
    side::load_once();
    let own = side::table().iter().enumerate();
    let found: Vec<(&Better, Side)> = own
        .filter(|(_, better)| is_own(better))
        .filter_map(|(number, better)| Some((better, side::of(owner, number)?)))
        .take(MOST)
        .collect();
    let is_library = images::is_library(owner);
    // A module's function gets what functions get.
    let handle_of = |side: &Side| match is_library {
        true => Some(side.kernel as Handle),
        false => side::function(side.kernel as Handle),
    };
    let Some(first) = found.first().and_then(|(_, side)| handle_of(side)) else {
        return;
    };
    if known
        .replacements()
        .is_some_and(|own| own.all.first().is_some_and(|own| own.handle == first))
    {
        return;
    }
    let made = found.into_iter().filter_map(|(better, side)| {
        let handle = handle_of(&side)?;
        made(better, side, handle, known, owner, is_library)
    });
    let all: Vec<Replacement> = made.collect();
    if all.is_empty() {
        return;
    }
    // They are never freed: a launch may be looking at them.
    known.replace(Box::leak(Box::new(Replacements { all })));
    let function = match is_library {
        true => side::function(handle),
        false => Some(handle),
    };
    if let Some(function) = function {
        // A launch that is compared would pay for what is done once.
        side::load_now(function);
        // A graph's node has the kernel's function in the context.
        functions::alias(function, handle);
    }
}

/// A better kernel that is loaded, for a kernel of the program's.
fn made(
    better: &Better,
    side: Side,
    handle: Handle,
    known: Known,
    owner: Handle,
    is_library: bool,
) -> Option<Replacement> {
    let only_in = match better.addresses.is_empty() {
        true => None,
        false => {
            // SAFETY: the program's module or library, and a library of ours for it.
            let kept = events::relaxed(|| unsafe {
                addresses::keep(&better.addresses, (owner, is_library), side.library as Handle)
            });
            match kept {
                Ok(validity) => Some(validity),
                Err(why) => {
                    record::line(&["trouble", &better.name, &why]);
                    return None;
                }
            }
        }
    };
    let counts = known.function.better(&better.file);
    Some(Replacement {
        handle,
        file: better.file.clone(),
        only_in,
        is_library,
        facts: better.facts.clone(),
        reaches: better.reaches.clone(),
        reached: Last::new(),
        places: places(&better.facts, &better.reaches),
        counts,
        launches: AtomicU64::new(0),
        is_off: AtomicBool::new(counts.switched_back.load(Ordering::Relaxed) != 0),
        times: Times::default(),
        usual_ns: AtomicU64::new(better.usual_ns),
        resident: Resident::new(),
        last: Lock::new(None),
    })
}

/// The program sets an attribute of a kernel: the better one gets it, too.
///
/// # Safety
/// The driver has accepted it for the original.
pub unsafe fn attribute(handle: Handle, set: impl Fn(Handle) -> CUresult) {
    for replacement in functions::known(handle)
        .and_then(|known| known.replacements())
        .into_iter()
        .flat_map(|own| &own.all)
    {
        let _ = set(replacement.handle);
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
    let Some(replacements) = known.replacements() else {
        return run(launch.handle);
    };
    if events::is_captured(launch.stream, launch.per_thread) {
        // It is a node, and is looked at when its graph is instantiated.
        counts.launches.fetch_sub(1, Ordering::Relaxed);
        return run(launch.handle);
    }
    // SAFETY: the caller's.
    let Some(replacement) = (unsafe { replacements.chosen(launch) }) else {
        // SAFETY: the caller's.
        unsafe { replacements.count(launch, counts) };
        return run(launch.handle);
    };
    let number = replacement.launches.fetch_add(1, Ordering::Relaxed);
    let turn = turns::of(number, replacement.usual_ns.load(Ordering::Relaxed));
    if !turn.takes_better {
        counts.compared.fetch_add(1, Ordering::Relaxed);
    }
    let handle = match turn.takes_better {
        true => replacement.handle,
        false => launch.handle,
    };
    // SAFETY: the program's stream, which is not captured.
    let running = match turn.is_timed {
        true => unsafe { events::begin(launch.stream, launch.per_thread) },
        false => None,
    };
    let result = run(handle);
    if turn.takes_better && result != SUCCESS {
        // More registers or shared memory than the launch leaves, or than fits if all work-groups must be resident. The
        // program's earlier errors are reported for the original as well.
        let result = run(launch.handle);
        counts.left.fetch_add(1, Ordering::Relaxed);
        if result == SUCCESS {
            replacement.refused(known, launch);
        }
        return result;
    }
    if turn.takes_better {
        counts.replaced.fetch_add(1, Ordering::Relaxed);
        replacement.counts.replaced.fetch_add(1, Ordering::Relaxed);
    }
    if let Some(running) = running.filter(|_| result == SUCCESS) {
        let told = move |ns: u64| replacement.timed(turn.takes_better, ns);
        // SAFETY: as above.
        unsafe { events::end(running, launch.stream, launch.per_thread, Box::new(told)) };
    }
    result
}

impl Replacements {
    /// The better kernel for a launch: the first that is not switched off and whose facts hold.
    ///
    /// # Safety
    /// It is one that the driver takes.
    #[inline]
    pub unsafe fn chosen(&'static self, launch: &Launch) -> Option<&'static Replacement> {
        // SAFETY: the caller's.
        self.all.iter().find(|own| unsafe { own.is_for(launch) })
    }

    /// Counts a launch that none was chosen for, with the reasons.
    unsafe fn count(&self, launch: &Launch, counts: &Counts) {
        let mut is_off = true;
        for own in self.all.iter().filter(|own| !own.is_off()) {
            is_off = false;
            // SAFETY: the caller's. What was found is kept.
            if let Some(refusal) = unsafe { own.refusal(launch) } {
                // SAFETY: the caller's.
                unsafe { own.count(refusal, launch) };
            }
        }
        let number = if is_off { &counts.left } else { &counts.refused };
        number.fetch_add(1, Ordering::Relaxed);
    }
}

impl Replacement {
    /// The original is taken in every case.
    pub fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Relaxed)
    }

    /// Counts a launch that took it as a node of a graph.
    pub fn count_node(&self) {
        self.counts.replaced.fetch_add(1, Ordering::Relaxed);
    }

    /// A function of the current context.
    pub fn function(&self) -> Handle {
        match self.is_library {
            true => side::function(self.handle).unwrap_or(self.handle),
            false => self.handle,
        }
    }

    /// Whether a launch may take it: all facts hold, and what it keeps is right there.
    ///
    /// # Safety
    /// It is one that the driver takes.
    pub unsafe fn is_for(&self, launch: &Launch) -> bool {
        // SAFETY: the caller's.
        !self.is_off() && unsafe { self.refusal(launch) }.is_none()
    }

    unsafe fn refusal(&self, launch: &Launch) -> Option<Refusal> {
        match self.only_in.is_none_or(|validity| validity.is_now(launch)) {
            // SAFETY: the caller's.
            true => unsafe { self.unmet(launch) },
            false => Some(Refusal::Elsewhere),
        }
    }

    /// Counts a launch that is refused. The first one of a reason is said with what it has instead.
    unsafe fn count(&self, refusal: Refusal, launch: &Launch) {
        let number = refusal.number();
        if self.counts.refusals[number].fetch_add(1, Ordering::Relaxed) == 0 {
            // SAFETY: the caller's.
            let found = unsafe { self.found(refusal, launch) };
            record::line(&["refused", &self.file, &number.to_string(), &found]);
        }
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
        let (timed, total) = match is_better {
            true => (&self.counts.replaced_timed, &self.counts.replaced_ns),
            false => (&self.counts.original_timed, &self.counts.original_ns),
        };
        timed.fetch_add(1, Ordering::Relaxed);
        total.fetch_add(ns, Ordering::Relaxed);
        let is_slower = self.times.add(is_better, ns);
        if !is_better || self.usual_ns.load(Ordering::Relaxed) == 0 {
            self.usual_ns.store(ns.max(1), Ordering::Relaxed);
        }
        if is_slower {
            self.is_off.store(true, Ordering::Relaxed);
            self.counts.switched_back.store(1, Ordering::Relaxed);
        }
    }
}

/// The kinds of attribute that the better kernel gets as the original does.
pub fn is_shared_attribute(attribute: c_int) -> bool {
    // Dynamic shared memory, and the share of it in L1.
    matches!(attribute, 8 | 9 | 14)
}
