//! Libraries that turn text into machine code in a program: nvJitLink and NVRTC.
//!
//! CuPy requests machine code from NVRTC, and Numba passes its input to nvJitLink to link and optimize: the driver then loads
//! an image without text. These libraries are found by `dlsym`, so that the program's requests are seen here, and the text is
//! remembered with the resulting machine code, as for the driver's own linker.
//!
//! ```text
//! nvJitLinkCreate(&link, options)             a link begins
//! nvJitLinkAddData(link, kind, data, …)       one more input: text, or what is optimized when all is there (LTO-IR)
//! nvJitLinkGetLinkedCubin(link, code)         the machine code that came of them
//! nvrtcGetCUBIN(program, code)                machine code; nvrtcGetPTX of the same program has its text
//! ```
//!
//! Link-time optimized code has a text only on request: then the same inputs are linked once more, to text.
//!
//! A process may have several versions of a library, each with functions of its own: every one that a program asks for gets a
//! place here, and a function that knows its place. Programs that are linked to these libraries are not seen.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::Handle;
use crate::images;
use crate::lock::Lock;
use crate::real;
use crate::settings;

/// Distinct libraries of a kind; calls of further ones are not seen.
const PLACES: usize = 4;
/// `NVJITLINK_SUCCESS` and `NVRTC_SUCCESS`.
const DONE: c_int = 0;
/// `NVJITLINK_INPUT_PTX` and `NVJITLINK_INPUT_LTOIR`.
const INPUT_PTX: c_int = 2;
const INPUT_LTOIR: c_int = 3;
/// The option that gives text in the place of machine code.
const TO_TEXT: &CStr = c"-ptx";

type Create = unsafe extern "C" fn(*mut Handle, u32, *const *const c_char) -> c_int;
type Complete = unsafe extern "C" fn(Handle) -> c_int;
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

static CREATE: Own = nothing();
static ADD_DATA: Own = nothing();
static ADD_FILE: Own = nothing();
static GET_LINKED: Own = nothing();
static DESTROY: Own = nothing();
static GET_CODE: Own = nothing();
/// The handles that the libraries with [`GET_CODE`] and [`GET_LINKED`] were asked by.
static COMPILERS: Own = nothing();
static LINKERS: Own = nothing();

/// The inputs of the links in progress.
static LINKS: Lock<Option<HashMap<usize, Link>>> = Lock::new(None);

/// A link under way.
#[derive(Default)]
struct Link {
    options: Vec<CString>,
    /// Kind and data of each input.
    inputs: Vec<(c_int, Vec<u8>)>,
    /// An input is not known.
    is_unknown: bool,
}

/// Holds the lock for the time of a fork.
pub fn hold() {
    LINKS.hold();
}

/// Ends [`hold`].
pub fn release() {
    LINKS.release();
}

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

fn watched() -> [Watched; 6] {
    let watched = |name, own, ours| Watched { name, own, ours };
    [
        watched("nvJitLinkCreate", &CREATE, places!(create: Create)),
        watched("nvJitLinkAddData", &ADD_DATA, places!(add_data: AddData)),
        watched("nvJitLinkAddFile", &ADD_FILE, places!(add_file: AddFile)),
        watched("nvJitLinkGetLinkedCubin", &GET_LINKED, places!(get_linked: Get)),
        watched("nvJitLinkDestroy", &DESTROY, places!(destroy: Destroy)),
        watched("nvrtcGetCUBIN", &GET_CODE, places!(get_code: Get)),
    ]
}

/// A function's name without its header's version suffix: `__nvJitLinkAddData_12_4`.
fn plain(name: &str) -> &str {
    let is_version = |c: char| c.is_ascii_digit() || c == '_';
    match name.strip_prefix("__") {
        Some(versioned) => versioned.trim_end_matches(is_version),
        None => name,
    }
}

