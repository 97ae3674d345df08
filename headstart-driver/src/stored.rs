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

use crate::record;

/// The beginning of a file.
const MAGIC: &[u8; 8] = b"HSMEM001";
/// Bytes of a block, uncompressed.
const BLOCK: usize = 4 << 20;
/// Marks a block that is not compressed.
const PLAIN: u32 = 1 << 31;
/// Threads that compress.
const THREADS: usize = 8;

/// Stores some memory in a folder; its name there. Existing files are not written again.
///
/// # Errors
/// The system's.
pub fn keep(folder: &Path, bytes: &[u8]) -> io::Result<String> {
    let name = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes));
    let path = folder.join(&name);
    if path.exists() {
        return Ok(name);
    }
    fs::create_dir_all(folder)?;
    let partial = record::beside(&path);
    let written = write(&partial, bytes).and_then(|()| fs::rename(&partial, &path));
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written.map(|()| name)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(MAGIC)?;
    file.write_all(&(bytes.len() as u64).to_le_bytes())?;
    let blocks: Vec<&[u8]> = bytes.chunks(BLOCK).collect();
    for some in blocks.chunks(THREADS) {
        let compressed = thread::scope(|scope| {
            let running: Vec<_> = some.iter().map(|block| scope.spawn(|| compress(block))).collect();
            running
                .into_iter()
                .map(|thread| thread.join().ok())
                .collect::<Vec<_>>()
        });
        for (block, compressed) in some.iter().zip(compressed) {
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
    }
    file.into_inner().map_err(io::IntoInnerError::into_error)?;
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
