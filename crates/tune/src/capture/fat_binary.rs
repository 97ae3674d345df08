//! PTX in the images that programs load: as text, or in a fat binary, plain or compressed.
//!
//! A fat binary is a header of 16 bytes (magic number, version, the header's size at byte 6, the size of the rest at byte 8),
//! followed by entries. An entry has its kind at byte 0 (1 is PTX, 2 machine code), its header's size at 4, its payload's at 8,
//! the used size of a compressed payload at 16, the architecture at 28, flags at 40, and the uncompressed size at 56.

use crate::error::{Error, Result};
use crate::ir::limits;

const MAGIC: u32 = 0xba55_ed50;
const KIND_PTX: u16 = 1;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;

/// A module's text in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The architecture that it was written for: 90 for `sm_90`; nothing if only the text says it.
    pub architecture: Option<u32>,
    /// The text.
    pub text: String,
}

/// The modules of PTX in an image; none where it is machine code alone.
///
/// # Errors
/// It is a fat binary that is cut off or compressed in an unknown way.
pub fn texts(image: &[u8]) -> Result<Vec<Text>> {
    if number(image, 0, 4) == Some(u64::from(MAGIC)) {
        return fat_binary(image);
    }
    if image.starts_with(b"\x7fELF") {
        return Ok(Vec::new());
    }
    let text = text_of(image)?;
    Ok(vec![Text {
        architecture: None,
        text,
    }])
}

fn fat_binary(image: &[u8]) -> Result<Vec<Text>> {
    let cut = || Error::input("a fat binary is cut off");
    let header = number(image, 6, 2).ok_or_else(cut)?;
    let size = number(image, 8, 8).ok_or_else(cut)?;
    let end = header
        .checked_add(size)
        .filter(|&end| end <= image.len() as u64)
        .ok_or_else(cut)?;
    let mut found = Vec::new();
    let mut at = header;
    while at < end {
        let field = |offset: u64, bytes: u64| number(image, at + offset, bytes).ok_or_else(cut);
        let kind = field(0, 2)? as u16;
        let (header, payload) = (field(4, 4)?, field(8, 8)?);
        let next = at
            .checked_add(header)
            .and_then(|start| start.checked_add(payload));
        let next = next.filter(|&next| next <= end && next > at).ok_or_else(cut)?;
        if kind == KIND_PTX {
            let flags = field(40, 8)?;
            let bytes = &image[(at + header) as usize..next as usize];
            let text = payload_of(bytes, flags, field(16, 4)?, field(56, 8)?)?;
            found.push(Text {
                architecture: Some(field(28, 4)? as u32),
                text: text_of(&text)?,
            });
        }
        at = next;
    }
    Ok(found)
}

/// An entry's bytes, uncompressed.
fn payload_of(bytes: &[u8], flags: u64, used: u64, whole: u64) -> Result<Vec<u8>> {
    if flags & (FLAG_LZ4 | FLAG_ZSTD) == 0 {
        return Ok(bytes.to_vec());
    }
    let used = usize::try_from(used).ok().and_then(|used| bytes.get(..used));
    let used = used.ok_or_else(|| Error::input("an entry of a fat binary is cut off"))?;
    let most = limits::TEXT_BYTES as u64;
    if whole > most {
        return Err(
            Error::input("PTX in a fat binary is too long").accepted(format!("at most {} MiB", most >> 20))
        );
    }
    let broken = |error: String| Error::input(format!("PTX in a fat binary cannot be uncompressed: {error}"));
    if flags & FLAG_LZ4 != 0 {
        return lz4_flex::block::decompress(used, whole as usize).map_err(|error| broken(error.to_string()));
    }
    let mut decoder =
        ruzstd::decoding::StreamingDecoder::new(used).map_err(|error| broken(error.to_string()))?;
    let mut text = Vec::new();
    let mut limited = std::io::Read::take(&mut decoder, most + 1);
    std::io::Read::read_to_end(&mut limited, &mut text).map_err(|error| broken(error.to_string()))?;
    Ok(text)
}

/// PTX as text; zeros at its end are left out.
fn text_of(bytes: &[u8]) -> Result<String> {
    let end = bytes
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(Error::input(format!("PTX is not text: {error}"))),
    }
}

/// A little-endian number in an image; nothing beyond its end.
fn number(image: &[u8], at: u64, bytes: u64) -> Option<u64> {
    let start = usize::try_from(at).ok()?;
    let own = image.get(start..start.checked_add(bytes as usize)?)?;
    Some(
        own.iter()
            .rev()
            .fold(0, |number, &byte| number << 8 | u64::from(byte)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = ".version 8.0\n.target sm_80\n.address_size 64\n// aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n";

    fn entry(kind: u16, flags: u64, payload: &[u8], used: usize) -> Vec<u8> {
        let mut bytes = vec![0u8; 64];
        bytes[..2].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&64u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes[16..20].copy_from_slice(&(used as u32).to_le_bytes());
        bytes[28..32].copy_from_slice(&80u32.to_le_bytes());
        bytes[40..48].copy_from_slice(&flags.to_le_bytes());
        bytes[56..64].copy_from_slice(&(PTX.len() as u64).to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    fn image(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut bytes = vec![0u8; 16];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[6..8].copy_from_slice(&16u16.to_le_bytes());
        bytes[8..16].copy_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn text_is_found_plain_and_compressed() {
        let compressed = lz4_flex::block::compress(PTX.as_bytes());
        let mut padded = compressed.clone();
        padded.extend([0; 5]);
        let mut plain = PTX.as_bytes().to_vec();
        plain.extend([0; 3]);
        let image = image(&[
            entry(2, 0, b"\x7fELF", 0),
            entry(1, 0, &plain, 0),
            entry(1, FLAG_LZ4, &padded, compressed.len()),
        ]);
        let found = texts(&image).expect("a fat binary");
        assert_eq!(found.len(), 2);
        for text in found {
            assert_eq!((text.architecture, text.text.as_str()), (Some(80), PTX));
        }
        assert_eq!(texts(PTX.as_bytes()).expect("text")[0].text, PTX);
        assert_eq!(texts(b"\x7fELF...").expect("machine code"), []);
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let whole = image(&[entry(1, 0, PTX.as_bytes(), 0)]);
        for length in 4..whole.len() {
            assert!(texts(&whole[..length]).is_err(), "{length}");
        }
        let loops = image(&[vec![0; 64]]);
        assert!(texts(&loops).is_err(), "an entry of no length");
        let mut short = entry(1, FLAG_LZ4, &[0xff; 8], 9);
        assert!(
            texts(&image(std::slice::from_ref(&short))).is_err(),
            "more is used than there is"
        );
        short[16] = 8;
        assert!(texts(&image(&[short])).is_err(), "no LZ4");
    }
}
