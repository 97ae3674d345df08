//! Data that follow from a function of the index, made once for all geometries of a case, on all cores: a tree of
//! gigabytes takes a second, and would take a minute each time it goes to the GPU.

use std::sync::Arc;

use headstart::device::{Fill, Pattern};
use headstart::ir::Type;
use headstart::tune::{ArgumentSpec, Workload};
use rayon::prelude::*;

/// Elements that are made one after the other.
const PART: usize = 1 << 16;

/// The last generated data for each parameter.
#[derive(Default)]
pub struct Made(Vec<(String, Type, Arc<[u8]>)>);

impl Made {
    /// Puts bytes in the place of functions.
    pub fn fill(&mut self, workload: &mut Workload) {
        for (given, param) in workload.given.iter_mut().zip(&workload.kernel.params) {
            let ArgumentSpec::Input {
                element,
                length,
                fill,
            } = given
            else {
                continue;
            };
            if let Fill::Pattern(pattern @ Pattern::Function(_)) = fill {
                *fill = Fill::Bytes(self.of(&param.name, *element, *length, pattern));
            }
        }
    }

    fn of(&mut self, name: &str, element: Type, length: u64, pattern: &Pattern) -> Arc<[u8]> {
        let bytes = length as usize * element.bytes() as usize;
        let known = self.0.iter().find(|(known, ty, bytes)| {
            known == name && *ty == element && is_same(bytes, element, length, pattern)
        });
        if let Some((_, _, bytes)) = known {
            return Arc::clone(bytes);
        }
        let made = all(element, bytes, pattern);
        self.0.retain(|(known, ..)| known != name);
        self.0.push((name.to_owned(), element, Arc::clone(&made)));
        made
    }
}

/// Whether bytes have this length and equal the function's values in a thousand places.
fn is_same(bytes: &[u8], element: Type, length: u64, pattern: &Pattern) -> bool {
    let size = element.bytes() as usize;
    let at = |index: u64| &bytes[index as usize * size..][..size];
    let step = (length / 1000).max(1) as usize;
    bytes.len() == length as usize * size
        && (0..length)
            .step_by(step)
            .all(|index| at(index) == pattern.bytes(element, index, 1))
}

fn all(element: Type, bytes: usize, pattern: &Pattern) -> Arc<[u8]> {
    let size = element.bytes() as usize;
    let mut made: Arc<[u8]> = std::iter::repeat_n(0, bytes).collect();
    if let Some(made) = Arc::get_mut(&mut made) {
        let parts = made.par_chunks_mut(PART * size).enumerate();
        parts.for_each(|(number, part)| {
            let count = part.len() / size;
            part.copy_from_slice(&pattern.bytes(element, (number * PART) as u64, count as u64));
        });
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_those_of_the_function_and_made_once() {
        let times = |factor: u64| Pattern::Function(Arc::new(move |index| index * factor + 1));
        let length = 3 * PART as u64 + 17;
        let mut made = Made::default();
        let first = made.of("keys", Type::I32, length, &times(5));
        assert_eq!(&first[..], times(5).bytes(Type::I32, 0, length));
        let again = made.of("keys", Type::I32, length, &times(5));
        assert!(Arc::ptr_eq(&first, &again));
        let other = made.of("keys", Type::I32, length, &times(7));
        assert_eq!(&other[..], times(7).bytes(Type::I32, 0, length));
        let shorter = made.of("keys", Type::I64, 3, &times(7));
        assert_eq!(&shorter[..], times(7).bytes(Type::I64, 0, 3));
    }
}
