//! Libraries that turn text into machine code in a program: nvJitLink and NVRTC.
//!
//! CuPy asks NVRTC for machine code, and Numba and XLA hand text to nvJitLink: what the driver loads then has no text. These
//! libraries are found by `dlsym`, so that what a program asks of them is seen here, and the text is remembered with the
//! machine code that came of it, as it is for the driver's own linker.
//!
//! ```text
//! nvJitLinkAddData(handle, PTX, text, …)      one more input of this link
//! nvJitLinkGetLinkedCubin(handle, code)       the machine code that came of them
//! nvrtcGetCUBIN(program, code)                machine code; nvrtcGetPTX of the same program has its text
//! ```
//!
//! A process may have several versions of a library, each with functions of its own: every one that a program asks for gets a
//! place here, and a function that knows its place. Programs that are linked to these libraries are not seen.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::Handle;
use crate::images;
use crate::real;
use crate::settings::{self, Mode};

/// Libraries of a kind that are told apart; what a program asks of further ones is not seen.
const PLACES: usize = 4;
/// `NVJITLINK_SUCCESS` and `NVRTC_SUCCESS`.
const DONE: c_int = 0;
/// `NVJITLINK_INPUT_PTX`.
const INPUT_PTX: c_int = 2;

type AddData = unsafe extern "C" fn(Handle, c_int, *const c_void, usize, *const c_char) -> c_int;
type AddFile = unsafe extern "C" fn(Handle, c_int, *const c_char) -> c_int;
type Get = unsafe extern "C" fn(Handle, *mut c_char) -> c_int;
type GetSize = unsafe extern "C" fn(Handle, *mut usize) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Handle) -> c_int;

/// The library's own functions, by place.
type Own = [AtomicPtr<c_void>; PLACES];

const fn nothing() -> Own {
    [const { AtomicPtr::new(ptr::null_mut()) }; PLACES]
}

static ADD_DATA: Own = nothing();
static ADD_FILE: Own = nothing();
static GET_LINKED: Own = nothing();
static DESTROY: Own = nothing();
static GET_CODE: Own = nothing();
/// The handles that the libraries with [`GET_CODE`] were asked by.
static LIBRARIES: Own = nothing();

/// A function that is looked at: its name, where the libraries' own are kept, and this library's, by place.
struct Watched {
    name: &'static str,
    own: &'static Own,
    ours: [*const c_void; PLACES],
}

/// This library's function for each place.
macro_rules! places {
    ($function:ident: $ty:ty) => {
        [
            $function::<0> as $ty as *const c_void,
            $function::<1> as $ty as *const c_void,
            $function::<2> as $ty as *const c_void,
            $function::<3> as $ty as *const c_void,
        ]
    };
}

fn watched() -> [Watched; 5] {
    let watched = |name, own, ours| Watched { name, own, ours };
    [
        watched("nvJitLinkAddData", &ADD_DATA, places!(add_data: AddData)),
        watched("nvJitLinkAddFile", &ADD_FILE, places!(add_file: AddFile)),
        watched("nvJitLinkGetLinkedCubin", &GET_LINKED, places!(get_linked: Get)),
        watched("nvJitLinkDestroy", &DESTROY, places!(destroy: Destroy)),
        watched("nvrtcGetCUBIN", &GET_CODE, places!(get_code: Get)),
    ]
}

/// A function's name without what its header adds for a version: `__nvJitLinkAddData_12_4`.
fn plain(name: &str) -> &str {
    let is_version = |c: char| c.is_ascii_digit() || c == '_';
    match name.strip_prefix("__") {
        Some(versioned) => versioned.trim_end_matches(is_version),
        None => name,
    }
}

/// What a program gets in the place of a compiler's function that it asked for; nothing for others.
pub fn instead(handle: *mut c_void, name: &CStr, found: *mut c_void) -> Option<*mut c_void> {
    let name = name.to_str().ok()?;
    if !name.trim_start_matches('_').starts_with("nv") || !is_watching() {
        return None;
    }
    let name = plain(name);
    let watched = watched().into_iter().find(|own| own.name == name)?;
    let place = place_of(watched.own, found)?;
    if name == "nvrtcGetCUBIN" {
        LIBRARIES[place].store(handle, Ordering::Release);
    }
    Some(watched.ours[place].cast_mut())
}

