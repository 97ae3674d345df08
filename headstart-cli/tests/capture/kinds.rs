//! Kernels whose launches are of several kinds: each kind is counted, copied and tuned by itself.

use std::fs;

use headstart::capture::{Captured, CapturedProgram};

use crate::place::{Place, ptx, text};

#[test]
fn launches_that_are_unlike_are_counted_and_copied_by_themselves() {
    let ptx = ptx("gather");
    let place = Place::new("kinds", 1);
    let alone = text(&place.alone("kinds", &[&ptx, "3"]).stdout);
    let said = place.done(&["capture", "-o", "cap", "--", "./kinds", &ptx, "3"]);
    assert!(said.starts_with(&alone), "{said}");
    assert!(said.contains("4 kinds of launches"), "{said}");
    let program = CapturedProgram::read(&place.at("cap")).expect("a captured program");
    assert_eq!(program.program[0], "./kinds");
    let [kernel] = &program.kernels[..] else {
        panic!("{program:?}");
    };
    assert_eq!((kernel.name.as_str(), kernel.launches), ("gather", 15));
    assert_eq!(kernel.kinds.len(), 4, "{kernel:?}");
    let shares: f64 = kernel.kinds.iter().map(|kind| kind.share).sum();
    assert!(
        (shares - 1.0).abs() < 1e-6 && (kernel.share - 1.0).abs() < 1e-6,
        "{kernel:?}"
    );
    let mut seen: Vec<(u64, [u32; 3], [u32; 3], &str)> = kernel
        .kinds
        .iter()
        .map(|kind| (kind.launches, kind.groups, kind.group, kind.parameters.as_str()))
        .collect();
    seen.sort();
    assert_eq!(
        seen,
        [
            (3, [1, 1, 1], [128, 1, 1], "a b c 2^4 2^5"),
            (3, [8, 1, 1], [128, 1, 1], "a b b 2^10 2^5"),
            (3, [16, 1, 1], [64, 1, 1], "a b c 2^10 2^5"),
            (6, [8, 1, 1], [128, 1, 1], "a b c 2^10 2^5"),
        ]
    );
    for kind in &kernel.kinds {
        let Some(folder) = &kind.folder else {
            let why = kind.not_captured.as_deref();
            assert!(
                kind.share < 0.01 && why == Some("too small a share of the time"),
                "{kind:?}"
            );
            continue;
        };
        let captured = Captured::read(&place.at("cap").join(folder)).expect("a captured launch");
        assert_eq!((captured.groups, captured.group), (kind.groups, kind.group));
        assert_eq!(captured.number, kind.typical);
    }
    assert!(said.contains("Next: headstart tune cap\n"), "{said}");
}

/// The largest kind has all the room, the lesser ones share as much.
#[test]
fn lesser_kinds_share_their_room() {
    let ptx = ptx("gather");
    let place = Place::new("kinds", 1);
    // Each launch of a large kind reaches 217,088 or 233,472 bytes.
    let most = ["--max-bytes", "300000", "-o", "cap", "--", "./kinds", &ptx, "3"];
    place.done(&[&["capture"][..], &most].concat());
    let program = CapturedProgram::read(&place.at("cap")).expect("a captured program");
    let kinds = &program.kernels[0].kinds;
    assert!(kinds[0].folder.is_some(), "{kinds:?}");
    let full = "launches of the kernel's lesser kinds together reach more than 300000 bytes of memory";
    let refused = kinds
        .iter()
        .filter(|kind| kind.not_captured.as_deref() == Some(full))
        .count();
    assert!(refused > 0, "{kinds:?}");
    let lesser = kinds[1..].iter().filter(|kind| kind.folder.is_some()).count();
    assert_eq!(lesser, 1, "{kinds:?}");
    let copies = fs::read_dir(place.at("cap")).expect("a folder");
    let copies = copies.filter(|entry| {
        let path = entry.as_ref().expect("an entry").path();
        path.join("launch.toml").is_file()
    });
    assert_eq!(copies.count(), 2, "nothing half written is left");
}
