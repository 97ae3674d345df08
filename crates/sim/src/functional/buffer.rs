//! A simulated device's memory of one buffer: pages that exist once they are written.
//!
//! Until then a read evaluates the buffer's [`Fill`], so that a table of a gigabyte costs nothing. Where that is a function, a
//! page that is read over and over exists, too, since calling it is the slower way.
//! Memory is made of relaxed atomics, because work-groups run in parallel and share it; a kernel without
//! races sees plain memory.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::device::{Fill, Pattern};
use crate::home::Home;
use crate::ir::Type;
use crate::reservation::Reservation;
use crate::{Error, Result};

/// Bytes of a page: few, since a launch that writes a large buffer at random makes one for nearly each write.
const PAGE: u64 = 1 << 12;

/// Pages of a book. Books exist once something in them is touched, so that the pages that do not exist cost next to nothing.
const BOOK: u64 = 64;

/// A function computes each value of such a page when it is read. After this many reads the whole page is computed and kept:
/// by then the reads have cost about as much as computing the page twice.
const READS: u32 = PAGE as u32 / 2;

/// The content of a byte that was never written, if nothing checks for that: wrong results rather than lucky ones.
pub(super) const POISON: u8 = 0xa5;

/// The memory of one buffer.
#[derive(Debug)]
pub struct BufferMemory {
    element: Type,
    bytes: u64,
    fill: Fill,
    books: Box<[OnceLock<Box<Book>>]>,
    /// Whether it has pages.
    has_pages: AtomicBool,
    /// The device's memory that it takes, if that is counted.
    reservation: Option<Reservation>,
    /// The stack of a card in whose memory it lies.
    stack: u32,
    /// Whether that is the device's memory at all.
    home: Home,
}

/// Pages that follow each other.
#[derive(Debug)]
struct Book {
    pages: [OnceLock<Page>; BOOK as usize],
    /// How often each page was read while it did not exist. Counts may be lost between threads.
    reads: [AtomicU32; BOOK as usize],
}

#[derive(Debug)]
struct Page {
    words: Box<[AtomicU32]>,
    /// One bit a byte: it was written. Empty where every byte counts as written from the start.
    written: Box<[AtomicU64]>,
}

impl BufferMemory {
    /// Memory for `length` elements.
    ///
    /// # Errors
    /// Those of [`Fill::check`].
    pub fn new(element: Type, length: u64, fill: Fill) -> Result<BufferMemory> {
        let bytes = fill.check(element, length)?;
        let books = bytes.div_ceil(PAGE * BOOK);
        Ok(BufferMemory {
            element,
            bytes,
            fill,
            books: (0..books).map(|_| OnceLock::new()).collect(),
            has_pages: AtomicBool::new(false),
            reservation: None,
            stack: 0,
            home: Home::Device,
        })
    }

    /// Keeps a reservation as long as the memory exists.
    pub(crate) fn reserved(mut self, reservation: Reservation) -> BufferMemory {
        self.reservation = Some(reservation);
        self
    }

    /// The same in the memory of this stack of a card.
    pub(crate) fn in_stack(mut self, stack: u32) -> BufferMemory {
        self.stack = stack;
        self
    }

    /// The same with another home.
    pub(crate) fn at_home(mut self, home: Home) -> BufferMemory {
        self.home = home;
        self
    }

    /// Whose memory it lies in.
    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// The stack of a card in whose memory it lies.
    pub(crate) fn stack(&self) -> u32 {
        self.stack
    }

