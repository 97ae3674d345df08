//! Facts at launches, and kernels that are slower in a program.

use std::ffi::c_void;
use std::ptr;

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
    let replacement = replacement(facts, reaches);
    let holds = |one: u64, other: u64, group: u32, shared_bytes: u32| {
        let mut values = [one, other];
        let mut pointers = values
            .each_mut()
            .map(|value| ptr::from_mut(value).cast::<c_void>());
        let launch = Launch {
            block: [group, 1, 1],
            shared_bytes,
            ..launch(pointers.as_mut_ptr())
        };
        // SAFETY: two parameters of 8 bytes.
        unsafe { replacement.unmet(&launch) }.is_none()
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
    let last = read(text).pop().expect("a kernel");
    let Better { facts, reaches, .. } = last.expect("it is understood");
    assert_eq!((facts.len(), reaches.number(1, 0)), (1, Some(1)));
    let wrong = text.replace("reach\t1\t0\t10", "reach\t1\t0\t11");
    assert!(read(&wrong)[0].is_err(), "there is no such term");
    let replacement = replacement(facts, reaches);
    let holds = |one: u64, other: u64, words: u32, groups: u32| {
        let (mut one, mut other, mut words) = (one, other, words);
        let mut pointers = [
            ptr::from_mut(&mut one).cast::<c_void>(),
            ptr::from_mut(&mut other).cast(),
            ptr::from_mut(&mut words).cast(),
        ];
        let launch = Launch {
            grid: [groups, 1, 1],
            ..launch(pointers.as_mut_ptr())
        };
        // SAFETY: two parameters of 8 bytes and one of 4.
        unsafe { replacement.unmet(&launch) }.is_none()
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
    let replacement = replacement(vec![fact], Reaches::default());
    let mut address = address;
    let mut pointers = [ptr::from_mut(&mut address).cast::<c_void>()];
    let launch = launch(pointers.as_mut_ptr());
    // SAFETY: one parameter of 8 bytes.
    unsafe { replacement.unmet(&launch) }.is_none()
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
    let replacement = replacement(Vec::new(), Reaches::default());
    let counts = replacement.counts;
    for launch in 0..8 {
        assert!(!replacement.is_off());
        let turn = turns::of(launch, 0);
        if turn.is_timed {
            replacement.timed(turn.takes_better, if turn.takes_better { 1200 } else { 1000 });
        }
        if replacement.is_off() {
            break;
        }
    }
    assert!(replacement.is_off());
    assert_eq!(counts.switched_back.load(Ordering::Relaxed), 1);
}

/// Two better kernels for launches of two kinds: each has its own, a third kind has the original, and its reasons.
#[test]
fn the_first_better_kernel_whose_facts_hold_takes_a_launch() {
    let of = |group| {
        replacement(
            vec![Fact::Shared(0), Fact::Group([group, 1, 1])],
            Reaches::default(),
        )
    };
    let both: &'static Replacements = Box::leak(Box::new(Replacements {
        all: vec![of(64), of(128)],
    }));
    let counts = Counts::default();
    let counts = &counts;
    let chosen = |group: u32, shared_bytes: u32| {
        let launch = Launch {
            block: [group, 1, 1],
            shared_bytes,
            ..launch(ptr::null_mut())
        };
        // SAFETY: facts without parameters.
        let found = unsafe { both.chosen(&launch) };
        if found.is_none() {
            // SAFETY: as above.
            unsafe { both.count(&launch, counts) };
        }
        found.map(|found| both.all.iter().position(|own| ptr::eq(own, found)))
    };
    assert_eq!(chosen(64, 0), Some(Some(0)));
    assert_eq!(chosen(128, 0), Some(Some(1)));
    let refused = |number: usize| -> Vec<u64> {
        let all = both.all.iter();
        all.map(|own| own.counts.refusals[number].load(Ordering::Relaxed))
            .collect()
    };
    assert_eq!((refused(0), refused(1)), (vec![0, 0], vec![0, 0]));
    assert_eq!(chosen(256, 0), None);
    assert_eq!(chosen(64, 16), None);
    assert_eq!((refused(0), refused(1)), (vec![1, 1], vec![1, 1]));
    both.all[0].is_off.store(true, Ordering::Relaxed);
    assert_eq!(
        chosen(64, 0),
        None,
        "it is switched off, and the other is for others"
    );
    assert_eq!((refused(0), refused(1)), (vec![1, 1], vec![1, 2]));
    both.all[1].is_off.store(true, Ordering::Relaxed);
    assert_eq!(chosen(128, 0), None);
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    assert_eq!((load(&counts.refused), load(&counts.left)), (3, 1));
    let other = Launch {
        block: [256, 2, 1],
        ..launch(ptr::null_mut())
    };
    // SAFETY: as above.
    let found = unsafe { both.all[1].found(Refusal::Fact(1), &other) };
    assert_eq!(found, "work-groups have 256×2×1");
}

/// A better kernel without a handle.
fn replacement(facts: Vec<Fact>, reaches: Reaches) -> Replacement {
    Replacement {
        handle: ptr::null_mut(),
        file: String::new(),
        only_in: None,
        is_library: false,
        places: places(&facts, &reaches),
        facts,
        reaches,
        reached: Last::new(),
        counts: Box::leak(Box::default()),
        launches: AtomicU64::new(0),
        is_off: AtomicBool::new(false),
        times: Times::default(),
        usual_ns: AtomicU64::new(0),
        resident: Resident::new(),
        last: Lock::new(None),
    }
}

/// A launch of one work-group of 64.
fn launch(parameters: *mut *mut c_void) -> Launch {
    Launch {
        handle: ptr::null_mut(),
        grid: [1; 3],
        block: [64, 1, 1],
        shared_bytes: 0,
        stream: ptr::null_mut(),
        per_thread: false,
        is_cooperative: false,
        is_node: false,
        parameters,
        extra: ptr::null_mut(),
        attributes: ptr::null(),
        attribute_count: 0,
    }
}
