//! Libraries of ours beside the program's modules and libraries, one for each better kernel.
//!
//! CUDA's runtime loads a module within the first launch of one of its kernels. Loading ours then, and compiling text, would be
//! part of that launch. A library needs no module of the program's: ours are loaded as soon as the program has a context, when it
//! first gets memory or loads an image.

use std::collections::HashSet;
use std::ffi::{CString, c_int, c_void};
use std::fs;
use std::ptr;
use std::sync::{Once, OnceLock};

use crate::abi::{Handle, SUCCESS};
use crate::facts::{Better, LeftOut, read};
use crate::lock::Lock;
use crate::settings::{self, Mode};
use crate::{addresses, events, real, record};

/// A better kernel that is loaded, and its library.
#[derive(Clone, Copy)]
pub(super) struct Side {
    pub library: usize,
    pub kernel: usize,
}

/// A library of ours, and the module or library of the program's whose variables' addresses it keeps; 0 for none.
struct Loaded {
    side: Side,
    owner: usize,
}

/// By the better kernel's number in the table.
static ALL: Lock<Vec<Vec<Loaded>>> = Lock::new(Vec::new());
/// The first thread loads; others wait for it, or their kernels would be found without a better one.
static LOADING: Once = Once::new();

/// Holds the lock for the time of a fork.
pub fn hold() {
    ALL.hold();
}

/// Ends [`hold`].
pub fn release() {
    ALL.release();
}

/// The kernels that have a better one.
pub(super) fn table() -> &'static [Better] {
    static TABLE: OnceLock<Vec<Better>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let text = fs::read_to_string(settings::get().folder.join("exec.txt")).unwrap_or_default();
        let mut better = Vec::new();
        for read in read(&text) {
            match read {
                Ok(own) => better.push(own),
                Err(LeftOut { name, why }) => record::line(&["trouble", &name, &why]),
            }
        }
        better
    })
}

/// Loads all better kernels, if that was not done and the program has a context.
#[inline]
pub fn begin() {
    if !LOADING.is_completed() && settings::mode() == Mode::Exec && events::context() != 0 {
        load_once();
    }
}

/// Loads all better kernels now, if that was not done: the program asks for one of its own.
pub(super) fn load_once() {
    LOADING.call_once(load_all);
}

#[cold]
fn load_all() {
    let loaded = table().iter().map(|better| {
        if let Some((driver, capability)) = better.machine.filter(|wanted| !is_machine(*wanted)) {
            let why = format!(
                "it was tuned with driver {driver} for compute capability {capability}, and other machine code may fuse other products"
            );
            record::line(&["trouble", &better.name, &why]);
            return Vec::new();
        }
        new(better).into_iter().collect()
    });
    let loaded: Vec<Vec<Loaded>> = loaded.collect();
    *ALL.take() = loaded;
}

/// A library of ours with a better kernel.
fn new(better: &Better) -> Option<Loaded> {
    match events::relaxed(|| load(better)) {
        Ok(side) => Some(Loaded { side, owner: 0 }),
        Err(why) => {
            record::line(&["trouble", &better.name, &why]);
            None
        }
    }
}

/// The better kernel of this number for a module or library of the program's. One that keeps addresses is for one of these at a
/// time.
pub(super) fn of(owner: Handle, number: usize) -> Option<Side> {
    let better = table().get(number)?;
    let owner = owner as usize;
    let own = {
        let mut all = ALL.take();
        let loaded = all.get_mut(number)?;
        // It could not be loaded, or is for another machine.
        loaded.first()?;
        let found = match better.addresses.is_empty() {
            true => loaded.first_mut(),
            false => {
                let number = loaded
                    .iter()
                    .position(|own| own.owner == owner)
                    .or_else(|| loaded.iter().position(|own| own.owner == 0));
                number.map(|number| &mut loaded[number])
            }
        };
        found.map(|own| {
            own.owner = owner;
            own.side
        })
    };
    own.or_else(|| {
        let new = new(better)?;
        let side = new.side;
        ALL.take().get_mut(number)?.push(Loaded { owner, ..new });
        Some(side)
    })
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
fn load(better: &Better) -> Result<Side, String> {
    let of = |file: &str| load_file(file, better);
    let assembled = better.assembled.as_deref().and_then(|file| of(file).ok());
    assembled.map_or_else(|| of(&better.file), Ok)
}

fn load_file(file: &str, better: &Better) -> Result<Side, String> {
    let path = settings::get().folder.join(file);
    let mut bytes = fs::read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    // Text ends with a zero.
    bytes.push(0);
    let entry = CString::new(better.entry.as_str()).map_err(|error| error.to_string())?;
    let image = bytes.as_ptr().cast::<c_void>();
    let (mut library, mut kernel) = (ptr::null_mut(), ptr::null_mut());
    let none = ptr::null_mut;
    // SAFETY: an image of ours, which the driver copies, and places for the handles.
    let result = unsafe {
        match real::cuLibraryLoadData(
            &raw mut library,
            image,
            ptr::null_mut(),
            none(),
            0,
            ptr::null_mut(),
            none(),
            0,
        ) {
            SUCCESS => real::cuLibraryGetKernel(&raw mut kernel, library, entry.as_ptr()),
            other => other,
        }
    };
    if result != SUCCESS {
        return Err(format!("the driver refused {file} with error {result}"));
    }
    // Where loading is lazy it is done now.
    if let Some(function) = function(kernel) {
        load_now(function);
    }
    Ok(Side {
        library: library as usize,
        kernel: kernel as usize,
    })
}

/// A kernel's function in the current context; none if there is no context.
pub(super) fn function(kernel: Handle) -> Option<Handle> {
    let mut function = ptr::null_mut();
    // SAFETY: a kernel, and a place for a handle.
    let found = events::relaxed(|| unsafe { real::cuKernelGetFunction(&raw mut function, kernel) });
    (found == SUCCESS).then_some(function)
}

/// Loads a function of the current context, if it is not: its first launch need not.
pub(super) fn load_now(function: Handle) {
    // SAFETY: a function.
    let _ = events::relaxed(|| unsafe { real::cuFuncLoad(function) });
}

/// A module or library of the program is about to go: what kept its addresses is free for another one.
pub fn unloaded(owner: Handle) {
    leave(|own| own == owner as usize);
}

/// A context is gone, and with it all modules in it.
pub fn forget_modules(libraries: &HashSet<usize>) {
    addresses::forget();
    leave(|own| !libraries.contains(&own));
}

fn leave(is_gone: impl Fn(usize) -> bool) {
    for own in ALL.take().iter_mut().flatten() {
        if is_gone(own.owner) {
            own.owner = 0;
        }
    }
}
