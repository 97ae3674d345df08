//! Allocations at addresses as a driver gives them.

use std::collections::BTreeMap;

use headstart::device::{Buffer, Command, Device, Fill, Pattern};
use headstart::ir::Type;

use crate::abi::{CUresult, INVALID_VALUE, OUT_OF_MEMORY, SUCCESS};
use crate::state::{State, say};

/// The first address.
const FIRST: u64 = 0x7f40_0000_0000;
/// What every allocation starts at a multiple of.
const ALIGN: u64 = 512;

/// All allocations.
#[derive(Default)]
pub struct Memory {
    all: BTreeMap<u64, Buffer>,
    given: u64,
}

impl State {
    /// Memory that is not written.
    pub fn allocate(&mut self, bytes: u64) -> Result<u64, CUresult> {
        self.allocate_filled(bytes, Fill::Uninitialized)
    }

    /// Memory with contents.
    pub fn allocate_filled(&mut self, bytes: u64, fill: Fill) -> Result<u64, CUresult> {
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        let buffer = self
            .device
            .allocate(Type::I8, bytes, fill)
            .map_err(|_| OUT_OF_MEMORY)?;
        let start = FIRST + self.memory.given;
        self.memory.given += bytes.next_multiple_of(ALIGN) + ALIGN;
        self.memory.all.insert(start, buffer);
        Ok(start)
    }

    /// Gives memory back.
    pub fn free(&mut self, address: u64) -> CUresult {
        match address == 0 || self.memory.all.remove(&address).is_some() {
            true => SUCCESS,
            false => INVALID_VALUE,
        }
    }

    /// The allocation that an address lies in, and how many bytes inside.
    pub fn find(&self, address: u64) -> Option<(u64, &Buffer, u64)> {
        let (start, buffer) = self.memory.all.range(..=address).next_back()?;
        let offset = address - start;
        (offset < buffer.bytes()).then_some((*start, buffer, offset))
    }

    /// All allocations: address and buffer.
    pub fn all_memory(&self) -> Vec<(u64, Buffer)> {
        self.memory
            .all
            .iter()
            .map(|(start, buffer)| (*start, buffer.clone()))
            .collect()
    }

    /// Copies from the host; false if the range lies in no allocation.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> CUresult {
        if bytes.is_empty() {
            return self.result();
        }
        let Some((_, buffer, offset)) = self.find(address) else {
            return INVALID_VALUE;
        };
        let write = Command::Write {
            buffer: buffer.clone(),
            offset,
            bytes: bytes.to_vec().into(),
        };
        self.done(write).map_or_else(|error| error, |_| self.result())
    }

    /// Copies to the host. What was never written reads as a pattern: real memory would hold something, too.
    pub fn read(&mut self, address: u64, bytes: u64) -> Result<Vec<u8>, CUresult> {
        if bytes == 0 {
            return Ok(Vec::new());
        }
        let Some((_, buffer, offset)) = self.find(address) else {
            return Err(INVALID_VALUE);
        };
        let buffer = buffer.clone();
        if buffer.check_range(offset, bytes).is_err() {
            return Err(INVALID_VALUE);
        }
        let read = |offset, length| Command::Read {
            buffer: buffer.clone(),
            offset,
            length,
        };
        if let Ok(outcome) = self.run(read(offset, bytes)) {
            return Ok(outcome.bytes.clone());
        }
        // Some of it was never written: byte by byte.
        let each = (offset..offset + bytes).map(|at| match self.run(read(at, 1)) {
            Ok(outcome) => outcome.bytes.first().copied().unwrap_or(0xa5),
            Err(_) => 0xa5,
        });
        Ok(each.collect())
    }

    /// Fills memory with a value of 1, 2 or 4 bytes.
    pub fn fill(&mut self, address: u64, value: &[u8], count: u64) -> CUresult {
        let bytes: Vec<u8> = value
            .iter()
            .copied()
            .cycle()
            .take(value.len() * count as usize)
            .collect();
        self.write(address, &bytes)
    }

    fn done(&mut self, command: Command) -> Result<std::sync::Arc<headstart::device::Outcome>, CUresult> {
        self.run(command).map_err(|error| {
            say(error);
            INVALID_VALUE
        })
    }
}

/// Zeros.
pub fn zeros() -> Fill {
    Fill::Pattern(Pattern::Constant(0))
}
