//! Which kernel a handle is.
//!
//! A launch must find its kernel in a few nanoseconds, from any thread: the table is an array of atomics, read without a lock.
//! A `CUkernel` may be passed as a `CUfunction`, so both are in it.

use std::collections::HashSet;
use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::abi::{Handle, SUCCESS};
use crate::images::{self, ImageHash};
use crate::kinds::Kinds;
use crate::lock::Lock;
use crate::real;
use crate::record::{self, Counts};
use crate::replace::Replacements;

/// Handles that the table has room for; a power of two.
const ROOM: usize = 1 << 14;

/// A kernel of the program.
pub struct Function {
    /// Its name in its image.
    pub name: String,
    /// The image that it is of, if that is known.
    pub image: Option<ImageHash>,
    /// Its counts, in a file that survives the program.
    pub counts: &'static Counts,
    /// Number of launches so far.
    pub launches: AtomicU64,
    /// The kinds of its launches, where they are counted.
    pub kinds: Kinds,
    /// The counts of its better kernels, by file.
    better: Lock<Vec<(String, &'static Counts)>>,
    /// Offset and size of each parameter.
    parameters: OnceLock<Option<Vec<(usize, usize)>>>,
}

/// A kernel of the program by one of its handles: a kernel has one in each context, and others.
#[derive(Clone, Copy)]
pub struct Known {
    /// The kernel.
    pub function: &'static Function,
    entry: &'static Entry,
}

struct Entry {
    handle: AtomicUsize,
    /// The module or library that it is of; 0 if that is not known.
    owner: AtomicUsize,
    /// None once the owner is gone: the driver gives its handles again.
    function: AtomicPtr<Function>,
    /// Its replacements.
    replacements: AtomicPtr<Replacements>,
}

static TABLE: [Entry; ROOM] = [const {
    Entry {
        handle: AtomicUsize::new(0),
        owner: AtomicUsize::new(0),
        function: AtomicPtr::new(ptr::null_mut()),
        replacements: AtomicPtr::new(ptr::null_mut()),
    }
}; ROOM];

/// All kernels, since one may have several handles.
static ALL: Lock<Vec<&'static Function>> = Lock::new(Vec::new());

/// Holds the lock for the time of a fork.
pub fn hold() {
    ALL.hold();
}

/// Ends [`hold`].
pub fn release() {
    ALL.release();
}

fn place(handle: usize) -> usize {
    (handle >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - ROOM.trailing_zeros())
}

/// The kernel of a handle, if it is known.
#[inline]
pub fn known(handle: Handle) -> Option<Known> {
    let wanted = handle as usize;
    let mut at = place(wanted);
    for _ in 0..ROOM {
        let entry = &TABLE[at];
        match entry.handle.load(Ordering::Acquire) {
            0 => return None,
            other if other == wanted => {
                // SAFETY: functions are never freed.
                let function = unsafe { entry.function.load(Ordering::Acquire).as_ref() };
                return function.map(|function| Known { function, entry });
            }
            _ => at = (at + 1) % ROOM,
        }
    }
    None
}

/// The kernel of a launched handle. If the driver must be asked for its name, that is done once.
#[inline]
pub fn of(handle: Handle) -> Option<Known> {
    known(handle).or_else(|| ask(handle))
}

#[cold]
fn ask(handle: Handle) -> Option<Known> {
    let mut name: *const c_char = ptr::null();
    let mut owner: Handle = ptr::null_mut();
    // SAFETY: the program launches it, so it is a function or a kernel.
    unsafe {
        if real::cuFuncGetName(&raw mut name, handle) == SUCCESS && !name.is_null() {
            let _ = real::cuFuncGetModule(&raw mut owner, handle);
        } else if real::cuKernelGetName(&raw mut name, handle) == SUCCESS && !name.is_null() {
            let _ = real::cuKernelGetLibrary(&raw mut owner, handle);
        } else {
            return None;
        }
        let name = CStr::from_ptr(name).to_string_lossy().into_owned();
        register(handle, owner, name)
    }
}

/// A handle refers to a kernel of this name in a module or library. A kernel with the same name and image is the same, whatever
/// its handle.
pub fn register(handle: Handle, owner: Handle, name: String) -> Option<Known> {
    if handle.is_null() {
        return None;
    }
    let image = images::of(owner);
    let mut all = ALL.take();
    let same = all
        .iter()
        .find(|other| other.name == name && other.image == image);
    let function: &'static Function = match same {
        Some(function) => function,
        None => {
            let function = Box::leak(Box::new(Function {
                counts: record::function(image, &name),
                name,
                image,
                launches: AtomicU64::new(0),
                kinds: Kinds::new(),
                better: Lock::new(Vec::new()),
                parameters: OnceLock::new(),
            }));
            all.push(function);
            function
        }
    };
    insert(handle as usize, owner as usize, function)
}

/// The mark of an owner whose handle ends with a context, though its library stays. Handles are even.
const OF_A_CONTEXT: usize = 1;