    /// Type of the elements.
    pub fn element(&self) -> Type {
        self.element
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that exist.
    #[cfg(test)]
    fn resident_bytes(&self) -> u64 {
        let books = self.books.iter().filter_map(OnceLock::get);
        let pages = books.flat_map(|book| &book.pages).filter_map(OnceLock::get);
        pages.map(|page| page.words.len()).sum::<usize>() as u64 * 4
    }

    /// Whether some of it may not have been written yet.
    pub(super) fn starts_uninitialized(&self) -> bool {
        matches!(self.fill, Fill::Uninitialized)
    }

    /// A page, if it exists.
    #[inline]
    fn existing(&self, page: u64) -> Option<&Page> {
        let book = self.books[(page / BOOK) as usize].get()?;
        book.pages[(page % BOOK) as usize].get()
    }

    /// A page's book, which exists from now on.
    #[inline]
    fn book(&self, page: u64) -> &Book {
        self.books[(page / BOOK) as usize].get_or_init(Box::default)
    }

    /// A page, which exists from now on.
    #[inline]
    fn made(&self, page: u64) -> &Page {
        self.book(page).pages[(page % BOOK) as usize].get_or_init(|| {
            self.has_pages.store(true, Ordering::Relaxed);
            self.page(page)
        })
    }

    /// The bytes that it is filled with, as long as nothing is written: many are read at once from these, however far apart.
    #[inline]
    pub(super) fn only_fill(&self) -> Option<&[u8]> {
        match &self.fill {
            Fill::Bytes(bytes) if !self.has_pages.load(Ordering::Relaxed) => Some(bytes),
            _ => None,
        }
    }

    /// The pages of which this or another buffer has some, up to a byte.
    fn touched_in_either(&self, other: &BufferMemory, end: u64) -> impl Iterator<Item = u64> {
        let exists = |books: &[OnceLock<Box<Book>>], book: u64| books[book as usize].get().is_some();
        let pages = end.div_ceil(PAGE);
        (0..pages.div_ceil(BOOK))
            .filter(move |&book| exists(&self.books, book) || exists(&other.books, book))
            .flat_map(move |book| book * BOOK..pages.min((book + 1) * BOOK))
    }

    /// Reads `size` (1, 2, 4 or 8) bytes at a multiple of `size`, inside.
    #[inline]
    pub(super) fn read(&self, offset: u64, size: u32) -> u64 {
        match self.existing(offset / PAGE) {
            Some(page) => page.read((offset % PAGE) as usize, size),
            None => self.read_unwritten(offset, size),
        }
    }

    /// Writes the low `size` (1, 2, 4 or 8) bytes at a multiple of `size`, inside.
    #[inline]
    pub(super) fn write(&self, offset: u64, size: u32, bits: u64) {
        let page = self.made(offset / PAGE);
        page.write((offset % PAGE) as usize, size, bits);
    }

    /// Whether every byte of an aligned access of at most 16 bytes has been marked as written.
    pub(super) fn is_written(&self, offset: u64, size: u32) -> bool {
        if !self.starts_uninitialized() {
            return true;
        }
        let Some(page) = self.existing(offset / PAGE) else {
            return false;
        };
        let (word, bits) = written_bits(offset, size);
        page.written[word].load(Ordering::Relaxed) & bits == bits
    }

    /// Marks the bytes of an aligned access of at most 16 bytes as written.
    #[inline]
    pub(super) fn mark_written(&self, offset: u64, size: u32) {
        if self.starts_uninitialized() {
            let page = self.made(offset / PAGE);
            let (word, bits) = written_bits(offset, size);
            page.written[word].fetch_or(bits, Ordering::Relaxed);
        }
    }

    /// Reads from a page that does not exist, which may make it.
    #[inline]
    fn read_unwritten(&self, offset: u64, size: u32) -> u64 {
        match &self.fill {
            Fill::Pattern(Pattern::Function(_)) => self.read_of_function(offset, size),
            _ => self.unwritten(offset, size),
        }
    }

    fn read_of_function(&self, offset: u64, size: u32) -> u64 {
        let index = offset / PAGE;
        let reads = &self.book(index).reads[(index % BOOK) as usize];
        match reads.load(Ordering::Relaxed) {
            READS.. => self.made(index).read((offset % PAGE) as usize, size),
            few => {
                reads.store(few + 1, Ordering::Relaxed);
                self.unwritten(offset, size)
            }
        }
    }

    /// The value of bytes in a page that does not exist.
    fn unwritten(&self, offset: u64, size: u32) -> u64 {
        let element = u64::from(self.element.bytes());
        let by_bytes = || {
            (0..u64::from(size)).rev().fold(0, |bits, byte| {
                bits << 8 | u64::from(self.unwritten_byte(offset + byte))
            })
        };
        match &self.fill {
            Fill::Pattern(pattern) if u64::from(size) <= element => {
                let bits = pattern.bits(self.element, offset / element) >> (offset % element * 8);
                bits & (u64::MAX >> (64 - size * 8))
            }
            Fill::Bytes(bytes) => {
                let start = offset as usize;
                let found = bytes.get(start..start + size as usize);
                found.map_or_else(by_bytes, little_endian)
            }
            _ => by_bytes(),
        }
    }

    fn unwritten_byte(&self, offset: u64) -> u8 {
        let element = u64::from(self.element.bytes());
        match &self.fill {
            Fill::Uninitialized => POISON,
            Fill::Bytes(bytes) => bytes.get(offset as usize).copied().unwrap_or(POISON),
            Fill::Pattern(pattern) => {
                pattern.bits(self.element, offset / element).to_le_bytes()[(offset % element) as usize]
            }
        }
    }

    /// A page as the fill has it.
    fn page(&self, index: u64) -> Page {
        let start = index * PAGE;
        let word = |word: u64| {
            let offset = start + word * 4;
            AtomicU32::new(if offset + 4 <= self.bytes {
                self.unwritten(offset, 4) as u32
            } else {
                // The last page reaches beyond the buffer.
                (0..4).rev().fold(0, |bits, byte| {
                    let inside = offset + byte < self.bytes;
                    let byte = if inside {
                        self.unwritten_byte(offset + byte)
                    } else {
                        POISON
                    };
                    bits << 8 | u32::from(byte)
                })
            })
        };
        // The last page holds no more than there is, in whole words of 8 bytes.
        let bytes = PAGE.min(self.bytes - start);
        let written = if self.starts_uninitialized() {
            bytes.div_ceil(64)
        } else {
            0
        };
        Page {
            words: (0..bytes.div_ceil(8) * 2).map(word).collect(),
            written: (0..written).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The same contents, apart from these.
    #[doc(hidden)]
    pub fn snapshot(&self) -> BufferMemory {
        let copy =
            |book: &OnceLock<Box<Book>>| book.get().map_or_else(OnceLock::new, |book| book.copy().into());
        BufferMemory {
            element: self.element,
            bytes: self.bytes,
            fill: self.fill.clone(),
            books: self.books.iter().map(copy).collect(),
            has_pages: AtomicBool::new(self.has_pages.load(Ordering::Relaxed)),
            reservation: None,
            stack: self.stack,
            home: self.home.clone(),
        }
    }

    /// Whether it is known to hold the same as another: a page that neither has is the same if both are filled alike.
    pub fn is_same(&self, other: &BufferMemory) -> bool {
        let same = |index: u64| match (self.existing(index), other.existing(index)) {
            (None, None) => true,
            (Some(one), Some(other)) => one.is_same(other),
            (Some(page), None) => page.is_same(&other.page(index)),
            (None, Some(page)) => page.is_same(&self.page(index)),
        };
        self.fill.is_same(&other.fill)
            && self.element == other.element
            && self.bytes == other.bytes
            && self.touched_in_either(other, self.bytes).all(same)
    }

    /// The first byte that differs from another buffer's, up to the end of the shorter one. Both must have the same fill:
    /// untouched parts are equal.
    #[doc(hidden)]
    pub fn first_difference(&self, other: &BufferMemory) -> Option<u64> {
        let end = self.bytes.min(other.bytes);
        self.touched_in_either(other, end).find_map(|number| {
            let (one, two) = (self.existing(number), other.existing(number));
            let made;
            let (one, two) = match (one, two) {
                (None, None) => return None,
                (Some(one), Some(two)) => (one, two),
                (Some(one), None) => {
                    made = other.page(number);
                    (one, &made)
                }
                (None, Some(two)) => {
                    made = self.page(number);
                    (&made, two)
                }
            };
            let start = number * PAGE;
            let words = one.words.iter().zip(&two.words);
            let differs = |(one, two): (&AtomicU32, &AtomicU32)| {
                one.load(Ordering::Relaxed) ^ two.load(Ordering::Relaxed)
            };
            let mut differing = words.map(differs).enumerate().filter(|(_, bits)| *bits != 0);
            differing.find_map(|(word, bits)| {
                let bytes = (0..4).filter(|byte| bits >> (byte * 8) & 0xff != 0);
                let mut bytes = bytes.map(|byte| start + word as u64 * 4 + byte);
                bytes.find(|&byte| byte < end)
            })
        })
    }

    /// Copies bytes out, from `offset` on; they must lie inside.
    ///
    /// # Errors
    /// Some of them were never written.
    pub fn copy_out(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let mut rest = bytes;
        let mut start = offset;
        while !rest.is_empty() {
            let in_page = (PAGE - start % PAGE).min(rest.len() as u64);
            let (part, behind) = rest.split_at_mut(in_page as usize);
            match (&self.fill, self.existing(start / PAGE)) {
                // Most of a large buffer was never touched.
                (Fill::Pattern(Pattern::Constant(0)), None) => part.fill(0),
                (Fill::Bytes(bytes), None) => part.copy_from_slice(&bytes[start as usize..][..part.len()]),
                _ => self.copy_pieces_out(start, part)?,
            }
            start += in_page;
            rest = behind;
        }
        Ok(())
    }

    fn copy_pieces_out(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        for (start, size, part) in pieces(offset, bytes.len()) {
            if !self.is_written(start, size) {
                let never = (start..start + u64::from(size)).find(|&byte| !self.is_written(byte, 1));
                let element = u64::from(self.element.bytes());
                return Err(Error::input(format!(
                    "element {} is read back and was never written",
                    never.unwrap_or(start) / element
                ))
                .accepted("a buffer that is filled, or a kernel that writes all of it"));
            }
            let bits = self.read(start, size).to_le_bytes();
            bytes[part..part + size as usize].copy_from_slice(&bits[..size as usize]);
        }
        Ok(())
    }

    /// Copies bytes in, from `offset` on; they must lie inside.
    pub(crate) fn copy_in(&self, offset: u64, bytes: &[u8]) {
        for (start, size, part) in pieces(offset, bytes.len()) {
            let mut bits = [0; 8];
            bits[..size as usize].copy_from_slice(&bytes[part..part + size as usize]);
            self.write(start, size, u64::from_le_bytes(bits));
            self.mark_written(start, size);
        }
    }
}

/// The number that 1, 2, 4 or 8 bytes hold.
#[inline]
pub(super) fn little_endian(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// Writes the low bytes of a number.
#[inline]
pub(super) fn set_bits(memory: &mut [u8], offset: u64, size: u32, bits: u64) {
    let size = size as usize;
    memory[offset as usize..][..size].copy_from_slice(&bits.to_le_bytes()[..size]);
}

/// A range of bytes in aligned pieces: where each starts, its size, and its place in the range.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, u32, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let start = offset + done as u64;
        let size = if start.is_multiple_of(8) && length - done >= 8 {
            8
        } else {
            1
        };
        let piece = (done < length).then_some((start, size, done));
        done += size as usize;
        piece
    })
}

/// Which word of a page's `written`, and which of its bits. Aligned accesses never cross a word.
fn written_bits(offset: u64, size: u32) -> (usize, u64) {
    let bits = (1u64 << size) - 1;
    ((offset % PAGE / 64) as usize, bits << (offset % 64))
}

impl Default for Book {
    fn default() -> Book {
        Book {
            pages: [const { OnceLock::new() }; BOOK as usize],
            reads: [const { AtomicU32::new(0) }; BOOK as usize],
        }
    }
}

impl Book {
    /// The same contents, not read yet.
    fn copy(&self) -> Box<Book> {
        let mut book = Box::<Book>::default();
        for (own, copy) in self.pages.iter().zip(&mut book.pages) {
            if let Some(page) = own.get() {
                *copy = page.copy().into();
            }
        }
        book
    }
}

impl Page {
    /// Whether it holds the same, and as much of it was written.
    fn is_same(&self, other: &Page) -> bool {
        let words = self.words.iter().zip(&other.words);
        let written = self.written.iter().zip(&other.written);
        words
            .into_iter()
            .all(|(one, other)| one.load(Ordering::Relaxed) == other.load(Ordering::Relaxed))
            && written
                .into_iter()
                .all(|(one, other)| one.load(Ordering::Relaxed) == other.load(Ordering::Relaxed))
    }

