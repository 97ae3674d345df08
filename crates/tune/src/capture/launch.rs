//! A captured launch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::manifest::{Manifest, Memory};
use super::{LAUNCH, MODULE, stored};
use crate::error::{Error, Result};
use crate::files;
use crate::front::ptx::Assembler;
use crate::ir::{Fused, limits};
use crate::suggest::quoted;

/// The longest manifest, in bytes.
const MOST_BYTES: u64 = 16 << 20;
/// The format that is read.
const FORMAT: u32 = 1;

/// A captured launch, with its memory.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The folder that it lies in.
    pub folder: PathBuf,
    /// The kernel's name in its module.
    pub kernel: String,
    /// The hash of the image that it is of.
    pub image: String,
    /// Which launch of the kernel in its process it was, from 0.
    pub number: u64,
    /// The device that it ran on.
    pub device: String,
    /// The device's compute capability: 90 for 9.0.
    pub capability: u32,
    /// The driver's version, as that says it: 13000 for 13.0.
    pub driver: i64,
    /// Work-groups.
    pub groups: [u32; 3],
    /// Work-items of a work-group.
    pub group: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// Attributes of the launch beyond these: their numbers.
    pub(crate) attributes: Vec<u32>,
    /// All parameters, one after the other.
    pub parameters: Vec<u8>,
    /// Offset and size of each parameter, in bytes.
    pub layout: Vec<(u64, u64)>,
    /// The memory that the parameters reach, in the order of its addresses.
    pub memory: Vec<Allocation>,
    /// Variables of the module.
    pub variables: Vec<Variable>,
    /// Whether the memory after the launch is known; otherwise `after` is the memory before it.
    pub has_run: bool,
    /// The module's text, for the device that it ran on; nothing if its image has only machine code.
    pub module: Option<String>,
    /// The machine code's choice for the sums that the text leaves to the assembler.
    pub contraction: Contraction,
}

/// The known facts about a launch's machine code, if its text leaves the fusion of products and sums to the assembler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Contraction {
    /// Not read yet.
    #[default]
    Unknown,
    /// The text leaves nothing to the assembler.
    NothingOpen,
    /// The choice for each of these sums, in the order of the text.
    Decided(Vec<Fused>),
    /// They need not be known: with this assembler the module leaves what the program's own machine code left, and it makes the
    /// plans' code, whose results are compared.
    Compared(Assembler),
    /// The device's assembler makes code of the module that leaves other bytes than the program's own.
    OtherAssembler,
    /// The same bytes come of several choices for this sum, by its number, so that the launch does not tell.
    Untold(usize),
    /// No choice that was tried gives the bytes that the launch left.
    NoneFits,
    /// There was no time for all that has to be tried, or the launch's results are unknown.
    TooLong,
}

/// An allocation that a launch reaches.
#[derive(Clone, Debug)]
pub struct Allocation {
    /// Address of its first byte.
    pub address: u64,
    /// Its contents before the launch.
    pub before: Arc<[u8]>,
    /// Its contents after the launch.
    pub after: Arc<[u8]>,
    /// Whether another process or device may have written it meanwhile.
    pub(crate) is_foreign: bool,
}

/// A variable of the module.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its address and contents.
    pub memory: Allocation,
}

/// The first byte at which memory differs from its contents after the captured launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its address.
    pub address: u64,
    /// Its contents after the captured launch.
    pub captured: u8,
    /// Its present contents.
    pub found: u8,
    /// How many bytes of the same allocation differ.
    pub bytes: u64,
}

impl Allocation {
    /// Address behind its last byte.
    pub(crate) fn end(&self) -> u64 {
        self.address + self.before.len() as u64
    }

    /// Where its present contents first differ from those after the launch.
    pub(crate) fn difference(&self, now: &[u8]) -> Option<Difference> {
        if now == &self.after[..] {
            return None;
        }
        let both = || {
            self.after
                .iter()
                .zip(now)
                .enumerate()
                .filter(|(_, (one, other))| one != other)
        };
        let (offset, (&captured, &found)) = both().next()?;
        Some(Difference {
            address: self.address + offset as u64,
            captured,
            found,
            bytes: both().count() as u64,
        })
    }
}

