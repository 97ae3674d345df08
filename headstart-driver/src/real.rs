//! The driver itself.
//!
//! Its functions are found by `dlsym` on the handle of `libcuda.so.1`, so that the exports of this library are never in the way,
//! and kept. One that the driver has not answers as the driver would: not found.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::{CUresult, DevicePtr, Handle, LaunchConfig, NOT_FOUND, NodeParameters, SUCCESS};

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The system's `dlsym`, once it is known. The exported one jumps there.
pub static DLSYM: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static DRIVER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Versions of the system's library in which `dlsym` is: newer systems, x86-64, aarch64.
const VERSIONS: [&CStr; 3] = [c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"];

/// Finds the system's `dlsym`, which this library hides.
pub extern "C" fn find_dlsym() -> *mut c_void {
    let known = DLSYM.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    for version in VERSIONS {
        // SAFETY: both are C strings; `dlvsym` is not hidden.
        let found = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
        if !found.is_null() {
            DLSYM.store(found, Ordering::Release);
            return found;
        }
    }
    ptr::null_mut()
}

/// The result of the system's `dlsym`.
///
/// # Safety
/// As for `dlsym`.
pub unsafe fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    let found = find_dlsym();
    if found.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: it is `dlsym`; the caller's arguments are right for it.
    unsafe { std::mem::transmute::<*mut c_void, Dlsym>(found)(handle, name) }
}

/// The driver's library; null if there is none. `load` says whether it may be loaded now.
pub fn driver(load: bool) -> *mut c_void {
    let known = DRIVER.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let flags = libc::RTLD_LAZY | if load { 0 } else { libc::RTLD_NOLOAD };
    // SAFETY: a C string; the driver's library may be loaded at any time.
    let handle = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), flags) };
    if !handle.is_null() {
        DRIVER.store(handle, Ordering::Release);
    }
    handle
}

/// The driver's function of a name; null if it has none.
pub fn symbol(name: &CStr) -> *mut c_void {
    let driver = driver(true);
    if driver.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: the handle is the driver's, the name a C string.
    unsafe { dlsym(driver, name.as_ptr()) }
}

/// Looks up a function once.
#[inline]
pub fn kept(slot: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = slot.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    let found = symbol(name);
    slot.store(found, Ordering::Relaxed);
    found
}

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `…_MINOR`.
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;

/// The compute capability of a device: 90 for 9.0; nothing if the driver does not say.
pub fn capability(device: c_int) -> Option<u32> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: places for the answers.
    let known = unsafe {
        cuDeviceGetAttribute(&raw mut major, CAPABILITY_MAJOR, device) == SUCCESS
            && cuDeviceGetAttribute(&raw mut minor, CAPABILITY_MINOR, device) == SUCCESS
    };
    u32::try_from(major * 10 + minor).ok().filter(|_| known)
}

/// A function of the driver.
macro_rules! function {
    ($name:ident ($($argument:ident: $ty:ty),*)) => {
        /// The driver's function of this name.
        ///
        /// # Safety
        /// As the driver's documentation says.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub unsafe fn $name($($argument: $ty),*) -> CUresult {
            static SLOT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
            let found = kept(&SLOT, name!($name));
            if found.is_null() {
                return NOT_FOUND;
            }
            // SAFETY: the driver's function of this name takes these arguments.
            unsafe {
                let function: unsafe extern "C" fn($($ty),*) -> CUresult = std::mem::transmute(found);
                function($($argument),*)
            }
        }
    };
}

/// All of them, with their variants.
macro_rules! functions {
    ($($name:ident $arguments:tt [$($twin:ident)?] $rule:tt;)*) => {
        $(
            function! { $name $arguments }
            $(function! { $twin $arguments })?
        )*
    };
}

every_function!(functions);
