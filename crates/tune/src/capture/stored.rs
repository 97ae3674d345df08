//! Memory as the preloaded library stores it; its module of this name documents the format.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use crate::error::{Error, Result};
use crate::suggest::quoted;

const MAGIC: &[u8; 8] = b"HSMEM001";
const BLOCK: usize = 4 << 20;
const PLAIN: u32 = 1 << 31;

/// The bytes of a file of memory, of which there must be this many.
///
/// # Errors
/// It cannot be read, is cut off, or holds another number of bytes.
pub(super) fn read(path: &Path, bytes: u64) -> Result<Arc<[u8]>> {
    let at = |error: Error| error.at(quoted(&path.to_string_lossy()));
    let file = std::fs::read(path)
        .map_err(|error| at(Error::input(format!("captured memory cannot be read: {error}"))))?;
    let memory = unpacked(&file).map_err(at)?;
    match memory.len() as u64 == bytes {
        true => Ok(memory),
        false => Err(at(Error::input(format!(
            "captured memory of {} bytes",
            memory.len()
        ))
        .accepted(format!("{bytes}, as its manifest says")))),
    }
}

fn unpacked(file: &[u8]) -> Result<Arc<[u8]>> {
    let cut = || Error::input("captured memory is cut off");
    let rest = file
        .strip_prefix(MAGIC)
        .ok_or_else(|| Error::input("no captured memory"))?;
    let (length, mut rest) = rest.split_at_checked(8).ok_or_else(cut)?;
    let length = length
        .iter()
        .rev()
        .fold(0u64, |number, &byte| number << 8 | u64::from(byte));
    let length = usize::try_from(length).map_err(|_| cut())?;
    // A block takes at least four bytes, so that a length that is wrong does not take all memory.
    if length.div_ceil(BLOCK).saturating_mul(4) > rest.len() {
        return Err(cut());
    }
    // Made where it stays: gigabytes are not copied once more.
    let mut memory: Arc<[u8]> = std::iter::repeat_n(0, length).collect();
    let own = Arc::get_mut(&mut memory).ok_or_else(|| Error::bug("memory that was just made is shared"))?;
    let mut blocks = Vec::new();
    for block in own.chunks_mut(BLOCK) {
        let (size, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let size = u32::from_le_bytes(*size);
        let (packed, after) = after.split_at_checked((size & !PLAIN) as usize).ok_or_else(cut)?;
        rest = after;
        blocks.push((block, packed, size & PLAIN != 0));
    }
    if !rest.is_empty() {
        return Err(Error::input("captured memory is followed by something else"));
    }
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = blocks.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let shares = blocks.chunks_mut(share).map(|share| {
            scope.spawn(|| {
                let mut share = share.iter_mut();
                share.try_for_each(|(block, packed, is_plain)| unpack(block, packed, *is_plain))
            })
        });
        let shares: Vec<_> = shares.collect();
        let mut ended = shares.into_iter();
        ended.try_for_each(|share| share.join().unwrap_or_else(|payload| resume_unwind(payload)))
    })?;
    Ok(memory)
}

/// Makes a block of what is stored of it; it is zeros before.
fn unpack(block: &mut [u8], packed: &[u8], is_plain: bool) -> Result<()> {
    let cut = || Error::input("captured memory is cut off");
    if is_plain && packed.len() == block.len() {
        block.copy_from_slice(packed);
    } else if is_plain {
        return Err(cut());
    } else if !packed.is_empty() {
        let written = lz4_flex::block::decompress_into(packed, block)
            .map_err(|error| Error::input(format!("captured memory cannot be uncompressed: {error}")))?;
        if written != block.len() {
            return Err(cut());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(blocks: &[(u32, &[u8])], length: u64) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend(length.to_le_bytes());
        for (size, bytes) in blocks {
            file.extend(size.to_le_bytes());
            file.extend_from_slice(bytes);
        }
        file
    }

    #[test]
    fn blocks_are_zeros_plain_or_compressed() {
        let last = [7u8; 1000];
        let lz4 = lz4_flex::block::compress(&last);
        let file = packed(&[(0, &[]), (lz4.len() as u32, &lz4)], BLOCK as u64 + 1000);
        let memory = unpacked(&file).expect("whole");
        assert_eq!(memory.len(), BLOCK + 1000);
        assert!(memory[..BLOCK].iter().all(|&byte| byte == 0) && memory[BLOCK..] == last);
        assert_eq!(
            *unpacked(&packed(&[(PLAIN | 3, b"abc")], 3)).expect("plain"),
            *b"abc"
        );
        for length in 0..file.len() {
            assert!(unpacked(&file[..length]).is_err(), "{length}");
        }
        assert!(unpacked(&packed(&[], u64::MAX)).is_err());
        assert!(unpacked(&packed(&[(PLAIN | 2, b"ab")], 3)).is_err());
    }
}