/// The place of a library's function: its own if it has one, else a free one.
fn place_of(own: &Own, found: *mut c_void) -> Option<usize> {
    (0..PLACES).find(|&place| {
        let taken = own[place].compare_exchange(ptr::null_mut(), found, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok() || taken == Err(found)
    })
}

fn is_watching() -> bool {
    matches!(settings::mode(), Mode::List | Mode::Capture)
}

/// A library's own function. A program has it only after it got a place.
macro_rules! own {
    ($all:ident, $place:ident, $ty:ty) => {
        transmute::<*mut c_void, $ty>($all[$place].load(Ordering::Acquire))
    };
}

unsafe extern "C" fn add_data<const PLACE: usize>(
    link: Handle,
    kind: c_int,
    data: *const c_void,
    bytes: usize,
    name: *const c_char,
) -> c_int {
    // SAFETY: the program's arguments; what the library has taken can be read.
    unsafe {
        let result = own!(ADD_DATA, PLACE, AddData)(link, kind, data, bytes, name);
        if result == DONE {
            let is_text = kind == INPUT_PTX && !data.is_null();
            images::link_input(
                link,
                is_text.then(|| std::slice::from_raw_parts(data.cast::<u8>(), bytes)),
            );
        }
        result
    }
}

unsafe extern "C" fn add_file<const PLACE: usize>(link: Handle, kind: c_int, file: *const c_char) -> c_int {
    // SAFETY: the program's arguments.
    let result = unsafe { own!(ADD_FILE, PLACE, AddFile)(link, kind, file) };
    if result == DONE {
        images::link_input(link, None);
    }
    result
}

unsafe extern "C" fn get_linked<const PLACE: usize>(link: Handle, code: *mut c_char) -> c_int {
    // SAFETY: the program's arguments; machine code says itself how long it is.
    unsafe {
        let result = own!(GET_LINKED, PLACE, Get)(link, code);
        if result == DONE
            && let Some(code) = images::bytes(code.cast())
        {
            images::linked(link, code);
        }
        result
    }
}

unsafe extern "C" fn destroy<const PLACE: usize>(link: *mut Handle) -> c_int {
    // SAFETY: the program's argument.
    unsafe {
        if !link.is_null() {
            images::link_ends(*link);
        }
        own!(DESTROY, PLACE, Destroy)(link)
    }
}

unsafe extern "C" fn get_code<const PLACE: usize>(program: Handle, code: *mut c_char) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        let result = own!(GET_CODE, PLACE, Get)(program, code);
        if result == DONE
            && let Some(code) = images::bytes(code.cast())
            && let Some(text) = text_of(LIBRARIES[PLACE].load(Ordering::Acquire), program)
        {
            images::link_input(program, Some(&text));
            images::linked(program, code);
        }
        result
    }
}

/// The text of a program of NVRTC.
///
/// # Safety
/// The handle is of the library that has compiled the program.
unsafe fn text_of(library: *mut c_void, program: Handle) -> Option<Vec<u8>> {
    // SAFETY: the caller's; functions of these names take these arguments.
    unsafe {
        let size = real::dlsym(library, c"nvrtcGetPTXSize".as_ptr());
        let get = real::dlsym(library, c"nvrtcGetPTX".as_ptr());
        if size.is_null() || get.is_null() {
            return None;
        }
        let mut bytes = 0;
        if transmute::<*mut c_void, GetSize>(size)(program, &raw mut bytes) != DONE || bytes <= 1 {
            return None;
        }
        let mut text = vec![0u8; bytes];
        let result = transmute::<*mut c_void, Get>(get)(program, text.as_mut_ptr().cast());
        (result == DONE).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_with_and_without_a_version() {
        assert_eq!(plain("nvJitLinkAddData"), "nvJitLinkAddData");
        assert_eq!(plain("__nvJitLinkAddData_12_4"), "nvJitLinkAddData");
        assert_eq!(plain("__nvJitLinkGetLinkedCubin_13_0"), "nvJitLinkGetLinkedCubin");
    }

    #[test]
    fn each_library_has_a_place_of_its_own() {
        static OWN: Own = nothing();
        let functions: Vec<*mut c_void> = (1..=PLACES + 1).map(|own| own as *mut c_void).collect();
        for (place, &function) in functions.iter().take(PLACES).enumerate() {
            assert_eq!(place_of(&OWN, function), Some(place));
        }
        assert_eq!(place_of(&OWN, functions[1]), Some(1), "asked for again");
        assert_eq!(place_of(&OWN, functions[PLACES]), None, "no place is left");
    }
}