impl Captured {
    /// Whether a folder has a captured launch.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(LAUNCH).is_file()
    }

    /// Reads a captured launch from its folder.
    ///
    /// # Errors
    /// It cannot be read, is of another format, or is not whole.
    pub fn read(folder: &Path) -> Result<Captured> {
        let path = folder.join(LAUNCH);
        let place = quoted(&path.to_string_lossy());
        let text = files::text(&path, MOST_BYTES).map_err(|error| {
            Error::usage(format!("the captured launch cannot be read: {error}"))
                .at(&place)
                .accepted("a folder that `headstart capture` has written, such as `cap/KERNEL`")
        })?;
        let manifest: Manifest = toml::from_str(&text).map_err(|error| {
            let said = error.message().lines().collect::<Vec<_>>().join("; ");
            Error::input(format!("no captured launch: {said}")).at(&place)
        })?;
        if manifest.format != FORMAT {
            return Err(
                Error::input(format!("a captured launch of format {}", manifest.format))
                    .at(&place)
                    .accepted(format!("format {FORMAT}")),
            );
        }
        let buffers = folder.parent().unwrap_or(folder).join("buffers");
        let module = folder.join(MODULE);
        let module = match module.is_file() {
            true => Some(files::text(&module, limits::TEXT_BYTES as u64).map_err(|error| {
                Error::input(format!("the captured module cannot be read: {error}"))
                    .at(quoted(&module.to_string_lossy()))
            })?),
            false => None,
        };
        let parameters = unhex(&manifest.parameters.bytes)
            .ok_or_else(|| Error::input("`parameters.bytes` is not a hexadecimal number").at(&place))?;
        let layout: Vec<(u64, u64)> = manifest
            .parameters
            .layout
            .iter()
            .map(|&[offset, size]| (offset, size))
            .collect();
        let fits = |&(offset, size): &(u64, u64)| {
            offset
                .checked_add(size)
                .is_some_and(|end| end <= parameters.len() as u64)
        };
        if !layout.iter().all(fits) {
            return Err(Error::input("`parameters.layout` reaches beyond `parameters.bytes`").at(&place));
        }
        let read = |memory: &Memory| allocation(&buffers, memory);
        let mut memory: Vec<Allocation> = manifest.memory.iter().map(read).collect::<Result<_>>()?;
        memory.sort_by_key(|allocation| allocation.address);
        let variable = |own: &Memory| {
            let name = own
                .name
                .clone()
                .ok_or_else(|| Error::input("a variable has no name").at(&place))?;
            Ok(Variable {
                name,
                memory: read(own)?,
            })
        };
        let has_run = manifest
            .memory
            .iter()
            .chain(&manifest.variables)
            .all(|own| own.after.is_some());
        Ok(Captured {
            folder: folder.to_owned(),
            kernel: manifest.kernel,
            image: manifest.image,
            number: manifest.launch,
            device: manifest.device,
            capability: manifest.capability,
            driver: manifest.driver,
            groups: manifest.groups,
            group: manifest.group,
            shared_bytes: manifest.shared_bytes,
            attributes: manifest.attributes.iter().map(|own| own.id).collect(),
            parameters,
            layout,
            memory,
            variables: manifest.variables.iter().map(variable).collect::<Result<_>>()?,
            has_run,
            contraction: Contraction::Unknown,
            module: module.map(|text| retargeted(text, manifest.capability)),
        })
    }

    /// The work-items of all its work-groups.
    pub fn work_items(&self) -> u64 {
        let sizes = self.groups.iter().chain(&self.group);
        sizes.fold(1, |product, &size| product.saturating_mul(u64::from(size)))
    }

    /// This many bytes of the parameters from a position on.
    pub(crate) fn passed(&self, position: u64, bytes: u64) -> Option<&[u8]> {
        let start = usize::try_from(position).ok()?;
        self.parameters
            .get(start..start.checked_add(usize::try_from(bytes).ok()?)?)
    }

    /// The same, as a number.
    pub(crate) fn parameter(&self, position: u64, bytes: u64) -> Option<u64> {
        let own = self.passed(position, bytes)?;
        Some(
            own.iter()
                .rev()
                .fold(0, |number, &byte| number << 8 | u64::from(byte)),
        )
    }

    /// The allocation that an address lies in, by its number; one past its last byte counts as in it.
    pub(crate) fn allocation_of(&self, address: u64) -> Option<usize> {
        let after = self.memory.partition_point(|own| own.address <= address);
        let number = after.checked_sub(1)?;
        (address < self.memory[number].end()).then_some(number)
    }

    /// The parameter that a byte of all parameters lies in: its number, and how many bytes inside.
    pub(crate) fn place_of(&self, position: u64) -> Option<(usize, u64)> {
        let number = self
            .layout
            .iter()
            .position(|&(offset, size)| (offset..offset + size).contains(&position))?;
        Some((number, position - self.layout[number].0))
    }
}

