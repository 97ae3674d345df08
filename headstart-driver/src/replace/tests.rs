//! Facts at launches, and kernels that are slower in a program.

use std::ffi::c_void;

use super::*;
use crate::facts::{Better, read};
use crate::memory::{self, MemoryKind};

#[test]
fn facts_are_looked_at_for_each_launch() {
    memory::allocated(0x10_0000, 0x1000, MemoryKind::Device);
    memory::allocated(0x20_0000, 0x1000, MemoryKind::Device);
    memory::allocated(0x30_0000, 0x1000, MemoryKind::Foreign);
    let place = |index| Place {
        index,
        inside: 0,
        bytes: 8,
    };
    let facts = vec![
        Fact::Group([64, 1, 1]),
        Fact::Shared(0),
        Fact::Apart(place(0), place(1)),
        Fact::Ends(place(0), 0x400, 4),
        Fact::Aligned(place(1), 16),
        Fact::Known(place(0)),
    ];
    let reaches = Reaches::default();
    let counts: &'static Counts = Box::leak(Box::default());
    let replacement = Replacement {
        handle: ptr::null_mut(),
        only_in: None,
        is_library: false,
        places: places(&facts, &reaches),
        facts,
        reaches,
        reached: Last::new(),
        counts,
        launches: AtomicU64::new(0),
        is_off: AtomicBool::new(false),
        resident: Resident::new(),
        last: Lock::new(None),
    };
    let holds = |one: u64, other: u64, group: u32, shared_bytes: u32| {
        let mut values = [one, other];
        let mut pointers = values
            .each_mut()
            .map(|value| ptr::from_mut(value).cast::<c_void>());
        let launch = Launch {
            handle: ptr::null_mut(),
            grid: [1; 3],
            block: [group, 1, 1],
            shared_bytes,
            stream: ptr::null_mut(),
            per_thread: false,
            is_cooperative: false,
            is_node: false,
            parameters: pointers.as_mut_ptr(),
            extra: ptr::null_mut(),
            attributes: ptr::null(),
            attribute_count: 0,
        };
        // SAFETY: two parameters of 8 bytes.
        unsafe { replacement.holds(&launch) }
    };
    for _ in 0..2 {
        assert!(holds(0x10_0000, 0x20_0010, 64, 0));
    }
    assert!(!holds(0x10_0000, 0x20_0010, 32, 0), "another size of work-groups");
    assert!(!holds(0x10_0000, 0x20_0010, 64, 4), "dynamic shared memory");
    assert!(!holds(0x10_0000, 0x10_0010, 64, 0), "one allocation");
    assert!(!holds(0x10_0001, 0x20_0010, 64, 0), "not its start");
    assert!(!holds(0x10_0000, 0x20_0008, 64, 0), "alignment");
    assert!(!holds(0x10_0000, 0x30_0000, 64, 0), "others may write it");
    assert!(!holds(0x30_0000, 0x20_0010, 64, 0), "so may they this one");
    assert!(
        holds(0x10_0000, 0, 64, 0),
        "a null pointer is apart from everything"
    );
    assert!(!holds(0x10_0000, 16, 64, 0), "no memory");
    assert!(holds(0x10_0000, 0x20_0010, 64, 0));
    memory::freed(0x20_0000);
    assert!(!holds(0x10_0000, 0x20_0010, 64, 0), "it was given back");
    memory::allocated(0x20_0000, 0x1000, MemoryKind::Device);
    assert!(holds(0x10_0000, 0x20_0010, 64, 0));
}