    fn copy(&self) -> Page {
        let words = self.words.iter().map(|word| word.load(Ordering::Relaxed));
        let written = self.written.iter().map(|word| word.load(Ordering::Relaxed));
        Page {
            words: words.map(AtomicU32::new).collect(),
            written: written.map(AtomicU64::new).collect(),
        }
    }

    #[inline]
    fn read(&self, offset: usize, size: u32) -> u64 {
        let word = |index: usize| u64::from(self.words[index].load(Ordering::Relaxed));
        match size {
            4 => word(offset / 4),
            8 => word(offset / 4) | word(offset / 4 + 1) << 32,
            _ => (word(offset / 4) >> (offset % 4 * 8)) & ((1 << (size * 8)) - 1),
        }
    }

    #[inline]
    fn write(&self, offset: usize, size: u32, bits: u64) {
        let store = |index: usize, bits: u64| self.words[index].store(bits as u32, Ordering::Relaxed);
        match size {
            4 => store(offset / 4, bits),
            8 => {
                store(offset / 4, bits);
                store(offset / 4 + 1, bits >> 32);
            }
            _ => {
                // Another work-group may write the word's other bytes meanwhile.
                let shift = offset % 4 * 8;
                let mask = ((1u32 << (size * 8)) - 1) << shift;
                let word = &self.words[offset / 4];
                let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
                    Some((word & !mask) | ((bits as u32) << shift & mask))
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
