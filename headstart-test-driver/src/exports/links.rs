//! Linking: what a program adds, and the image that comes of it.
//!
//! Nothing is linked here. The image of one module of PTX is its text, which loads as any other; a library in machine code
//! beside it (`cudadevrt`) is left out, and several modules of PTX are refused.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

use super::{Export, answer, bytes_of, name_of};
use crate::abi::{
    CUresult, FILE_NOT_FOUND, Handle, INPUT_PTX, INVALID_HANDLE, INVALID_IMAGE, INVALID_VALUE, SUCCESS,
};
use crate::state::say;

/// `CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES` and its like for errors: how much of the buffer is used.
const LOG_SIZES: [c_int; 2] = [4, 6];

/// What was added so far, and the image.
#[derive(Default)]
struct Link {
    text: Option<Vec<u8>>,
    /// Where the lengths of logs are answered: values of options that the program keeps.
    log_sizes: Vec<*mut *mut c_void>,
}

unsafe fn link<'l>(handle: Handle) -> Option<&'l mut Link> {
    // SAFETY: a program uses a link from one thread at a time, and not after it was destroyed.
    unsafe { handle.cast::<Link>().as_mut() }
}

fn add(link: &mut Link, kind: c_int, bytes: &[u8]) -> CUresult {
    if kind != INPUT_PTX {
        return SUCCESS;
    }
    if link.text.is_some() {
        say("several modules of PTX are not linked here");
        return INVALID_IMAGE;
    }
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    // An image of text ends with a zero.
    link.text = Some([&bytes[..end], &[0]].concat());
    SUCCESS
}

exported! {
    cuLinkCreate_v2(count: c_uint, options: *mut c_int, values: *mut *mut c_void, state: *mut Handle) {
        let mut own = Link::default();
        for index in 0..count as usize {
            if !options.is_null() && !values.is_null() && LOG_SIZES.contains(&*options.add(index)) {
                own.log_sizes.push(values.add(index));
            }
        }
        answer(state, Box::into_raw(Box::new(own)).cast())
    }
    cuLinkAddData_v2(state, kind, data, bytes, name, count, options, values) {
        match link(state) {
            Some(own) if !data.is_null() => add(own, kind, bytes_of(data, bytes)),
            Some(_) => INVALID_VALUE,
            None => INVALID_HANDLE,
        }
    }
    cuLinkAddFile_v2(state, kind, file, count, options, values) {
        let Some(name) = name_of(file) else { return INVALID_VALUE };
        match (link(state), std::fs::read(name)) {
            (Some(own), Ok(bytes)) => add(own, kind, &bytes),
            (None, _) => INVALID_HANDLE,
            (_, Err(_)) => FILE_NOT_FOUND,
        }
    }
    cuLinkComplete(state, image, bytes) {
        let Some(own) = link(state) else { return INVALID_HANDLE };
        let Some(text) = &mut own.text else {
            say("there is no PTX in what is to be linked");
            return INVALID_IMAGE;
        };
        for place in &own.log_sizes {
            // Nothing is said.
            place.write(ptr::null_mut());
        }
        if !bytes.is_null() {
            *bytes = text.len();
        }
        answer(image, text.as_mut_ptr().cast())
    }
    cuLinkDestroy(state) {
        if state.is_null() {
            return INVALID_HANDLE;
        }
        drop(Box::from_raw(state.cast::<Link>()));
        SUCCESS
    }
}
