use std::sync::Arc;

use super::*;
use crate::device::Pattern;

#[test]
fn a_gigabyte_of_pattern_costs_nothing_until_written() {
    let fill = Fill::Pattern(Pattern::Steps { first: 5, step: 2 });
    let memory = BufferMemory::new(Type::I32, 1 << 28, fill).expect("fits");
    let last = (1u64 << 30) - 4;
    assert_eq!(memory.read(last, 4), (5 + 2 * ((1 << 28) - 1)) & 0xffff_ffff);
    assert_eq!(memory.resident_bytes(), 0);
    memory.write(last, 2, 0xabcd);
    assert_eq!(memory.resident_bytes(), PAGE);
    assert_eq!(memory.read(last, 2), 0xabcd);
    assert_eq!(memory.read(last - 4, 4), 5 + 2 * ((1 << 28) - 2));
}

#[test]
fn a_page_of_a_function_that_is_read_over_and_over_exists_and_is_the_same() {
    let steps = Arc::new(|index| 9 + 3 * index);
    let fill = || Fill::Pattern(Pattern::Function(steps.clone()));
    let memory = BufferMemory::new(Type::I64, 1 << 14, fill()).expect("fits");
    let other = BufferMemory::new(Type::I64, 1 << 14, fill()).expect("fits");
    for read in 0..=u64::from(READS) {
        let offset = read * 24 % PAGE;
        assert_eq!(memory.read(offset, 8), offset / 8 * 3 + 9);
    }
    assert_eq!(memory.resident_bytes(), PAGE);
    for (offset, size) in [(0, 8), (4, 4), (10, 2), (15, 1), (16, 4)] {
        assert_eq!(
            memory.read(offset, size),
            other.read(offset, size),
            "{offset} {size}"
        );
    }
}

#[test]
fn accesses_of_every_size_see_the_same_bytes() {
    let bytes: Vec<u8> = (0..19).collect();
    let memory = BufferMemory::new(Type::I8, 19, Fill::Bytes(bytes.into())).expect("fits");
    for _ in 0..2 {
        assert_eq!(memory.read(8, 8), 0x0f0e_0d0c_0b0a_0908);
        assert_eq!(memory.read(12, 4), 0x0f0e_0d0c);
        assert_eq!(memory.read(14, 2), 0x0f0e);
        assert_eq!(memory.read(18, 1), 18);
        // The second time round the page exists.
        memory.write(18, 1, 18);
    }
}

#[test]
fn what_was_written_alike_is_the_same_wherever_pages_exist() {
    let zeros = || {
        let fill = Fill::Pattern(Pattern::Constant(0));
        BufferMemory::new(Type::I32, 1 << 16, fill).expect("fits")
    };
    let (one, other) = (zeros(), zeros());
    assert!(one.is_same(&other));
    one.write(100_000, 4, 0);
    assert!(one.is_same(&other) && other.is_same(&one), "zeros over zeros");
    one.write(100_000, 4, 7);
    assert!(!one.is_same(&other) && !other.is_same(&one));
    other.write(100_000, 4, 7);
    assert!(one.is_same(&other));
    let ones = BufferMemory::new(Type::I32, 1 << 16, Fill::Pattern(Pattern::Constant(1)));
    assert!(!ones.expect("fits").is_same(&zeros()), "other fills");
    let filled = |pattern: &Pattern| {
        BufferMemory::new(Type::F32, 1 << 16, Fill::Pattern(pattern.clone())).expect("fits")
    };
    let patterns = [
        Pattern::Steps { first: 0, step: 1 },
        Pattern::Steps { first: 0, step: 2 },
        Pattern::Below { bound: 9, seed: 1 },
        Pattern::Below { bound: 9, seed: 2 },
        Pattern::Fractions { low: 1.0 },
        Pattern::Bits { seed: 1 },
        Pattern::Function(Arc::new(|index| index)),
    ];
    for (number, one) in patterns.iter().enumerate() {
        for (index, other) in patterns.iter().enumerate() {
            assert_eq!(
                filled(one).is_same(&filled(other)),
                number == index,
                "{one:?} {other:?}"
            );
        }
    }
}

#[test]
fn buffers_of_two_lengths_differ_where_both_have_bytes() {
    let steps = |length: u64| {
        let fill = Fill::Pattern(Pattern::Steps { first: 5, step: 1 });
        BufferMemory::new(Type::I16, length, fill).expect("fits")
    };
    let (long, short) = (steps(1 << 17), steps(40_001));
    assert_eq!(long.first_difference(&short), None);
    long.write(2 * 40_000, 2, 40_005);
    assert_eq!(long.first_difference(&short), None, "the same bits over the fill");
    long.write(2 * 40_001, 2, 1);
    assert_eq!(short.first_difference(&long), None, "beyond the end of one");
    short.write(2 * 39_999, 2, 40_004 ^ 0x100);
    assert_eq!(short.first_difference(&long), Some(2 * 39_999 + 1));
    assert_eq!(long.first_difference(&short), Some(2 * 39_999 + 1));
}

#[test]
fn the_last_page_is_as_long_as_what_is_left() {
    let fill = Fill::Pattern(Pattern::Constant(3));
    let memory = BufferMemory::new(Type::I8, 21, fill).expect("fits");
    memory.write(20, 1, 9);
    assert_eq!(memory.resident_bytes(), 24);
    let mut bytes = [0; 21];
    memory.copy_out(0, &mut bytes).expect("filled");
    assert_eq!((bytes[19], bytes[20]), (3, 9));
    let memory = BufferMemory::new(Type::I8, 70, Fill::Uninitialized).expect("fits");
    memory.copy_in(69, &[1]);
    assert!(memory.is_written(69, 1) && !memory.is_written(68, 1));
}

#[test]
fn what_is_written_is_known_byte_by_byte() {
    let memory = BufferMemory::new(Type::I16, 8, Fill::Uninitialized).expect("fits");
    assert!(!memory.is_written(4, 2));
    memory.write(4, 2, 7);
    memory.mark_written(4, 2);
    assert!(memory.is_written(4, 2) && !memory.is_written(4, 4) && !memory.is_written(6, 2));
    let mut out = [0; 2];
    memory.copy_out(4, &mut out).expect("written");
    assert_eq!(out, [7, 0]);
    assert!(memory.copy_out(3, &mut out).is_err());
}
