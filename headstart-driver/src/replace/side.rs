//! Modules and libraries of ours beside the program's: loaded when it loads an image that has a better kernel, gone with it.

use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::fs;
use std::ptr;
use std::sync::OnceLock;

use crate::abi::{Handle, SUCCESS};
use crate::facts::{Better, read};
use crate::images::ImageHash;
use crate::lock::Lock;
use crate::settings::{self, Mode};
use crate::{addresses, events, real, record};

/// Modules and libraries of ours, by the program's module or library and the name of its kernel.
static SIDE: Lock<Option<HashMap<(usize, String), Side>>> = Lock::new(None);

/// A better kernel, and the module or library of ours that it is of.
#[derive(Clone, Copy)]
pub(super) struct Side {
    pub owner: usize,
    pub kernel: usize,
    pub is_library: bool,
}

/// What was loaded for a kernel of the program's module or library.
pub(super) fn of(owner: Handle, name: &str) -> Option<Side> {
    let key = (owner as usize, name.to_owned());
    SIDE.take().as_ref()?.get(&key).copied()
}

/// Holds the lock for the time of a fork.
pub fn hold() {
    SIDE.hold();
}

/// Ends [`hold`].
pub fn release() {
    SIDE.release();
}

/// The kernels that have a better one.
pub(super) fn table() -> &'static [Better] {
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
