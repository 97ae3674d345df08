//! Images that a program loads: text, fat binaries and machine code, each known by a hash of its bytes.
//!
//! A program hands the driver a pointer without a length. How long an image is its own headers say.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_char, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Once;

use crate::abi::{FAT_BINARY, FAT_WRAPPER, Handle};
use crate::lock::Lock;
use crate::settings;
use crate::{real, record};

/// A hash of an image's bytes, as files are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageHash(pub u128);

impl std::fmt::Display for ImageHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The longest text that is taken for one.
const MOST_TEXT: usize = 256 << 20;

/// Which image each module or library was loaded from.
static LOADED: Lock<Option<HashMap<usize, Loaded>>> = Lock::new(None);

/// The facts about a module or library.
#[derive(Clone, Copy)]
struct Loaded {
    image: ImageHash,
    /// It outlives contexts.
    is_library: bool,
}

/// The text that a link under way has got so far, by its handle; none once it has got something else.
static LINKS: Lock<Option<HashMap<usize, Option<Vec<ImageHash>>>>> = Lock::new(None);

/// Holds the locks for the time of a fork.
pub fn hold() {
    LOADED.hold();
    LINKS.hold();
}

/// Ends [`hold`].
pub fn release() {
    LINKS.release();
    LOADED.release();
}

/// A link gets an input: text, or something else.
pub fn link_input(state: Handle, text: Option<&[u8]>) {
    if !settings::mode().captures() {
        return;
    }
    let text = text.map(kept);
    let mut links = LINKS.take();
    let all = links
        .get_or_insert_default()
        .entry(state as usize)
        .or_insert_with(|| Some(Vec::new()));
    match (all.as_mut(), text) {
        (Some(known), Some(text)) => known.push(text),
        _ => *all = None,
    }
}

/// A link is done: the machine code that came of it is of that text.
pub fn linked(state: Handle, code: &[u8]) {
    let texts = LINKS
        .take()
        .as_mut()
        .and_then(|links| links.remove(&(state as usize)));
    if let Some(Some(texts)) = texts {
        record_made(code, &texts);
    }
}

/// Machine code was made of these texts.
pub fn made(code: &[u8], texts: &[Vec<u8>]) {
    let texts: Vec<ImageHash> = texts.iter().map(|text| kept(text)).collect();
    record_made(code, &texts);
}

fn record_made(code: &[u8], texts: &[ImageHash]) {
    let code = hash(code).to_string();
    let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
    let words: Vec<&str> = ["linked", &code]
        .into_iter()
        .chain(texts.iter().map(String::as_str))
        .collect();
    record::line(&words);
}

/// Keeps a text without the zeros behind it; its hash.
fn kept(text: &[u8]) -> ImageHash {
    let end = text
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    let text = &text[..end];
    let hash = hash(text);
    record::image(hash, text);
    hash
}

/// A link is given up, or its result is no longer needed.
pub fn link_ends(state: Handle) {
    if let Some(links) = LINKS.take().as_mut() {
        links.remove(&(state as usize));
    }
}

/// The bytes of an image in memory; nothing if it is of no known kind.
///
/// # Safety
/// It is an image that the driver takes.
pub unsafe fn bytes<'i>(image: *const c_void) -> Option<&'i [u8]> {
    let start = image.cast::<u8>();
    if start.is_null() {
        return None;
    }
    // SAFETY: every image has at least four bytes, and as many as its headers say.
    unsafe {
        let magic = start.cast::<u32>().read_unaligned();
        match magic {
            FAT_WRAPPER => {
                let body = start.add(8).cast::<*const u8>().read_unaligned();
                (!body.is_null() && body.cast::<u32>().read_unaligned() == FAT_BINARY)
                    .then(|| fat_binary(body))
            }
            FAT_BINARY => Some(fat_binary(start)),
            _ if magic.to_le_bytes() == *b"\x7fELF" => machine_code(start),
            _ => text(start),
        }
    }
}

unsafe fn fat_binary<'i>(body: *const u8) -> &'i [u8] {
    // SAFETY: the header says how long header and entries are.
    unsafe {
        let header = body.add(6).cast::<u16>().read_unaligned();
        let size = body.add(8).cast::<u64>().read_unaligned();
        std::slice::from_raw_parts(body, usize::from(header) + size as usize)
    }
}

/// An ELF file in memory reaches to the end of its last section, or of its tables.
unsafe fn machine_code<'i>(start: *const u8) -> Option<&'i [u8]> {
    // SAFETY: an ELF file of 64 bits has a header of 64 bytes, and tables where that says.
    unsafe {
        if *start.add(4) != 2 {
            return None;
        }
        let word = |offset: usize| start.add(offset).cast::<u64>().read_unaligned() as usize;
        let half = |offset: usize| usize::from(start.add(offset).cast::<u16>().read_unaligned());
        let (segments, sections) = (word(0x20), word(0x28));
        let (segment_size, segment_count, section_size, section_count) =
            (half(0x36), half(0x38), half(0x3a), half(0x3c));
        let mut end = (segments + segment_size * segment_count).max(sections + section_size * section_count);
        for section in 0..section_count {
            let header = start.add(sections + section * section_size);
            let kind = header.add(4).cast::<u32>().read_unaligned();
            let offset = header.add(0x18).cast::<u64>().read_unaligned() as usize;
            let size = header.add(0x20).cast::<u64>().read_unaligned() as usize;
            // Such a section takes no room in the file.
            if kind != 8 {
                end = end.max(offset + size);
            }
        }
        Some(std::slice::from_raw_parts(start, end))
    }
}

