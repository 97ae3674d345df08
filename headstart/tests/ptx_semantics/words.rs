//! Words in parts: masks, permutations with a mode, dot products, several words, pairs of halves.

use super::numbers::integer;

#[test]
fn masks_start_somewhere_and_end_somewhere() {
    let ones = |position: u64, length: u64| (((1u128 << length) - 1) << position) as u32;
    integer("bmsk.clamp.b32 %d, %x, %y;", |x, y, _| {
        ones(u64::from(x.min(32)), u64::from(y.min(32)))
    });
    integer("bmsk.wrap.b32 %d, %x, %y;", |x, y, _| {
        ones(u64::from(x & 31), u64::from(y & 31))
    });
}

#[test]
fn low_bits_are_extended() {
    let zero = |x: u32, length: u32| (u64::from(x) & ((1u64 << length) - 1)) as u32;
    let sign = |x: u32, length: u32| match length {
        0 => 0,
        _ => (i64::from(x) << (64 - length) >> (64 - length)) as u32,
    };
    integer("szext.clamp.u32 %d, %x, %y;", |x, y, _| zero(x, y.min(32)));
    integer("szext.wrap.u32 %d, %x, %y;", |x, y, _| zero(x, y & 31));
    integer("szext.clamp.s32 %d, %x, %y;", |x, y, _| sign(x, y.min(32)));
    integer("szext.wrap.s32 %d, %x, %y;", |x, y, _| sign(x, y & 31));
}

#[test]
fn permutations_have_modes() {
    // PTX ISA, table of `prmt`: the sources of the bytes of the result, the highest first, for each number below four.
    let modes: [(&str, [[usize; 4]; 4]); 6] = [
        ("f4e", [[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]]),
        ("b4e", [[5, 6, 7, 0], [6, 7, 0, 1], [7, 0, 1, 2], [0, 1, 2, 3]]),
        ("rc8", [[0; 4], [1; 4], [2; 4], [3; 4]]),
        ("ecl", [[3, 2, 1, 0], [3, 2, 1, 1], [3, 2, 2, 2], [3, 3, 3, 3]]),
        ("ecr", [[0, 0, 0, 0], [1, 1, 1, 0], [2, 2, 1, 0], [3, 2, 1, 0]]),
        ("rc16", [[1, 0, 1, 0], [3, 2, 3, 2], [1, 0, 1, 0], [3, 2, 3, 2]]),
    ];
    for (mode, sources) in modes {
        integer(&format!("prmt.b32.{mode} %d, %x, %y, %z;"), |x, y, z| {
            let bytes = (u64::from(y) << 32 | u64::from(x)).to_le_bytes();
            u32::from_be_bytes(sources[z as usize & 3].map(|source| bytes[source]))
        });
    }
}

#[test]
fn bytes_and_halves_are_multiplied_in_pairs() {
    let bytes = |x: u32, signed: bool| {
        x.to_le_bytes().map(|byte| match signed {
            true => i64::from(byte as i8),
            false => i64::from(byte),
        })
    };
    let halves = |x: u32, signed: bool| {
        [x as u16, (x >> 16) as u16].map(|half| match signed {
            true => i64::from(half as i16),
            false => i64::from(half),
        })
    };
    for (x_type, x_signed) in [("u32", false), ("s32", true)] {
        for (y_type, y_signed) in [("u32", false), ("s32", true)] {
            integer(&format!("dp4a.{x_type}.{y_type} %d, %x, %y, %z;"), |x, y, z| {
                let pairs = bytes(x, x_signed).into_iter().zip(bytes(y, y_signed));
                (pairs.map(|(x, y)| x * y).sum::<i64>() as u32).wrapping_add(z)
            });
            for (which, first) in [("lo", 0), ("hi", 2)] {
                integer(
                    &format!("dp2a.{which}.{x_type}.{y_type} %d, %x, %y, %z;"),
                    |x, y, z| {
                        let pairs = halves(x, x_signed)
                            .into_iter()
                            .zip(bytes(y, y_signed)[first..].to_vec());
                        (pairs.map(|(x, y)| x * y).sum::<i64>() as u32).wrapping_add(z)
                    },
                );
            }
        }
    }
}

#[test]
fn products_of_24_bits() {
    let signed = |x: u32| i64::from((x as i32) << 8 >> 8);
    let unsigned = |x: u32| i64::from(x & 0xff_ffff);
    integer("mul24.lo.u32 %d, %x, %y;", |x, y, _| {
        (unsigned(x) * unsigned(y)) as u32
    });
    integer("mul24.hi.u32 %d, %x, %y;", |x, y, _| {
        ((unsigned(x) * unsigned(y)) >> 16) as u32
    });
    integer("mad24.lo.s32 %d, %x, %y, %z;", |x, y, z| {
        ((signed(x) * signed(y)) as u32).wrapping_add(z)
    });
    integer("mul24.hi.s32 %d, %x, %y;", |x, y, _| {
        ((signed(x) * signed(y)) >> 16) as u32
    });
}

#[test]
fn carries_go_from_word_to_word() {
    let wide = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    integer("add.cc.u32 %t0, %x, %y;\naddc.u32 %d, %y, %z;", |x, y, z| {
        (wide(y, x).wrapping_add(wide(z, y)) >> 32) as u32
    });
    integer("sub.cc.u32 %t0, %x, %y;\nsubc.u32 %d, %y, %z;", |x, y, z| {
        (wide(y, x).wrapping_sub(wide(z, y)) >> 32) as u32
    });
    integer(
        "add.cc.u32 %t0, %x, %y;\naddc.cc.u32 %t1, %y, %z;\naddc.u32 %d, 0, 0;",
        |x, y, z| u32::from(wide(y, x).checked_add(wide(z, y)).is_none()),
    );
    integer(
        "sub.cc.u32 %t0, %x, %y;\nsubc.cc.u32 %t1, %y, %z;\nsubc.u32 %d, 0, 0;",
        |x, y, z| 0u32.wrapping_sub(u32::from(wide(y, x).checked_sub(wide(z, y)).is_none())),
    );
    integer(
        "mad.lo.cc.u32 %t0, %x, %y, %z;\nmadc.hi.u32 %d, %x, %y, %z;",
        |x, y, z| {
            (u64::from(x) * u64::from(y))
                .wrapping_add(wide(z, z))
                .wrapping_shr(32) as u32
        },
    );
}

#[test]
fn pairs_of_halves_are_integers() {
    let halves = |word: u32| [word as u16, (word >> 16) as u16];
    let both = |x: u32, y: u32, of: &dyn Fn(u16, u16) -> u16| {
        let [low, high] = [0, 1].map(|side| u32::from(of(halves(x)[side], halves(y)[side])));
        high << 16 | low
    };
    integer("min.u16x2 %d, %x, %y;", |x, y, _| both(x, y, &|x, y| x.min(y)));
    integer("max.u16x2 %d, %x, %y;", |x, y, _| both(x, y, &|x, y| x.max(y)));
    integer("add.u16x2 %d, %x, %y;", |x, y, _| {
        both(x, y, &|x, y| x.wrapping_add(y))
    });
    integer("min.s16x2 %d, %x, %y;", |x, y, _| {
        both(x, y, &|x, y| (x as i16).min(y as i16) as u16)
    });
    integer("max.s16x2.relu %d, %x, %y;", |x, y, _| {
        both(x, y, &|x, y| (x as i16).max(y as i16).max(0) as u16)
    });
    integer("max.relu.s32 %d, %x, %y;", |x, y, _| {
        (x as i32).max(y as i32).max(0) as u32
    });
}