#[test]
fn pointers_into_one_allocation_are_apart_where_the_launch_reaches_other_bytes() {
    memory::allocated(0x70_0000, 0x1000, MemoryKind::Device);
    memory::allocated(0x71_0000, 0x1000, MemoryKind::Foreign);
    // As many words as parameter 2 says, and as there are work-groups.
    let text = "kernel\tab\tk\tk.ptx\tk\napart\t0\t0\t1\t0\n\
        terms\tc:0\tp:2:0:4\tc:4\tmul:1:2\tc:1\tsub:3:4\tbetween:0:5\tg:0\tmul:7:2\tsub:8:4\tbetween:0:9\n\
        reach\t0\t0\t6\nreach\t1\t0\t10\n";
    let Better { facts, reaches, .. } = read(text).pop().expect("a kernel");
    assert_eq!((facts.len(), reaches.number(1, 0)), (1, Some(1)));
    let wrong = text.replace("reach\t1\t0\t10", "reach\t1\t0\t11");
    assert!(read(&wrong).is_empty(), "there is no such term");
    let counts: &'static Counts = Box::leak(Box::default());
    let replacement = Replacement {
        handle: ptr::null_mut(),
        only_in: None,
        is_library: false,
        places: places(&facts, &reaches),
        facts,
        reaches,
        reached: Last::new(),
        counts,
        launches: AtomicU64::new(0),
        is_off: AtomicBool::new(false),
        resident: Resident::new(),
        last: Lock::new(None),
    };
    let holds = |one: u64, other: u64, words: u32, groups: u32| {
        let (mut one, mut other, mut words) = (one, other, words);
        let mut pointers = [
            ptr::from_mut(&mut one).cast::<c_void>(),
            ptr::from_mut(&mut other).cast(),
            ptr::from_mut(&mut words).cast(),
        ];
        let launch = Launch {
            handle: ptr::null_mut(),
            grid: [groups, 1, 1],
            block: [64, 1, 1],
            shared_bytes: 0,
            stream: ptr::null_mut(),
            per_thread: false,
            is_cooperative: false,
            is_node: false,
            parameters: pointers.as_mut_ptr(),
            extra: ptr::null_mut(),
            attributes: ptr::null(),
            attribute_count: 0,
        };
        // SAFETY: two parameters of 8 bytes and one of 4.
        unsafe { replacement.holds(&launch) }
    };
    assert!(holds(0x70_0000, 0x70_0100, 0x40, 8));
    assert!(!holds(0x70_0000, 0x70_0100, 0x41, 8), "a word more is read");
    assert!(holds(0x70_0000, 0x70_0100, 0x40, 8));
    assert!(holds(0x70_0020, 0x70_0000, 0x40, 8));
    assert!(!holds(0x70_0020, 0x70_0000, 0x40, 9), "another work-group");
    assert!(!holds(0x71_0000, 0x71_0100, 0x40, 8), "others may write it");
    let begun = std::time::Instant::now();
    for launch in 0..100_000 {
        assert!(holds(0x70_0020, 0x70_0000, 0x40, 1 + launch % 8));
    }
    println!("{:.0} ns a launch", begun.elapsed().as_nanos() as f64 / 1e5);
}

/// One fact alone, of a launch whose first parameter is this address.
fn meets(fact: Fact, address: u64) -> bool {
    let counts: &'static Counts = Box::leak(Box::default());
    let reaches = Reaches::default();
    let replacement = Replacement {
        handle: ptr::null_mut(),
        only_in: None,
        is_library: false,
        places: places(&[fact], &reaches),
        facts: vec![fact],
        reaches,
        reached: Last::new(),
        counts,
        launches: AtomicU64::new(0),
        is_off: AtomicBool::new(false),
        resident: Resident::new(),
        last: Lock::new(None),
    };
    let mut address = address;
    let mut pointers = [ptr::from_mut(&mut address).cast::<c_void>()];
    let launch = Launch {
        handle: ptr::null_mut(),
        grid: [1; 3],
        block: [64, 1, 1],
        shared_bytes: 0,
        stream: ptr::null_mut(),
        per_thread: false,
        is_cooperative: false,
        is_node: false,
        parameters: pointers.as_mut_ptr(),
        extra: ptr::null_mut(),
        attributes: ptr::null(),
        attribute_count: 0,
    };
    // SAFETY: one parameter of 8 bytes.
    unsafe { replacement.holds(&launch) }
}

#[test]
fn memory_that_others_may_write_has_no_length_and_is_not_known() {
    let place = Place {
        index: 0,
        inside: 0,
        bytes: 8,
    };
    for (address, kind, holds) in [
        (0x90_0000, MemoryKind::Device, true),
        (0x91_0000, MemoryKind::Foreign, false),
    ] {
        memory::allocated(address, 0x1000, kind);
        assert_eq!(meets(Fact::Ends(place, 0x400, 4), address), holds, "{kind:?}");
        assert_eq!(meets(Fact::Known(place), address), holds, "{kind:?}");
    }
}

#[test]
fn without_the_driver_s_answer_it_is_not_known_what_is_resident() {
    assert!(!meets(Fact::Resident, 0));
}

#[test]
fn what_is_slower_is_switched_back() {
    let counts: &'static Counts = Box::leak(Box::default());
    let replacement = Replacement {
        handle: ptr::null_mut(),
        only_in: None,
        is_library: false,
        places: Vec::new(),
        facts: Vec::new(),
        reaches: Reaches::default(),
        reached: Last::new(),
        counts,
        launches: AtomicU64::new(0),
        is_off: AtomicBool::new(false),
        resident: Resident::new(),
        last: Lock::new(None),
    };
    for _ in 0..ENOUGH {
        replacement.timed(false, 1000);
        assert!(!replacement.is_off.load(Ordering::Relaxed));
        replacement.timed(true, 1100);
    }
    assert!(replacement.is_off.load(Ordering::Relaxed));
    assert_eq!(counts.switched_back.load(Ordering::Relaxed), 1);
}