/// The replacement for a compiler's function that a program looks up; none for others.
pub fn instead(handle: *mut c_void, name: &CStr, found: *mut c_void) -> Option<*mut c_void> {
    let name = name.to_str().ok()?;
    if !name.trim_start_matches('_').starts_with("nv") || !settings::mode().captures() {
        return None;
    }
    let name = plain(name);
    let watched = watched().into_iter().find(|own| own.name == name)?;
    let place = place_of(watched.own, found)?;
    match name {
        "nvrtcGetCUBIN" => COMPILERS[place].store(handle, Ordering::Release),
        "nvJitLinkGetLinkedCubin" => LINKERS[place].store(handle, Ordering::Release),
        _ => {}
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

/// A library's own function. A program has it only after it got a place.
macro_rules! own {
    ($all:ident, $place:ident, $ty:ty) => {
        transmute::<*mut c_void, $ty>($all[$place].load(Ordering::Acquire))
    };
}

/// Calls a function with the known inputs of a link.
fn with_link<T>(link: Handle, act: impl FnOnce(&mut Link) -> T) -> T {
    act(LINKS
        .take()
        .get_or_insert_default()
        .entry(link as usize)
        .or_default())
}

unsafe extern "C" fn create<const PLACE: usize>(
    link: *mut Handle,
    count: u32,
    options: *const *const c_char,
) -> c_int {
    // SAFETY: the program's arguments; the library has read the options and written the handle.
    unsafe {
        let result = own!(CREATE, PLACE, Create)(link, count, options);
        if result == DONE {
            let given = (0..count as usize).map(|number| CStr::from_ptr(*options.add(number)).to_owned());
            let given = given.collect();
            with_link(*link, |own| {
                *own = Link {
                    options: given,
                    ..Link::default()
                };
            });
        }
        result
    }
}

unsafe extern "C" fn add_data<const PLACE: usize>(
    link: Handle,
    kind: c_int,
    data: *const c_void,
    bytes: usize,
    name: *const c_char,
) -> c_int {
    // SAFETY: the program's arguments; data that the library has accepted can be read.
    unsafe {
        let result = own!(ADD_DATA, PLACE, AddData)(link, kind, data, bytes, name);
        if result == DONE && !data.is_null() {
            let data = std::slice::from_raw_parts(data.cast::<u8>(), bytes);
            with_link(link, |own| own.inputs.push((kind, data.to_vec())));
        }
        result
    }
}

unsafe extern "C" fn add_file<const PLACE: usize>(link: Handle, kind: c_int, file: *const c_char) -> c_int {
    // SAFETY: the program's arguments.
    let result = unsafe { own!(ADD_FILE, PLACE, AddFile)(link, kind, file) };
    if result == DONE {
        with_link(link, |own| own.is_unknown = true);
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
            let own = with_link(link, std::mem::take);
            if let Some(texts) = own.texts(LINKERS[PLACE].load(Ordering::Acquire)) {
                images::made(code, &texts);
            }
        }
        result
    }
}

unsafe extern "C" fn destroy<const PLACE: usize>(link: *mut Handle) -> c_int {
    // SAFETY: the program's argument.
    unsafe {
        if !link.is_null()
            && let Some(links) = LINKS.take().as_mut()
        {
            links.remove(&(*link as usize));
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
            && let Some(text) = text_of(COMPILERS[PLACE].load(Ordering::Acquire), program)
        {
            images::made(code, &[text]);
        }
        result
    }
}

impl Link {
    /// The texts that machine code was made of; nothing if an input has none, or none is known.
    ///
    /// # Safety
    /// The handle is of the library that linked.
    unsafe fn texts(self, library: *mut c_void) -> Option<Vec<Vec<u8>>> {
        if self.is_unknown || self.inputs.is_empty() {
            return None;
        }
        if self.inputs.iter().any(|(kind, _)| *kind == INPUT_LTOIR) {
            // SAFETY: the caller's.
            return Some(vec![unsafe { self.as_text(library) }?]);
        }
        let text = |(kind, data)| (kind == INPUT_PTX).then_some(data);
        self.inputs.into_iter().map(text).collect()
    }

    /// The inputs as one text.
    ///
    /// # Safety
    /// The handle is of the library that linked.
    unsafe fn as_text(&self, library: *mut c_void) -> Option<Vec<u8>> {
        let options = self.options.iter().map(CString::as_c_str).chain([TO_TEXT]);
        let options: Vec<*const c_char> = options.map(CStr::as_ptr).collect();
        // SAFETY: functions of these names take these arguments, and the link is ours.
        unsafe {
            let function =
                |name: &CStr| Some(real::dlsym(library, name.as_ptr())).filter(|own| !own.is_null());
            let create = transmute::<*mut c_void, Create>(function(c"nvJitLinkCreate")?);
            let add = transmute::<*mut c_void, AddData>(function(c"nvJitLinkAddData")?);
            let complete = transmute::<*mut c_void, Complete>(function(c"nvJitLinkComplete")?);
            let size = transmute::<*mut c_void, GetSize>(function(c"nvJitLinkGetLinkedPtxSize")?);
            let get = transmute::<*mut c_void, Get>(function(c"nvJitLinkGetLinkedPtx")?);
            let destroy = transmute::<*mut c_void, Destroy>(function(c"nvJitLinkDestroy")?);
            let mut link = ptr::null_mut();
            if create(&raw mut link, options.len() as u32, options.as_ptr()) != DONE {
                return None;
            }
            let add = |(kind, data): &(c_int, Vec<u8>)| {
                add(link, *kind, data.as_ptr().cast(), data.len(), c"input".as_ptr()) == DONE
            };
            let mut bytes = 0;
            let is_linked = self.inputs.iter().all(add)
                && complete(link) == DONE
                && size(link, &raw mut bytes) == DONE
                && bytes > 1;
            let mut text = vec![0u8; if is_linked { bytes } else { 0 }];
            let has_text = is_linked && get(link, text.as_mut_ptr().cast()) == DONE;
            destroy(&raw mut link);
            has_text.then_some(text)
        }
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