/// Another handle of a kernel: its function in a context.
pub fn alias(handle: Handle, of: Handle) {
    if let Some(known) = known(of).filter(|_| handle != of) {
        let _all = ALL.take();
        let owner = known.entry.owner.load(Ordering::Relaxed) | OF_A_CONTEXT;
        if let Some(alias) = insert(handle as usize, owner, known.function) {
            let same = known.entry.replacements.load(Ordering::Acquire);
            alias.entry.replacements.store(same, Ordering::Release);
        }
    }
}

/// A module or library is gone, and with it its handles.
pub fn forget(owner: Handle) {
    forget_those(|of| of & !OF_A_CONTEXT == owner as usize);
}

/// A context is gone, and all handles may be but those of libraries.
pub fn forget_modules(libraries: &HashSet<usize>) {
    forget_those(|of| !libraries.contains(&of));
}

fn forget_those(is_gone: impl Fn(usize) -> bool) {
    let _all = ALL.take();
    for entry in &TABLE {
        if entry.handle.load(Ordering::Acquire) != 0 && is_gone(entry.owner.load(Ordering::Relaxed)) {
            entry.function.store(ptr::null_mut(), Ordering::Release);
            entry.replacements.store(ptr::null_mut(), Ordering::Release);
        }
    }
}

/// Puts a handle into the table; none if it is full. The lock is held.
fn insert(handle: usize, owner: usize, function: &'static Function) -> Option<Known> {
    let mut at = place(handle);
    for _ in 0..ROOM {
        let entry = &TABLE[at];
        let there = entry.handle.load(Ordering::Acquire);
        if there == 0 || there == handle {
            let known = Known { function, entry };
            if !known.is(owner) {
                // The driver has given the handle of something that is gone.
                entry.replacements.store(ptr::null_mut(), Ordering::Release);
            }
            entry.owner.store(owner, Ordering::Relaxed);
            entry
                .function
                .store(ptr::from_ref(function).cast_mut(), Ordering::Release);
            entry.handle.store(handle, Ordering::Release);
            return Some(known);
        }
        at = (at + 1) % ROOM;
    }
    None
}

impl Known {
    /// Whether the entry has been of this kernel of this owner before.
    fn is(&self, owner: usize) -> bool {
        self.entry.owner.load(Ordering::Relaxed) == owner
            && ptr::eq(self.entry.function.load(Ordering::Acquire), self.function)
    }

    /// Its replacements.
    #[inline]
    pub fn replacements(&self) -> Option<&'static Replacements> {
        // SAFETY: replacements are never freed.
        unsafe { self.entry.replacements.load(Ordering::Acquire).as_ref() }
    }

    /// From now on these run in its place.
    pub fn replace(&self, replacements: &'static Replacements) {
        let replacements = ptr::from_ref(replacements).cast_mut();
        self.entry.replacements.store(replacements, Ordering::Release);
    }
}

impl Function {
    /// Where the launches of one of its better kernels are counted, by that one's file.
    pub fn better(&self, file: &str) -> &'static Counts {
        let mut all = self.better.take();
        match all.iter().find(|(own, _)| own == file) {
            Some((_, counts)) => counts,
            None => {
                let counts = record::better(self.image, &self.name, file);
                all.push((file.to_owned(), counts));
                counts
            }
        }
    }

    /// Offset and size of each parameter, in bytes, as the driver says; nothing from drivers before 12.4.
    pub fn parameters(&self, handle: Handle) -> Option<&[(usize, usize)]> {
        self.parameters.get_or_init(|| parameters(handle)).as_deref()
    }
}

fn parameters(handle: Handle) -> Option<Vec<(usize, usize)>> {
    let mut found = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: a handle that the program launches.
        let result = unsafe {
            match real::cuFuncGetParamInfo(handle, found.len(), &raw mut offset, &raw mut size) {
                SUCCESS => SUCCESS,
                _ => real::cuKernelGetParamInfo(handle, found.len(), &raw mut offset, &raw mut size),
            }
        };
        match result {
            SUCCESS => found.push((offset, size)),
            crate::abi::NOT_FOUND => return None,
            // The driver says that there is no further one.
            _ => return Some(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_known_as_long_as_its_owner_is_there() {
        crate::settings::turn_off();
        let (module, library) = (0x1000 as Handle, 0x2000 as Handle);
        let (own, kernel, function) = (0x10_0010 as Handle, 0x10_0020 as Handle, 0x10_0030 as Handle);
        register(own, module, "one".to_owned()).expect("room");
        register(kernel, library, "two".to_owned()).expect("room");
        alias(function, kernel);
        let name = |handle| known(handle).map(|known| known.function.name.as_str());
        assert_eq!(
            [own, kernel, function].map(name),
            [Some("one"), Some("two"), Some("two")]
        );
        // A context ends: its modules and functions are gone, and the library's kernel is not.
        forget_modules(&HashSet::from([library as usize]));
        assert_eq!([own, kernel, function].map(name), [None, Some("two"), None]);
        // The driver gives a handle again.
        register(own, module, "three".to_owned()).expect("room");
        alias(function, kernel);
        assert_eq!([own, function].map(name), [Some("three"), Some("two")]);
        forget(library);
        assert_eq!([own, kernel, function].map(name), [Some("three"), None, None]);
    }
}
