//! Machine code from a file, before the driver sees it.
//!
//! The driver gets an address without a size and trusts the tables inside the image. So everything that the tables describe
//! must lie inside the given bytes: segments, sections, names, symbols, and the targets of relocations.

use object::elf::{EM_CUDA, FileHeader64};
use object::read::elf::{ElfFile64, FileHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSegment, ObjectSymbol, RelocationTarget};

/// Checks that bytes are a 64-bit ELF file for NVIDIA's GPUs and that none of its parts lies outside.
///
/// # Errors
/// The error.
pub(super) fn check(code: &[u8]) -> Result<(), String> {
    let header = FileHeader64::<LittleEndian>::parse(code).map_err(wrong("the header"))?;
    if header.e_machine.get(LittleEndian) != EM_CUDA {
        return Err("it is for another kind of processor".to_owned());
    }
    let file = ElfFile64::<LittleEndian>::parse(code).map_err(wrong("its tables"))?;
    for segment in file.segments() {
        segment.data().map_err(wrong("a segment"))?;
    }
    for section in file.sections() {
        section.name().map_err(wrong("a section's name"))?;
        section.data().map_err(wrong("a section"))?;
        for (offset, relocation) in section.relocations() {
            if offset >= section.size() {
                return Err("a relocation outside its section".to_owned());
            }
            if let RelocationTarget::Symbol(symbol) = relocation.target() {
                file.symbol_by_index(symbol)
                    .map_err(wrong("a relocation's symbol"))?;
            }
        }
    }
    for symbol in file.symbols() {
        symbol.name().map_err(wrong("a symbol's name"))?;
        if let Some(section) = symbol.section_index() {
            file.section_by_index(section)
                .map_err(wrong("a symbol's section"))?;
        }
    }
    Ok(())
}

fn wrong(what: &str) -> impl FnOnce(object::Error) -> String + '_ {
    move |error| format!("{what}: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file without sections.
    fn small() -> Vec<u8> {
        let mut code = vec![0; 64];
        code[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        code[18..20].copy_from_slice(&EM_CUDA.0.to_le_bytes());
        code[20] = 1;
        code[52] = 64;
        code
    }

    #[test]
    fn what_leads_outside_is_refused() {
        check(&small()).expect("a file without parts");
        check(b".version 8.0").expect_err("text");
        check(&small()[..63]).expect_err("a header that is cut off");
        let mut other = small();
        other[18] = 62;
        assert!(check(&other).expect_err("x86").contains("another kind"));
        let mut far = small();
        far[40..48].copy_from_slice(&4096u64.to_le_bytes());
        far[58..60].copy_from_slice(&64u16.to_le_bytes());
        far[60..62].copy_from_slice(&3u16.to_le_bytes());
        check(&far).expect_err("sections outside");
    }

    /// ptxas's output is accepted; with any byte changed, or cut off anywhere, nothing panics.
    #[test]
    fn damaged_files_are_refused_or_whole() {
        let text =
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\nret;\n}\n";
        let Some(ptxas) = headstart_testing::ptxas::Ptxas::find() else {
            println!("skipped: no ptxas");
            return;
        };
        let code = ptxas.machine_code(text).expect("assembled");
        check(&code).expect("ptxas writes whole files");
        for end in 0..code.len() {
            let _ = check(&code[..end]);
        }
        let mut refused = 0;
        for at in 0..code.len() {
            for bits in [0x80, 0xff] {
                let mut damaged = code.clone();
                damaged[at] ^= bits;
                refused += u32::from(check(&damaged).is_err());
            }
        }
        assert!(refused > 50, "{refused} refused");
    }
}
