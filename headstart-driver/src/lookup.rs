//! Every way in which a program gets a function's address: `dlsym`, and the driver's own `cuGetProcAddress`.
//!
//! The driver answers `cuGetProcAddress` by name, version and flags. Its answer identifies the variant: it is the address of
//! one of the exported functions. If it is none of them, [`RULES`] decide, as in the header.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use crate::compilers;
use crate::exports::WRAPPERS;
use crate::real;
use crate::settings::{self, Mode};

/// A function that this library has in the driver's place.
pub struct Wrapper {
    /// Its name.
    pub name: &'static CStr,
    /// Its address.
    pub address: *const c_void,
}

impl Wrapper {
    /// One of this library's functions.
    pub const fn new(name: &'static CStr, address: *const c_void) -> Wrapper {
        Wrapper { name, address }
    }
}

// SAFETY: the address of a function is the same for all threads.
unsafe impl Sync for Wrapper {}

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD: u64 = 2;

macro_rules! rules {
    ($($name:ident $arguments:tt $twin:tt [$($base:ident $since:literal)?];)*) => {
        &[$($((stringify!($base), $since, stringify!($name)),)?)*]
    };
}

/// Names whose meaning depends on the version that a program was compiled for: from which one on a name means which function.
/// Others have been the same since they exist.
const RULES: &[(&str, c_int, &str)] = every_function!(rules);

fn wrappers() -> impl Iterator<Item = &'static Wrapper> {
    WRAPPERS.iter().copied().flatten()
}

/// This library's function of a name.
fn wrapper(name: &[u8]) -> Option<&'static Wrapper> {
    wrappers().find(|wrapper| wrapper.name.to_bytes() == name)
}

/// This library's function for a program's `cuGetProcAddress`.
fn by_rule(name: &str, version: c_int, flags: u64) -> Option<&'static Wrapper> {
    if flags & PER_THREAD != 0
        && let Some(own) = wrapper(format!("{name}_ptsz").as_bytes())
    {
        return Some(own);
    }
    match RULES.iter().find(|(base, ..)| *base == name) {
        Some(&(_, since, own)) if version >= since => wrapper(own.as_bytes()),
        // Its former meaning is usually older than all versions that matter.
        _ => wrapper(name.as_bytes()),
    }
}

/// The addresses that the driver has for each function of this library.
fn addresses() -> &'static [(usize, &'static Wrapper)] {
    static ADDRESSES: OnceLock<Vec<(usize, &'static Wrapper)>> = OnceLock::new();
    ADDRESSES.get_or_init(|| {
        let address = |wrapper: &'static Wrapper| (real::symbol(wrapper.name) as usize, wrapper);
        let mut all: Vec<_> = wrappers()
            .map(address)
            .filter(|(address, _)| *address != 0)
            .collect();
        all.sort_by_key(|(address, _)| *address);
        all
    })
}

/// This library's function for one of the driver's.
fn by_address(address: *mut c_void) -> Option<&'static Wrapper> {
    let all = addresses();
    let found = all
        .binary_search_by_key(&(address as usize), |(address, _)| *address)
        .ok()?;
    Some(all[found].1)
}

/// The answer to a program that has asked the driver for a function.
///
/// # Safety
/// The driver has accepted the arguments.
pub unsafe fn answer(name: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64) {
    if name.is_null() || function.is_null() {
        return;
    }
    // SAFETY: the driver has read the name and written the address, so both are there.
    unsafe {
        if (*function).is_null() {
            return;
        }
        let by_name = || by_rule(CStr::from_ptr(name).to_str().ok()?, version, flags);
        if let Some(own) = by_address(*function).or_else(by_name) {
            *function = own.address.cast_mut();
        }
    }
}

/// `dlsym` for all handles but `RTLD_NEXT`.
///
/// # Safety
/// As for `dlsym`.
unsafe extern "C" fn ask(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: the program's arguments.
    let found = unsafe { real::dlsym(handle, name) };
    if found.is_null() || name.is_null() {
        return found;
    }
    // SAFETY: the system has read the name.
    let name = unsafe { CStr::from_ptr(name) };
    if let Some(own) = compilers::instead(handle, name, found) {
        return own;
    }
    if !name.to_bytes().starts_with(b"cu") {
        return found;
    }
    let Some(own) = wrapper(name.to_bytes()) else {
        return found;
    };
    if found.cast_const() == own.address {
        // Asked of the whole program, where this library comes first. Without a driver the answer is that there is none.
        return match real::driver(false).is_null() {
            true => ptr::null_mut(),
            false => found,
        };
    }
    let is_drivers = !real::driver(false).is_null() && found == real::symbol(name);
    match is_drivers && settings::mode() != Mode::Off {
        true => own.address.cast_mut(),
        false => found,
    }
}

/// The system's `dlsym` resolves `RTLD_NEXT` by its caller. So this jumps there for `RTLD_NEXT`, and leaves no frame of this
/// library on the stack; all other look-ups may come from here.
///
/// # Safety
/// As for `dlsym`.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "cmp rdi, -1",
        "je 2f",
        "jmp {ask}",
        "2:",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {find}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "je 3f",
        "jmp rax",
        "3:",
        "ret",
        ask = sym ask,
        find = sym real::find_dlsym,
    )
}

/// As on x86-64.
///
/// # Safety
/// As for `dlsym`.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "cmn x0, #1",
        "b.eq 2f",
        "b {ask}",
        "2:",
        "stp x29, x30, [sp, #-32]!",
        "stp x0, x1, [sp, #16]",
        "bl {find}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "cbz x16, 3f",
        "br x16",
        "3:",
        "mov x0, #0",
        "ret",
        ask = sym ask,
        find = sym real::find_dlsym,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_what_the_version_says() {
        let found = |name: &str, version, flags| {
            by_rule(name, version, flags).map(|own| own.name.to_str().expect("ASCII"))
        };
        assert_eq!(found("cuMemAlloc", 13000, 0), Some("cuMemAlloc_v2"));
        assert_eq!(found("cuMemAlloc", 2000, 0), None);
        assert_eq!(found("cuGetProcAddress", 11030, 0), Some("cuGetProcAddress"));
        assert_eq!(found("cuGetProcAddress", 12000, 0), Some("cuGetProcAddress_v2"));
        assert_eq!(
            found("cuLaunchKernel", 7000, PER_THREAD),
            Some("cuLaunchKernel_ptsz")
        );
        assert_eq!(found("cuLaunchKernel", 4000, 0), Some("cuLaunchKernel"));
        assert_eq!(
            found("cuModuleLoadData", 4000, PER_THREAD),
            Some("cuModuleLoadData")
        );
        assert_eq!(found("cuTexObjectCreate", 13000, 0), None);
    }

    #[test]
    fn what_the_whole_program_is_asked_for_is_not_there_without_a_driver() {
        // SAFETY: C strings and a handle that `dlsym` knows.
        unsafe {
            let strlen = dlsym(libc::RTLD_DEFAULT, c"strlen".as_ptr());
            assert_eq!(
                strlen as usize,
                real::dlsym(libc::RTLD_DEFAULT, c"strlen".as_ptr()) as usize
            );
            assert!(!strlen.is_null());
            assert!(!dlsym(libc::RTLD_NEXT, c"strlen".as_ptr()).is_null());
            assert!(dlsym(libc::RTLD_DEFAULT, c"headstart_has_no_such_name".as_ptr()).is_null());
        }
    }
}
