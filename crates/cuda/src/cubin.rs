//! What machine code takes of a GPU's resources, as its file says: no driver is needed to read it.

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};

use super::elf;

/// The section with facts about all functions: entries of a format, a name, a size in 16 bits, and that many bytes.
const FACTS: &str = ".nv.info";
/// The format of entries with a size (`EIFMT_SVAL`). Others have two bytes in the place of it.
const SIZED: u8 = 4;
/// A function's symbol and its number of registers, 32 bits each (`EIATTR_REGCOUNT`).
const REGISTERS: u8 = 0x2f;
/// The same with its bytes of local memory (`EIATTR_FRAME_SIZE`).
const FRAME: u8 = 0x11;

/// What an entry's machine code takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Registers of one work-item.
    pub registers: u32,
    /// Private memory of one work-item, spilled registers included, in bytes.
    pub local_bytes: u32,
}

/// The resources of an entry.
///
/// # Errors
/// The bytes are no machine code for NVIDIA's GPUs, or do not say it.
pub(crate) fn resources(code: &[u8], entry: &str) -> Result<Resources, String> {
    elf::check(code)?;
    let file = ElfFile64::<LittleEndian>::parse(code).map_err(|error| error.to_string())?;
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(entry));
    let symbol = symbol.ok_or_else(|| format!("it has no `{entry}`"))?.index().0;
    let facts = file
        .section_by_name(FACTS)
        .and_then(|section| section.data().ok());
    let of = |wanted: u8| {
        let mut facts = Facts(facts.unwrap_or_default());
        facts.find_map(|(name, bytes)| {
            let (of, number) = (word(bytes, 0)?, word(bytes, 4)?);
            (name == wanted && of as usize == symbol).then_some(number)
        })
    };
    Ok(Resources {
        registers: of(REGISTERS).ok_or_else(|| format!("it has no number of registers for `{entry}`"))?,
        local_bytes: of(FRAME).unwrap_or(0),
    })
}

/// The little-endian word that starts at a byte.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// The names and contents of the entries.
struct Facts<'d>(&'d [u8]);

impl<'d> Iterator for Facts<'d> {
    type Item = (u8, &'d [u8]);

    fn next(&mut self) -> Option<(u8, &'d [u8])> {
        let (&[format, name, low, high], rest) = self.0.split_first_chunk()?;
        let size = match format {
            SIZED => usize::from(u16::from_le_bytes([low, high])),
            _ => 0,
        };
        let (bytes, rest) = rest.split_at_checked(size)?;
        self.0 = rest;
        Some((name, bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// An entry with this many values at once, and at most this many registers.
    fn entry(name: &str, values: u32, header: &str) -> String {
        let mut text = format!(
            ".visible .entry {name}(.param .u64 p) {header}\n{{\n.reg .b64 %d;\n.reg .b32 %r<99>;\nld.param.u64 %d, [p];\n"
        );
        for value in 0..values {
            let _ = writeln!(text, "ld.volatile.global.u32 %r{value}, [%d + {}];", 4 * value);
        }
        for value in 0..values {
            let _ = writeln!(text, "st.volatile.global.u32 [%d + {}], %r{value};", 4 * value);
        }
        text + "ret;\n}\n"
    }

    #[test]
    fn registers_and_spills_are_read() {
        let Some(ptxas) = headstart_testing::ptxas::Ptxas::find() else {
            println!("skipped: no ptxas");
            return;
        };
        let text = [
            ".version 8.0\n.target sm_90\n.address_size 64\n".to_owned(),
            entry("few", 2, ""),
            entry("many", 80, ""),
            entry("held", 80, ".maxnreg 32"),
        ];
        let code = ptxas.machine_code(&text.concat()).expect("assembled");
        let of = |name: &str| resources(&code, name).expect(name);
        assert!(
            of("few").registers < 32 && of("few").local_bytes == 0,
            "{:?}",
            of("few")
        );
        assert!(
            of("many").registers > 80 && of("many").local_bytes == 0,
            "{:?}",
            of("many")
        );
        assert!(
            of("held").registers <= 32 && of("held").local_bytes > 100,
            "{:?}",
            of("held")
        );
        assert!(
            resources(&code, "other")
                .expect_err("no entry")
                .contains("no `other`")
        );
        resources(&code[..100], "few").expect_err("cut off");
        // Whatever is changed, nothing panics.
        for at in 0..code.len() {
            let mut damaged = code.clone();
            damaged[at] ^= 0xff;
            let _ = resources(&damaged, "held");
        }
    }
}
