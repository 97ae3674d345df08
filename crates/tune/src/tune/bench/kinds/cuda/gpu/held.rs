//! The arguments that a worker holds: gigabytes take seconds to pass on, and a search asks batch by batch.

use std::sync::Arc;

use crate::device::{Fill, Pattern};
use crate::tune::subject::workload::{ArgumentSpec, Workload};

/// Whether launches of two workloads are known to take the same arguments.
pub(super) fn have_the_same_arguments(one: &Workload, other: &Workload) -> bool {
    let alignments = |workload: &Workload| -> Vec<_> {
        let params = workload.kernel.params.iter();
        params.map(|param| param.facts.map(|facts| facts.align)).collect()
    };
    is_one(one.placed.as_ref(), other.placed.as_ref())
        && is_one(one.original.as_ref(), other.original.as_ref())
        && alignments(one) == alignments(other)
        && holds_the_same(&one.given, &other.given)
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
        let held = workload(&data, 1);
        assert!(have_the_same_arguments(&held, &workload(&data, 2)));
        // Equal bytes elsewhere are not compared: that would take as long as to pass them on.
        let elsewhere = workload(&Arc::from([1, 2, 3, 4]), 1);
        assert!(!have_the_same_arguments(&held, &elsewhere));
        let mut other = workload(&data, 1);
        other.given[1] = ArgumentSpec::Scalar(Type::I32, 8);
        assert!(!have_the_same_arguments(&held, &other));
    }
}
