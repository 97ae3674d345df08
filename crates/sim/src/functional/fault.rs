//! The wording of the engine's reports: which work-item did what to which element, and where.

use super::shadow::Strength;
use crate::Error;
use crate::device::Launch;
use crate::ir::{Kernel, Place, Type};
use crate::violation::{Element, Violation, WorkItem};

/// A work-item: its group's linear number and its own in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    pub group: u64,
    pub local: u32,
}

/// A memory access of a work-item.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessOf {
    pub access: Access,
    /// The work-item's number in its work-group.
    pub item: u32,
    /// Where the access stands in the kernel.
    pub place: Place,
}

impl Access {
    /// An access of this kind by a work-item.
    #[inline]
    pub(super) fn of(self, item: u32, place: Place) -> AccessOf {
        let access = self;
        AccessOf { access, item, place }
    }
}

/// The kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    CopyFrom,
    CopyTo,
    Prefetch,
    /// By an atomic operation, which does one or both.
    Atomic {
        reads: bool,
        writes: bool,
        strength: Strength,
    },
    VolatileRead(Strength),
    VolatileWrite(Strength),
}

impl Access {
    /// As a verb: `reads`.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Access::Read | Access::VolatileRead(_) => "reads",
            Access::Write | Access::VolatileWrite(_) => "writes",
            Access::CopyFrom => "copies from",
            Access::CopyTo => "copies to",
            Access::Prefetch => "prefetches",
            Access::Atomic { writes: false, .. } => "atomically reads",
            Access::Atomic { reads: false, .. } => "atomically writes",
            Access::Atomic { .. } => "atomically changes",
        }
    }

    /// Whether it changes memory.
    pub(crate) fn writes(self) -> bool {
        matches!(
            self,
            Access::Write | Access::VolatileWrite(_) | Access::CopyTo | Access::Atomic { writes: true, .. }
        )
    }

    /// Whether it reads memory.
    pub(crate) fn reads(self) -> bool {
        matches!(
            self,
            Access::Read | Access::VolatileRead(_) | Access::CopyFrom | Access::Atomic { reads: true, .. }
        )
    }

    /// The limit that it violates.
    pub(crate) fn strength(self) -> Strength {
        match self {
            Access::Atomic { strength, .. }
            | Access::VolatileRead(strength)
            | Access::VolatileWrite(strength) => strength,
            _ => Strength::PLAIN,
        }
    }
}

/// A piece of memory that has a name: a parameter's buffer or an array.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub name: String,
    pub element: Type,
    pub bytes: u64,
}

impl Region {
    /// Number of elements.
    pub(crate) fn length(&self) -> u64 {
        self.bytes / u64::from(self.element.bytes().max(1))
    }

    /// An element, or a byte where the offset is none's first.
    pub(crate) fn element(&self, offset: i64) -> Element {
        let size = i64::from(self.element.bytes().max(1));
        match offset.rem_euclid(size) {
            0 => Element::Index(self.name.clone(), offset.div_euclid(size)),
            _ => Element::Byte(self.name.clone(), offset),
        }
    }
}

/// A work-item of a launch.
pub(super) fn describe_item(launch: &Launch, item: Item) -> WorkItem {
    let is_in_line = launch.group[1..] == [1, 1] && launch.groups[1..] == [1, 1];
    // Checks of one launch may name work-groups of a larger one.
    let (group, local) = match is_in_line {
        true => ([item.group, 0, 0], [u64::from(item.local), 0, 0]),
        false => (
            position(item.group, launch.groups),
            position(u64::from(item.local), launch.group),
        ),
    };
    WorkItem {
        group,
        local,
        global: std::array::from_fn(|axis| group[axis] * u64::from(launch.group[axis]) + local[axis]),
        is_in_line,
    }
}

/// As [`describe_item`].
#[doc(hidden)]
pub fn describe_work_item(launch: &Launch, group: u64, local: u32) -> WorkItem {
    describe_item(launch, Item { group, local })
}

/// Where a linear number lies in a grid; dimension 0 varies fastest.
pub(super) fn position(linear: u64, sizes: [u32; 3]) -> [u64; 3] {
    let [x, y, _] = sizes.map(u64::from);
    [linear % x, linear / x % y, linear / x / y]
}

/// The error of an execution that breaks a rule at a place.
pub(super) fn error(kernel: &Kernel, place: Place, violation: Violation) -> Error {
    Error::violation(violation).at(kernel.describe_place(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_items_are_named_by_local_and_global_number() {
        let mut launch = Launch::new(10, 128, Vec::new());
        let item = Item { group: 2, local: 5 };
        assert_eq!(
            describe_item(&launch, item).to_string(),
            "work-item 5 of work-group 2 (global 261)"
        );
        launch.groups = [4, 2, 1];
        launch.group = [8, 16, 1];
        let item = Item { group: 5, local: 17 };
        assert_eq!(
            describe_item(&launch, item).to_string(),
            "work-item (1, 2, 0) of work-group (1, 1, 0) (global (9, 18, 0))"
        );
    }

    #[test]
    fn elements_before_the_first_have_negative_numbers() {
        let region = Region {
            name: "values".to_owned(),
            element: Type::F32,
            bytes: 40,
        };
        assert_eq!(region.element(-4).to_string(), "`values[-1]`");
        assert_eq!(region.element(12).to_string(), "`values[3]`");
        assert_eq!(region.element(13).to_string(), "byte 13 of `values`");
        assert_eq!(region.length(), 10);
    }
}
