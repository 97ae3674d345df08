//! Addresses of the program's variables, for better kernels that use them.
//!
//! A rewritten module has its own copies of the program's variables, and must use the program's instead. The better kernel
//! reads their addresses from constant variables, one for each, which are filled here when the program requests its kernel. A
//! context has its own instances of a library's variables, so the addresses are valid in that context alone, and as long as no
//! context ends: a new one may reuse the handle of an old one.

use std::ffi::{CString, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::{DevicePtr, Handle, SUCCESS};
use crate::launches::Launch;
use crate::{events, real};

/// `CU_STREAM_NON_BLOCKING`: the stream waits for no other.
const NON_BLOCKING: u32 = 1;
/// Handles of streams that belong to the current context: the default ones.
const DEFAULT_STREAMS: usize = 2;

/// How many times contexts have ended.
static ENDS: AtomicU64 = AtomicU64::new(0);

/// A variable of our module that holds the address of one of the program's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptAddress {
    /// The variable of ours.
    pub kept_in: String,
    /// The program's.
    pub of: String,
}

/// Where addresses that were filled are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    context: usize,
    ends: u64,
}

impl Validity {
    /// Whether they are for a launch.
    pub fn is_now(self, launch: &Launch) -> bool {
        let context = match launch.stream as usize {
            0..=DEFAULT_STREAMS => events::context(),
            _ => {
                let mut context = ptr::null_mut();
                // SAFETY: the program's stream, and a place for a handle, which stays null where there is none.
                let _ = unsafe { real::cuStreamGetCtx(launch.stream, &raw mut context) };
                context as usize
            }
        };
        context == self.context && ENDS.load(Ordering::Acquire) == self.ends
    }
}

/// A context has ended.
pub fn forget() {
    ENDS.fetch_add(1, Ordering::AcqRel);
}

/// Gives a library of ours the addresses of variables of the program's module, or library.
///
/// # Safety
/// The program's is of the kind that is said, and ours is a library.
pub unsafe fn keep(
    all: &[KeptAddress],
    (program, is_library): (Handle, bool),
    own: Handle,
) -> Result<Validity, String> {
    let ends = ENDS.load(Ordering::Acquire);
    let context = events::context();
    if context == 0 {
        return Err("its variables have no addresses before there is a context".to_owned());
    }
    let mut stream = ptr::null_mut();
    // SAFETY: a place for a handle.
    let made = unsafe { real::cuStreamCreate(&raw mut stream, NON_BLOCKING) };
    said(made, "a stream")?;
    let filled = all.iter().try_for_each(|address| {
        // SAFETY: the caller's.
        let (from, _) = unsafe { variable(program, is_library, &address.of)? };
        // SAFETY: the caller's.
        let (to, bytes) = unsafe { variable(own, true, &address.kept_in)? };
        if bytes != size_of::<DevicePtr>() {
            return Err(format!("variable `{}` holds no address", address.kept_in));
        }
        let source = ptr::from_ref(&from).cast::<c_void>();
        // SAFETY: a variable of ours of this size, and as many bytes here, which live until the stream is done.
        let result = unsafe {
            match real::cuMemcpyHtoDAsync_v2(to, source, bytes, stream) {
                SUCCESS => real::cuStreamSynchronize(stream),
                other => other,
            }
        };
        said(result, &format!("variable `{}`", address.kept_in))
    });
    // SAFETY: a stream of ours with nothing in it.
    let _ = unsafe { real::cuStreamDestroy_v2(stream) };
    filled.map(|()| Validity { context, ends })
}

/// Address and bytes of a variable of a module or library.
///
/// # Safety
/// It is the one that `is_library` says.
pub unsafe fn variable(owner: Handle, is_library: bool, name: &str) -> Result<(DevicePtr, usize), String> {
    let own = CString::new(name).map_err(|error| error.to_string())?;
    let (mut start, mut bytes) = (0, 0);
    // SAFETY: places for the answers; the caller's module or library.
    let result = unsafe {
        match is_library {
            true => real::cuLibraryGetGlobal(&raw mut start, &raw mut bytes, owner, own.as_ptr()),
            false => real::cuModuleGetGlobal_v2(&raw mut start, &raw mut bytes, owner, own.as_ptr()),
        }
    };
    said(result, &format!("variable `{name}`")).map(|()| (start, bytes))
}

fn said(result: c_int, what: &str) -> Result<(), String> {
    match result {
        SUCCESS => Ok(()),
        other => Err(format!("the driver refused {what} with error {other}")),
    }
}
