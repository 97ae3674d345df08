//! Which kernel a handle is.
//!
//! A launch must find its kernel in a few nanoseconds, from any thread: the table is an array of atomics, read without a lock.
//! A `CUkernel` may be passed as a `CUfunction`, so both are in it.

use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::abi::{Handle, SUCCESS};
use crate::images::{self, ImageHash};
use crate::lock::Lock;
use crate::real;
use crate::record::{self, Counts};
use crate::replace::Replacement;

/// Handles that the table has room for; a power of two.
const ROOM: usize = 1 << 14;

/// A kernel of the program.
pub struct Function {
    /// Its name in its image.
    pub name: String,
    /// The image that it is of, if that is known.
    pub image: Option<ImageHash>,
    /// What is counted of it, in a file that survives the program.
    pub counts: &'static Counts,
    /// Number of launches so far.
    pub launches: AtomicU64,
    /// What runs in its place.
    pub replacement: AtomicPtr<Replacement>,
    /// Offset and size of each parameter.
    parameters: OnceLock<Option<Vec<(usize, usize)>>>,
}

struct Entry {
    handle: AtomicUsize,
    function: AtomicPtr<Function>,
}

static TABLE: [Entry; ROOM] = [const {
    Entry {
        handle: AtomicUsize::new(0),
        function: AtomicPtr::new(ptr::null_mut()),
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
pub fn known(handle: Handle) -> Option<&'static Function> {
    let wanted = handle as usize;
    let mut at = place(wanted);
    for _ in 0..ROOM {
        let entry = &TABLE[at];
        match entry.handle.load(Ordering::Acquire) {
            0 => return None,
            other if other == wanted => {
                // SAFETY: functions are never freed.
                return unsafe { entry.function.load(Ordering::Acquire).as_ref() };
            }
            _ => at = (at + 1) % ROOM,
        }
    }
    None
}

/// The kernel of a handle that is launched. One whose name the driver must be asked for is asked for once.
#[inline]
pub fn of(handle: Handle) -> Option<&'static Function> {
    known(handle).or_else(|| ask(handle))
}

#[cold]
fn ask(handle: Handle) -> Option<&'static Function> {
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
        register(handle, images::of(owner), name)
    }
}

/// A handle leads to a kernel of this name. One with the same name and image is the same, whatever its handle.
pub fn register(handle: Handle, image: Option<ImageHash>, name: String) -> Option<&'static Function> {
    if handle.is_null() {
        return None;
    }
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
                replacement: AtomicPtr::new(ptr::null_mut()),
                parameters: OnceLock::new(),
            }));
            all.push(function);
            function
        }
    };
    insert(handle as usize, function).then_some(function)
}

/// Another handle of a kernel.
pub fn alias(handle: Handle, of: Handle) {
    if let Some(function) = known(of) {
        let _all = ALL.take();
        insert(handle as usize, function);
    }
}

/// Puts a handle into the table; false if it is full. The lock is held.
fn insert(handle: usize, function: &'static Function) -> bool {
    let mut at = place(handle);
    for _ in 0..ROOM {
        let entry = &TABLE[at];
        match entry.handle.load(Ordering::Acquire) {
            0 => {
                entry
                    .function
                    .store(ptr::from_ref(function).cast_mut(), Ordering::Release);
                entry.handle.store(handle, Ordering::Release);
                return true;
            }
            // The driver gives the handles of unloaded modules again.
            other if other == handle => {
                entry
                    .function
                    .store(ptr::from_ref(function).cast_mut(), Ordering::Release);
                return true;
            }
            _ => at = (at + 1) % ROOM,
        }
    }
    false
}

impl Function {
    /// Offset and size of each parameter, in bytes, as the driver says; nothing from drivers before 12.4.
    pub fn parameters(&self, handle: Handle) -> Option<&[(usize, usize)]> {
        self.parameters.get_or_init(|| parameters(handle)).as_deref()
    }

    /// What runs in its place.
    #[inline]
    pub fn replacement(&self) -> Option<&'static Replacement> {
        // SAFETY: replacements are never freed.
        unsafe { self.replacement.load(Ordering::Acquire).as_ref() }
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
