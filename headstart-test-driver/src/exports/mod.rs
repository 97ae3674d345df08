//! The driver's functions, as programs see them.
//!
//! Each checks its arguments as far as a driver does, and returns "not supported" for everything else.
//!
//! | file | what it has |
//! |---|---|
//! | `device` | devices and contexts |
//! | `modules` | modules, libraries, functions and kernels |
//! | `links` | linking |
//! | `memory` | allocations, copies, fills |
//! | `streams` | streams, graphs, events, launches |

/// Exports a function. Its arguments have the types of its row, or those that are given; many mean nothing to a simulator.
macro_rules! export {
    ($name:ident ($($own:ident),*) $body:block) => { $name! { export! $name ($($own),*) $body } };
    ($name:ident ($($own:ident),*) $body:block; ($($ty:ty),*) $twin:tt) => {
        export! { @ $name ($($own: $ty),*) $body }
    };
    ($name:ident $typed:tt $body:block) => { export! { @ $name $typed $body } };
    (@ $name:ident ($($own:ident: $ty:ty),* $(,)?) $body:block) => {
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, unused_variables, clippy::too_many_arguments, clippy::missing_safety_doc, missing_docs)]
        pub unsafe extern "C" fn $name($($own: $ty),*) -> CUresult {
            // SAFETY: the program's arguments are as the driver's documentation requires; pointers that may be null are
            // checked first.
            #[allow(unused_unsafe)]
            unsafe { $body }
        }
    };
}

/// Exports functions, and lists them by name.
macro_rules! exported {
    ($($name:ident $arguments:tt $body:block)*) => {
        $(export! { $name $arguments $body })*

        pub(in crate::exports) static EXPORTS: &[Export] = &[$(
            Export { name: stringify!($name), address: $name as *const c_void },
        )*];
    };
}

mod device;
mod links;
mod memory;
mod modules;
mod streams;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use crate::abi::{CUresult, INVALID_VALUE, NOT_FOUND, SUCCESS, result_name};

pub use memory::copy;

/// A function's name and address.
struct Export {
    name: &'static str,
    address: *const c_void,
}

// SAFETY: the address of a function is the same for all threads.
unsafe impl Sync for Export {}

/// The version that the driver says it has: 13.0.
const VERSION: c_int = 13000;

/// Writes an answer, unless there is no place for it.
unsafe fn answer<T>(to: *mut T, value: T) -> CUresult {
    match to.is_null() {
        true => INVALID_VALUE,
        false => {
            // SAFETY: the program's place for it.
            unsafe { to.write_unaligned(value) };
            SUCCESS
        }
    }
}

/// Writes an answer that may be an error.
unsafe fn answered<T>(to: *mut T, value: Result<T, CUresult>) -> CUresult {
    match value {
        // SAFETY: as above.
        Ok(value) => unsafe { answer(to, value) },
        Err(error) => error,
    }
}

unsafe fn name_of<'n>(name: *const c_char) -> Option<&'n str> {
    match name.is_null() {
        true => None,
        // SAFETY: a C string.
        false => unsafe { CStr::from_ptr(name) }.to_str().ok(),
    }
}

unsafe fn bytes_of<'b>(from: *const c_void, length: usize) -> &'b [u8] {
    match length {
        0 => &[],
        // SAFETY: the program has this many bytes there.
        _ => unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length) },
    }
}

/// The newest of a function's versions.
fn find_export(name: &str) -> Option<&'static Export> {
    let lists = [
        EXPORTS,
        device::EXPORTS,
        modules::EXPORTS,
        links::EXPORTS,
        memory::EXPORTS,
        streams::EXPORTS,
    ];
    let of = |name: &str| {
        lists
            .iter()
            .flat_map(|list| list.iter())
            .find(|own| own.name == name)
    };
    let newest = ["_v4", "_v3", "_v2"]
        .iter()
        .find_map(|version| of(&format!("{name}{version}")));
    newest.or_else(|| of(name))
}

exported! {
    cuInit(flags) {
        match flags {
            0 => SUCCESS,
            _ => INVALID_VALUE,
        }
    }
    cuDriverGetVersion(version) { answer(version, VERSION) }
    cuGetProcAddress_v2(name, function, version, flags, status) {
        let found = name_of(name).and_then(find_export);
        if !status.is_null() {
            // CU_GET_PROC_ADDRESS_SUCCESS or …_SYMBOL_NOT_FOUND.
            *status = c_int::from(found.is_none());
        }
        match found {
            Some(own) => answer(function, own.address.cast_mut()),
            None => {
                let _ = answer(function, ptr::null_mut());
                NOT_FOUND
            }
        }
    }
    cuGetProcAddress(name, function, version, flags) {
        cuGetProcAddress_v2(name, function, version, flags, ptr::null_mut())
    }
    cuGetExportTable(table: *mut *const c_void, id: *const c_void) {
        let _ = answer(table, ptr::null());
        NOT_FOUND
    }
    cuGetErrorName(error: CUresult, text: *mut *const c_char) { answer(text, result_name(error).as_ptr()) }
    cuGetErrorString(error: CUresult, text: *mut *const c_char) { answer(text, result_name(error).as_ptr()) }
}