fn allocation(buffers: &Path, memory: &Memory) -> Result<Allocation> {
    let is_name = |name: &str| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let after = memory.after.as_ref().unwrap_or(&memory.before);
    for name in [&memory.before, after] {
        if !is_name(name) {
            return Err(Error::input(format!("{} names no captured memory", quoted(name))));
        }
    }
    let before: Arc<[u8]> = stored::read(&buffers.join(&memory.before), memory.bytes)?;
    let after = match *after == memory.before {
        true => Arc::clone(&before),
        false => stored::read(&buffers.join(after), memory.bytes)?,
    };
    if memory.address.checked_add(memory.bytes).is_none() || memory.address == 0 {
        return Err(Error::input(format!(
            "memory at {:#x} is nowhere",
            memory.address
        )));
    }
    Ok(Allocation {
        address: memory.address,
        before,
        after,
        is_foreign: memory.kind == "foreign",
    })
}

/// The oldest target whose modules have all that plans use.
const OLDEST_TARGET: u32 = 80;

/// A module for older GPUs than the one that it ran on, for one of that one's age: nvcc writes PTX for the oldest GPU that it
/// knows, unless a setting says otherwise, and PTX means the same for every later one.
pub(crate) fn retargeted(text: String, capability: u32) -> String {
    let Some(line) = text.lines().find(|line| line.trim_start().starts_with(".target")) else {
        return text;
    };
    let Some(place) = line.find("sm_") else {
        return text;
    };
    let digits: String = line[place + 3..]
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let is_older = digits.parse().is_ok_and(|target: u32| target < OLDEST_TARGET);
    match is_older && capability >= OLDEST_TARGET {
        true => {
            let newer = line.replacen(&format!("sm_{digits}"), &format!("sm_{OLDEST_TARGET}"), 1);
            text.replacen(line, &newer, 1)
        }
        false => text,
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_is_read_or_refused() {
        assert_eq!(unhex("00ff7a"), Some(vec![0, 0xff, 0x7a]));
        assert_eq!(unhex(""), Some(Vec::new()));
        for text in ["0", "0g", "+1", "é"] {
            assert_eq!(unhex(text), None, "{text}");
        }
    }

    #[test]
    fn a_module_for_older_gpus_is_one_for_this_one() {
        let of = |target: &str, capability| {
            retargeted(
                format!("// x\n.version 8.0\n.target {target}, debug\n"),
                capability,
            )
        };
        assert_eq!(of("sm_75", 90), "// x\n.version 8.0\n.target sm_80, debug\n");
        assert_eq!(of("sm_75", 75), "// x\n.version 8.0\n.target sm_75, debug\n");
        assert_eq!(of("sm_90a", 90), "// x\n.version 8.0\n.target sm_90a, debug\n");
        assert_eq!(retargeted("nothing".to_owned(), 90), "nothing");
    }

    #[test]
    fn the_first_difference_is_found() {
        let allocation = Allocation {
            address: 0x1000,
            before: Arc::from([0, 0, 0, 0]),
            after: Arc::from([1, 2, 3, 4]),
            is_foreign: false,
        };
        assert_eq!(allocation.difference(&[1, 2, 3, 4]), None);
        let expected = Difference {
            address: 0x1001,
            captured: 2,
            found: 9,
            bytes: 2,
        };
        assert_eq!(allocation.difference(&[1, 9, 3, 5]), Some(expected));
    }
}
