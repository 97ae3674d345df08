//! What the work-groups of a launch find out: prefetches that a fence undid, races that are allowed, and races that are not.
//!
//! Work-groups report from several threads. [`LaunchState::finish`] runs after the last one.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::LaunchState;
use crate::functional::address;
use crate::functional::fault::{self, Region};
use crate::functional::prefetched::CutOff;
use crate::functional::shadow::did;
use crate::functional::written::SameBits;
use crate::ir::{Array, Races, Space};
use crate::violation::{Element, Racing, Violation};
use crate::{Error, Result};

impl LaunchState<'_> {
    /// Not all accesses could be remembered.
    pub(in crate::functional) fn note_incomplete(&self) {
        self.is_incomplete.store(true, Ordering::Relaxed);
    }

    /// Notes the buffers that a work-group read without having written the element itself.
    pub(in crate::functional) fn add_looked(&self, group: u64, buffers: u64) {
        if buffers != 0 {
            let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            looked.insert(group, buffers);
        }
    }

    /// Adds stores of a work-group that race with others of the same bits.
    pub(in crate::functional) fn add_same_bits(&self, same_bits: &mut SameBits) {
        self.same_bits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(same_bits);
    }

    /// Adds accesses of a work-group that race as the program means it.
    pub(in crate::functional) fn add_meant(&self, meant: &mut SameBits) {
        let mut all = self.meant.lock().unwrap_or_else(PoisonError::into_inner);
        all.append(meant);
    }

    /// A fence undid a prefetch.
    pub(in crate::functional) fn note(&self, cut_off: CutOff) {
        self.cut_off
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(cut_off);
    }

    /// Warnings for the kernel's author.
    pub(in crate::functional) fn notes(&self) -> Vec<String> {
        let cut_off = self.cut_off.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |place| self.kernel.describe_place(place);
        let note = |cut: &CutOff| {
            format!(
                "{}: the prefetch to L1 may be lost before its load at {}: the fence at {} may empty L1; prefetch again \
                 behind the fence, or to L2",
                place(cut.prefetch),
                place(cut.load),
                place(cut.fence)
            )
        };
        let mut notes: Vec<String> = cut_off.iter().map(note).collect();
        let same_bits = self.same_bits.lock().unwrap_or_else(PoisonError::into_inner);
        notes.extend(same_bits.all().map(|(at, same)| {
            format!(
                "{}: {} writes race with others of the same bits, the first at {}: allowed, for any order leaves the same",
                place(at),
                same.count,
                self.element_of(same.space, same.lowest),
            )
        }));
        let meant = self.meant.lock().unwrap_or_else(PoisonError::into_inner);
        notes.extend(meant.all().map(|(at, raced)| {
            format!(
                "{}: {} accesses race with writes of others, the first at {}: allowed, for `races` says that either outcome \
                 is right",
                place(at),
                raced.count,
                self.element_of(raced.space, raced.lowest),
            )
        }));
        if self.is_incomplete.load(Ordering::Relaxed) {
            let limit = self.options.group_memory_limit;
            notes.push(format!(
                "the records of which work-item touched what take more than {limit} bytes: some races may not be seen"
            ));
        }
        notes
    }

    /// An element of global or shared memory.
    fn element_of(&self, space: Space, address: u64) -> Element {
        if space != Space::Shared {
            return self.element_at(address, self.locate_named(address));
        }
        let (array, offset) = address::split(space, address);
        let array = array
            .and_then(|array| u32::try_from(array).ok())
            .map(Array::from_u32);
        let array = array.and_then(|array| self.kernel.arrays.get(array));
        array.map_or_else(
            || Element::Address(address),
            |array| {
                let region = Region {
                    name: array.name.clone(),
                    element: array.element,
                    bytes: array.bytes(),
                };
                region.element(offset)
            },
        )
    }

    /// Ends a launch whose work-groups have all run without an error. Looks for races between work-groups.
    ///
    /// # Errors
    /// Two work-groups touch the same memory, and one writes.
    pub(in crate::functional) fn finish(&self) -> Result<()> {
        if !self.is_checking() {
            return Ok(());
        }
        let cell = 1u32 << self.cells.global;
        let meant = |buffer: usize| self.buffers.get(buffer).map_or(Races::None, |bound| bound.races);
        if let Some((number, writer, other)) = self.shadow.race(meant) {
            let element = self.element(number << self.cells.global);
            let who = |item| fault::describe_item(self.launch, item);
            let does = |what: u8| other.did & what != 0;
            let verb = match (
                does(did::READ | did::STRONG_READ),
                does(did::WROTE | did::STRONG_WROTE),
            ) {
                (true, true) => "reads and writes",
                (false, true) => "writes",
                _ => "reads",
            };
            let race = Violation::Race {
                who: who(writer.item),
                does: "writes",
                element,
                with: Racing::AtEnd(who(other.item)),
                did: verb,
                there: self.kernel.describe_place(other.place),
            };
            let error = fault::error(self.kernel, writer.place, race);
            let (buffer, _) = address::split(Space::Global, number << self.cells.global);
            let name = buffer.and_then(|buffer| self.buffers.get(buffer));
            let name = name.map_or("", |bound| &bound.region.name);
            return Err(meant_by(error, name, !does(did::WROTE | did::STRONG_WROTE)));
        }
        let mut same_bits = SameBits::default();
        for ((buffer, place), (count, lowest)) in self.shadow.same_bits() {
            let lowest = lowest << self.cells.global;
            same_bits.add(place, buffer as u64, Space::Global, lowest, count);
        }
        self.add_same_bits(&mut same_bits);
        self.shadow
            .written(|buffer, offset| self.buffers[buffer].memory.mark_written(offset, cell));
        Ok(())
    }
}

/// Whether a finding is about a program in Rust.
pub(in crate::functional) fn is_rust(error: &Error) -> bool {
    error.place().is_some_and(|place| place.contains(".rs:"))
}

/// Adds to a race what it takes where it is meant: in Rust atomic memory; for others the statement of a launch file that either
/// value is right if one side reads, or else any outcome.
pub(in crate::functional) fn meant_by(error: Error, buffer: &str, one_reads: bool) -> Error {
    let known = error
        .accepts()
        .map(|accepted| format!("{accepted}; "))
        .unwrap_or_default();
    let is_rust = is_rust(&error);
    error.accepted(match one_reads {
        _ if is_rust => format!("{known}where it is meant, atomic memory: `&[Atomic<T>]`"),
        true => format!("{known}where either value is right, `races = true` in a launch file"),
        false => format!("{known}where any outcome is right, `races = [\"{buffer}\"]` in a launch file"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_rust_has_no_launch_file() {
        let said = |place: &str| meant_by(Error::input("a race").at(place), "sums", false).to_string();
        assert!(
            said("src/main.rs:3:5").contains("`&[Atomic<T>]`"),
            "{}",
            said("src/main.rs:3:5")
        );
        assert!(said("sum.ptx:3").contains("`races = [\"sums\"]` in a launch file"));
    }
}
