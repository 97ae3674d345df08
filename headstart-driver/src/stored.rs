//! Memory as files: named by its hash, compressed, with holes where it is zero.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `HSMEM001` |
//! | 8 | length of the memory, little-endian |
//! | … | a block for every 4 MiB: its length here in 4 bytes, then this many bytes |
//!
//! A block of length 0 is zeros. The top bit of the length says that the bytes are as they were; otherwise they are an LZ4 block.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::thread;

use xxhash_rust::xxh3::Xxh3;

use crate::record;

/// The beginning of a file.
const MAGIC: &[u8; 8] = b"HSMEM001";
/// Bytes of a block, uncompressed.
const BLOCK: usize = 4 << 20;
/// Marks a block that is not compressed.
const PLAIN: u32 = 1 << 31;
/// Threads that compress.
const THREADS: usize = 8;

/// Bytes of a piece of memory: a block for each thread.
pub const PIECE: usize = THREADS * BLOCK;

/// Passes some memory on in its order: in pieces of this size, the last one shorter.
pub type Pieces<'p> = dyn FnMut(&mut dyn FnMut(&[u8]) -> Result<(), String>) -> Result<(), String> + 'p;

/// Stores some memory of this length in a folder; its name there. Memory that is stored already is read once, and not written
/// again; other memory is read twice.
///
/// # Errors
/// Those of reading it, and the system's.
pub fn keep(folder: &Path, length: u64, pieces: &mut Pieces<'_>) -> Result<String, String> {
    let mut hash = Xxh3::new();
    pieces(&mut |piece| {
        hash.update(piece);
        Ok(())
    })?;
    let path = folder.join(name(&hash));
    if path.exists() {
        return Ok(name(&hash));
    }
    let partial = record::beside(&path);
    let written = fs::create_dir_all(folder).map_err(unwritten);
    let written = written
        .and_then(|()| write(&partial, length, pieces))
        .and_then(|name| {
            fs::rename(&partial, folder.join(&name))
                .map(|()| name)
                .map_err(unwritten)
        });
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written
}

fn name(hash: &Xxh3) -> String {
    format!("{:032x}", hash.digest128())
}

fn unwritten(error: io::Error) -> String {
    format!("memory could not be written: {error}")
}

/// Writes the memory to a file; the name of what was written, since a program's threads may change memory of the host meanwhile.
fn write(path: &Path, length: u64, pieces: &mut Pieces<'_>) -> Result<String, String> {
    let mut file = BufWriter::new(File::create(path).map_err(unwritten)?);
    let mut hash = Xxh3::new();
    file.write_all(MAGIC)
        .and_then(|()| file.write_all(&length.to_le_bytes()))
        .map_err(unwritten)?;
    pieces(&mut |piece| {
        hash.update(piece);
        write_piece(&mut file, piece).map_err(unwritten)
    })?;
    file.into_inner().map_err(|error| unwritten(error.into_error()))?;
    Ok(name(&hash))
}

fn write_piece(file: &mut impl Write, piece: &[u8]) -> io::Result<()> {
    let blocks: Vec<&[u8]> = piece.chunks(BLOCK).collect();
    let compressed = thread::scope(|scope| {
        let running: Vec<_> = blocks
            .iter()
            .map(|block| scope.spawn(|| compress(block)))
            .collect();
        running
            .into_iter()
            .map(|thread| thread.join().ok())
            .collect::<Vec<_>>()
    });
    for (block, compressed) in blocks.into_iter().zip(compressed) {
        match compressed {
            Some(bytes) if bytes.len() < block.len() => {
                file.write_all(&(bytes.len() as u32).to_le_bytes())?;
                file.write_all(&bytes)?;
            }
            _ => {
                file.write_all(&(block.len() as u32 | PLAIN).to_le_bytes())?;
                file.write_all(block)?;
            }
        }
    }
    Ok(())
}

/// A block of LZ4; none of zeros.
fn compress(block: &[u8]) -> Vec<u8> {
    match is_zero(block) {
        true => Vec::new(),
        false => lz4_flex::block::compress(block),
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes
        .chunks(64)
        .all(|part| part.iter().fold(0, |all, byte| all | byte) == 0)
}

/// Bytes that may still be written below a folder.
pub fn room(folder: &Path) -> u64 {
    use std::os::unix::ffi::OsStrExt;
    let Ok(name) = std::ffi::CString::new(folder.as_os_str().as_bytes()) else {
        return 0;
    };
    // SAFETY: zeros are a valid value; a C string and a place for the answer.
    unsafe {
        let mut answer: libc::statvfs = std::mem::zeroed();
        match libc::statvfs(name.as_ptr(), &raw mut answer) {
            0 => answer.f_bavail.saturating_mul(answer.f_frsize),
            _ => 0,
        }
    }
}
