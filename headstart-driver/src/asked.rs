//! What the Python package asks of this library, which it loads without preloading it: the bytes that a launch reaches.
//!
//! The package decides for launches as [`replace`](crate::replace) does, by the same facts. The arithmetic of `terms` is here, and
//! nowhere else outside the command.

use std::ffi::{CStr, c_char};

use crate::facts;
use crate::reach::{Last, Scalar};

/// What is reached through a pointer among the parameters, counted from where it leads.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReachedRange {
    /// The parameter's number, and the byte inside of it at which the pointer is.
    index: u32,
    inside: u32,
    /// Whether it is known what is reached.
    is_known: u32,
    /// Whether that is anything.
    is_any: u32,
    /// The first byte and the last.
    first: i64,
    last: i64,
}

/// A launch's parameters as it passes them.
struct Passed<'p> {
    bytes: &'p [u8],
    offsets: &'p [u64],
}

impl Passed<'_> {
    /// A number; none if there is no such parameter, or it ends before.
    fn number(&self, scalar: Scalar) -> Option<u64> {
        let start = usize::try_from(*self.offsets.get(scalar.index)?).ok()?;
        let start = start.checked_add(scalar.inside)?;
        let own = self.bytes.get(start..start.checked_add(scalar.bytes)?)?;
        let mut word = [0; 8];
        word.get_mut(..own.len())?.copy_from_slice(own);
        Some(u64::from_le_bytes(word))
    }
}

/// What a launch reaches through each pointer that the facts say it of; none if they are not understood, or need what is no
/// parameter.
fn reached(facts: &str, passed: &Passed<'_>, groups: [u32; 3]) -> Option<Vec<ReachedRange>> {
    let reaches = facts::reaches_of(facts)?;
    let numbers: Option<Vec<(Scalar, u64)>> = reaches
        .scalars()
        .map(|scalar| Some((scalar, passed.number(scalar)?)))
        .collect();
    let numbers = numbers?;
    let word = |scalar: Scalar| {
        let own = numbers.iter().find(|(other, _)| *other == scalar);
        own.map_or(0, |&(_, number)| number)
    };
    let reached = reaches.of(&Last::new(), word, groups);
    let found = reaches.pointers().zip(reached).map(|((index, inside), reached)| {
        let bytes = reached.flatten();
        ReachedRange {
            index: index as u32,
            inside: inside as u32,
            is_known: u32::from(reached.is_some()),
            is_any: u32::from(bytes.is_some()),
            first: bytes.map_or(0, |(first, _)| first),
            last: bytes.map_or(0, |(_, last)| last),
        }
    });
    Some(found.collect())
}

/// Which bytes a launch reaches: `facts` are lines, words in them separated by spaces or tabs, of which `terms` and `reach` are
/// read. `parameters` are `bytes` bytes, and each of the `count` parameters begins at its offset. Returns how many pointers were
/// written to `found`, which has room for `most`; -1 if the facts are not understood.
///
/// # Safety
/// `facts` ends with a null byte; the others point to as many values as is said, `groups` to three.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headstart_reached(
    facts: *const c_char,
    parameters: *const u8,
    bytes: usize,
    offsets: *const u64,
    count: usize,
    groups: *const u32,
    found: *mut ReachedRange,
    most: usize,
) -> i64 {
    if [facts.cast::<u8>(), parameters, offsets.cast(), groups.cast()].contains(&std::ptr::null())
        || found.is_null()
    {
        return -1;
    }
    // SAFETY: the caller's; none of them is null.
    let (text, passed, groups, places) = unsafe {
        (
            CStr::from_ptr(facts),
            Passed {
                bytes: std::slice::from_raw_parts(parameters, bytes),
                offsets: std::slice::from_raw_parts(offsets, count),
            },
            [*groups, *groups.add(1), *groups.add(2)],
            std::slice::from_raw_parts_mut(found, most),
        )
    };
    let reached = text.to_str().ok().and_then(|text| reached(text, &passed, groups));
    let Some(reached) = reached.filter(|reached| reached.len() <= places.len()) else {
        return -1;
    };
    places[..reached.len()].copy_from_slice(&reached);
    reached.len() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: &str = "group 128 1 1\napart 0 0 1 0\n\
        terms g:0 c:128 mul:0:1 p:3:0:4 min:2:3 c:4 mul:4:5 c:1 sub:6:7 c:0 between:9:8 c:-1 unsigned:64:11\n\
        reach 0 0 10\nreach 1 0 12\n";

    fn asked(facts: &str, parameters: &[u8], offsets: &[u64]) -> Option<Vec<ReachedRange>> {
        let facts = std::ffi::CString::new(facts).expect("no null bytes");
        let (mut found, groups) = ([ReachedRange::default(); 4], [3, 1, 1]);
        // SAFETY: all have as many values as is said.
        let count = unsafe {
            headstart_reached(
                facts.as_ptr(),
                parameters.as_ptr(),
                parameters.len(),
                offsets.as_ptr(),
                offsets.len(),
                groups.as_ptr(),
                found.as_mut_ptr(),
                found.len(),
            )
        };
        Some(found[..usize::try_from(count).ok()?].to_vec())
    }

    #[test]
    fn a_launch_is_told_what_it_reaches() {
        let mut parameters = [0; 28];
        parameters[24..28].copy_from_slice(&100u32.to_le_bytes());
        let found = asked(FACTS, &parameters, &[0, 8, 16, 24]).expect("it is understood");
        let known = ReachedRange {
            is_known: 1,
            is_any: 1,
            last: 399,
            ..ReachedRange::default()
        };
        assert_eq!(
            found,
            [
                known,
                ReachedRange {
                    index: 1,
                    ..ReachedRange::default()
                }
            ]
        );
        // Nothing at all is reached, which is known.
        parameters[24..28].copy_from_slice(&0u32.to_le_bytes());
        let found = asked(FACTS, &parameters, &[0, 8, 16, 24]).expect("it is understood");
        assert_eq!((found[0].is_known, found[0].is_any), (1, 0));
    }

    #[test]
    fn what_is_not_there_is_not_read() {
        let parameters = [0; 28];
        assert_eq!(
            asked(FACTS, &parameters, &[0, 8, 16]),
            None,
            "no fourth parameter"
        );
        assert_eq!(asked(FACTS, &parameters, &[0, 8, 16, 26]), None, "it ends before");
        assert_eq!(asked(FACTS, &parameters, &[0, 8, 16, u64::MAX]), None);
        for wrong in [
            "terms moon:1\n",
            "reach 0 0 0\n",
            "terms c:1\nreach 0 0 1\n",
            "terms c:1\nreach 0\n",
        ] {
            assert_eq!(asked(wrong, &parameters, &[0]), None, "{wrong}");
        }
        assert_eq!(asked("group 1 1 1\n", &parameters, &[0]), Some(Vec::new()));
    }
}