unsafe fn text<'i>(start: *const u8) -> Option<&'i [u8]> {
    // SAFETY: an image that is neither a fat binary nor an ELF file is a C string. If its first bytes are no text, nothing
    // behind them is read.
    unsafe {
        let is_text = |byte: u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        for index in 0..4 {
            if !is_text(*start.add(index)) {
                return None;
            }
        }
        let bytes = CStr::from_ptr(start.cast::<c_char>()).to_bytes();
        (bytes.len() <= MOST_TEXT).then_some(bytes)
    }
}

/// The hash of an image.
pub fn hash(bytes: &[u8]) -> ImageHash {
    ImageHash(xxhash_rust::xxh3::xxh3_128(bytes))
}

/// A program has loaded an image: remembers it, and keeps a copy.
pub fn loaded(owner: Handle, bytes: Option<&[u8]>, is_library: bool) {
    let Some(bytes) = bytes else { return };
    let hash = hash(bytes);
    let own = Loaded {
        image: hash,
        is_library,
    };
    LOADED.take().get_or_insert_default().insert(owner as usize, own);
    if settings::mode().captures() {
        record::image(hash, bytes);
        capability();
    }
}

/// Keeps which device the driver chose code for, once: text for later devices is none for this one.
fn capability() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Some(capability) = real::capability(0) {
            record::line(&["capability", &capability.to_string()]);
        }
    });
}

/// The same of a file.
///
/// # Safety
/// The name is a C string.
pub unsafe fn loaded_from(owner: Handle, file: *const c_char, is_library: bool) {
    if file.is_null() {
        return;
    }
    // SAFETY: it is a C string.
    let name = unsafe { CStr::from_ptr(file) };
    let bytes = fs::read(Path::new(std::ffi::OsStr::from_bytes(name.to_bytes())));
    // Text in memory ends before its zero.
    let bytes = bytes
        .as_deref()
        .map(|bytes| bytes.strip_suffix(b"\0").unwrap_or(bytes));
    loaded(owner, bytes.ok(), is_library);
}

/// Another handle of the same image: a library's module in a context.
pub fn same(other: Handle, owner: Handle) {
    if let Some(image) = of(owner) {
        let own = Loaded {
            image,
            is_library: false,
        };
        LOADED.take().get_or_insert_default().insert(other as usize, own);
    }
}

/// The image that a module or library was loaded from.
pub fn of(owner: Handle) -> Option<ImageHash> {
    Some(LOADED.take().as_ref()?.get(&(owner as usize))?.image)
}

/// Whether it is a library.
pub fn is_library(owner: Handle) -> bool {
    let loaded = LOADED.take();
    let own = loaded.as_ref().and_then(|all| all.get(&(owner as usize)));
    own.is_some_and(|own| own.is_library)
}

/// A module or library is gone.
pub fn unloaded(owner: Handle) {
    if let Some(all) = LOADED.take().as_mut() {
        all.remove(&(owner as usize));
    }
}

/// A context is gone, and all modules may be: libraries stay. Which owners stay.
pub fn forget_modules() -> HashSet<usize> {
    let mut loaded = LOADED.take();
    let all = loaded.get_or_insert_default();
    all.retain(|_, own| own.is_library);
    all.keys().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe fn length(image: &[u8]) -> Option<usize> {
        // SAFETY: as the caller says.
        unsafe { bytes(image.as_ptr().cast()).map(<[u8]>::len) }
    }

    #[test]
    fn an_image_says_how_long_it_is() {
        let mut fat = vec![0u8; 16 + 40];
        fat[..4].copy_from_slice(&FAT_BINARY.to_le_bytes());
        fat[6..8].copy_from_slice(&16u16.to_le_bytes());
        fat[8..16].copy_from_slice(&24u64.to_le_bytes());
        let mut wrapper = [0u8; 24];
        wrapper[..4].copy_from_slice(&FAT_WRAPPER.to_le_bytes());
        wrapper[8..16].copy_from_slice(&(fat.as_ptr() as u64).to_le_bytes());
        // One section of 10 bytes at byte 64, its header behind it.
        let mut elf = vec![0u8; 80 + 64];
        elf[..5].copy_from_slice(b"\x7fELF\x02");
        elf[0x28..0x30].copy_from_slice(&80u64.to_le_bytes());
        elf[0x3a..0x3c].copy_from_slice(&64u16.to_le_bytes());
        elf[0x3c..0x3e].copy_from_slice(&1u16.to_le_bytes());
        elf[80 + 0x18..80 + 0x20].copy_from_slice(&64u64.to_le_bytes());
        elf[80 + 0x20..80 + 0x28].copy_from_slice(&10u64.to_le_bytes());
        // SAFETY: these are images, and this is none whose first bytes are looked at.
        unsafe {
            assert_eq!(length(&fat), Some(40));
            assert_eq!(length(&wrapper), Some(40));
            assert_eq!(length(b".version 8.0\n\0beyond"), Some(13));
            assert_eq!(length(&elf), Some(144));
            assert_eq!(length(b"\x01\x02\x03\x04"), None);
        }
    }
}
