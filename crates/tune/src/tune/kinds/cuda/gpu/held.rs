//! The arguments that a worker holds: gigabytes take seconds to pass on, and a search asks batch by batch.

use std::sync::Arc;

use crate::device::{Fill, Pattern};
use crate::tune::workload::{ArgumentSpec, Workload};

/// The arguments that a worker holds, to compare kernels with the user's own one.
pub(super) struct Held {
    /// They are those of this workload.
    pub workload: Workload,
    /// Outputs with initial contents are restored before each timed launch.
    pub restored: bool,
}

impl Held {
    /// Whether a launch of this workload is known to take the same arguments.
    pub fn has_arguments_of(&self, workload: &Workload) -> bool {
        let held = &self.workload;
        let alignments = |workload: &Workload| -> Vec<_> {
            let params = workload.kernel.params.iter();
            params.map(|param| param.facts.map(|facts| facts.align)).collect()
        };
        is_one(held.placed.as_ref(), workload.placed.as_ref())
            && is_one(held.original.as_ref(), workload.original.as_ref())
            && alignments(held) == alignments(workload)
            && holds_the_same(&held.given, &workload.given)
    }
}

/// Whether two are the same one, not equal ones, or both missing.
fn is_one<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    one.map(Arc::as_ptr) == other.map(Arc::as_ptr)
}

/// Whether the parameters' arguments are known to be the same.
fn holds_the_same(one: &[ArgumentSpec], other: &[ArgumentSpec]) -> bool {
    let is_same_fill = |one: &Fill, other: &Fill| match (one, other) {
        (Fill::Uninitialized, Fill::Uninitialized) => true,
        (Fill::Bytes(one), Fill::Bytes(other)) => Arc::ptr_eq(one, other),
        (Fill::Pattern(one), Fill::Pattern(other)) => match (one, other) {
            (Pattern::Function(one), Pattern::Function(other)) => Arc::ptr_eq(one, other),
            (Pattern::Function(_), _) | (_, Pattern::Function(_)) => false,
            // The others are said in full.
            _ => format!("{one:?}") == format!("{other:?}"),
        },
        _ => false,
    };
    let is_same = |(one, other): (&ArgumentSpec, &ArgumentSpec)| match (one, other) {
        (ArgumentSpec::Scalar(ty, bits), ArgumentSpec::Scalar(other_ty, other_bits)) => {
            (ty, bits) == (other_ty, other_bits)
        }
        (
            ArgumentSpec::Part { of, start },
            ArgumentSpec::Part {
                of: other_of,
                start: other_start,
            },
        ) => (of, start) == (other_of, other_start),
        (
            ArgumentSpec::Input {
                element,
                length,
                fill,
            },
            ArgumentSpec::Input {
                element: other_element,
                length: other_length,
                fill: other_fill,
            },
        )
        | (
            ArgumentSpec::Output {
                element,
                length,
                fill,
                ..
            },
            ArgumentSpec::Output {
                element: other_element,
                length: other_length,
                fill: other_fill,
                ..
            },
        ) => (element, length) == (other_element, other_length) && is_same_fill(fill, other_fill),
        _ => false,
    };
    one.len() == other.len() && one.iter().zip(other).all(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Kernel, Type};

    #[test]
    fn another_geometry_has_the_same_arguments_and_other_data_do_not() {
        let data: Arc<[u8]> = Arc::from([1, 2, 3, 4]);
        let workload = |data: &Arc<[u8]>, groups| Workload {
            kernel: Arc::new(Kernel::new("k")),
            groups: [groups, 1, 1],
            group: [128, 1, 1],
            given: vec![
                ArgumentSpec::Input {
                    element: Type::I32,
                    length: 1,
                    fill: Fill::Bytes(Arc::clone(data)),
                },
                ArgumentSpec::Scalar(Type::I32, 7),
            ],
            original: None,
            placed: None,
            divides: None,
        };
        let held = Held {
            workload: workload(&data, 1),
            restored: false,
        };
        assert!(held.has_arguments_of(&workload(&data, 2)));
        // Equal bytes elsewhere are not compared: that would take as long as to pass them on.
        assert!(!held.has_arguments_of(&workload(&Arc::from([1, 2, 3, 4]), 1)));
        let mut other = workload(&data, 1);
        other.given[1] = ArgumentSpec::Scalar(Type::I32, 8);
        assert!(!held.has_arguments_of(&other));
    }
}
