//! Branches, loops, ways out of them, and variables that live through them.

use headstart::prelude::*;

use crate::agree::{agree, noise};
use crate::conformance::Feature;

const GEOMETRY: Geometry = Geometry {
    groups: [3, 1, 1],
    group: [40, 1, 1],
    ..Geometry::new(1, 1)
};
const ITEMS: usize = 120;

/// Shadowing by another type, in inner blocks, and a literal whose type comes late.
#[kernel]
fn shadowing(input: &[u32], output: &mut [u64]) {
    let x = input[global_id()];
    let mut late = 1;
    let x = x as u64 + 7;
    {
        let x = x * 3;
        late += x;
        let late = 2u8;
        output[global_id()] = late as u64;
    }
    let y = {
        let x = x + 1;
        let x = x * x;
        x
    };
    late = late + x + y;
    let x = late % 1000;
    output[global_id()] += x + late;
}

#[test]
fn shadowing_agrees() {
    agree!(shadowing, GEOMETRY, noise(ITEMS), vec![0u64; ITEMS]);
}

/// Three labelled loops, left and continued across each other, with values.
#[kernel]
fn labels(input: &[u32], output: &mut [i64]) {
    let seed = input[global_id()] % 97;
    let mut steps = 0;
    let mut total = 0i64;
    let found = 'outer: loop {
        let mut i = 0;
        'middle: while i < 10 {
            i += 1;
            for j in 0..7u32 {
                steps += 1;
                if (i * j + seed) % 13 == 3 {
                    total += 1;
                    continue 'middle;
                }
                if (i + j * seed) % 29 == 28 {
                    break 'outer (i * 100 + j) as i64;
                }
                if j == seed % 8 {
                    break;
                }
                total += (i ^ j) as i64;
                if total > 4000 {
                    continue 'outer;
                }
            }
            total -= 2;
        }
        if steps > 300 {
            break -1;
        }
    };
    output[global_id()] = found * 1_000_000 + total * 1000 + steps;
}

#[test]
fn labels_agree() {
    let found = agree!(labels, GEOMETRY, noise(ITEMS), vec![0i64; ITEMS]);
    assert!(
        found.iter().any(|&value| value < 0) && found.iter().any(|&value| value > 0),
        "both ways out are taken"
    );
}

/// Returns from the middle of two loops, before some writes and after others.
#[kernel]
fn early_return(input: &[u32], output: &mut [u32]) {
    let i = global_id();
    if input[i] % 11 == 0 {
        return;
    }
    output[i] = 1;
    for j in 0..20 {
        let mut k = 0;
        while k < j {
            if (input[i] >> (k % 32)) & 7 == j & 7 {
                output[i] += 100 * j + k;
                return;
            }
            k += 3;
        }
        output[i] += 1;
    }
    output[i] = 999;
}

#[test]
fn early_return_agrees() {
    agree!(early_return, GEOMETRY, noise(ITEMS), vec![5u32; ITEMS]);
}

#[device_fn]
fn count(calls: &mut u32, answer: bool) -> bool {
    *calls += 1;
    answer
}

/// The right side of `&&` and `||` runs only if the left does not decide, loads and side effects included.
#[kernel]
fn short_circuit(input: &[u32], output: &mut [u32]) {
    let i = global_id();
    let mut calls = 0;
    let x = input[i];
    let a = x % 2 == 0 && count(&mut calls, x % 3 == 0) || count(&mut calls, x % 5 == 0);
    // Behind the end the load must not run.
    let b = i + 1 < input.len() && input[i + 1] > x;
    let mut y = 3;
    let c = (x > 1 << 31 || {
        y += 1;
        x % 7 > 2
    }) && y == 4;
    if a || b && !c {
        calls += 10;
    }
    let d = a & b | c ^ a;
    output[i] = calls * 16 + a as u32 * 8 + b as u32 * 4 + c as u32 * 2 + d as u32;
}

#[test]
fn short_circuit_agrees() {
    agree!(short_circuit, GEOMETRY, noise(ITEMS), vec![0u32; ITEMS]);
}

/// Variables that swap in a loop, are assigned on some paths only, and are carried through inner loops that
/// leave them alone.
#[kernel]
fn variables(input: &[u32], output: &mut [u32]) {
    let i = global_id();
    let n = input[i] % 50;
    let (mut a, mut b) = (0u32, 1);
    let mut last = 77;
    let kept = n + 1;
    let undecided;
    for step in 0..n {
        (a, b) = (b, a.wrapping_add(b));
        if step % 3 == 1 {
            last = step;
        } else if step % 5 == 0 {
            let t = a;
            a = b;
            b = t;
        }
        let mut inner = step;
        while inner > 10 {
            inner /= 2;
            if inner % 2 == 0 {
                last += 1;
            }
        }
    }
    if n > 25 {
        undecided = a;
    } else {
        undecided = b ^ last;
    }
    let mut pair = (a, n > 3);
    pair.0 ^= b;
    if pair.1 {
        pair = (pair.0.wrapping_mul(3), false);
    }
    output[i] = undecided ^ pair.0 ^ last.wrapping_mul(31) ^ kept ^ (pair.1 as u32);
}

#[test]
fn variables_agree() {
    agree!(variables, GEOMETRY, noise(ITEMS), vec![0u32; ITEMS]);
}

/// `if`, blocks and loops as values, tuples of them, and sides that leave instead of giving a value.
#[kernel]
fn values_of_blocks(input: &[u32], output: &mut [f32]) {
    let i = global_id();
    let x = input[i];
    let sign = if x % 2 == 0 { 1.0 } else { -1.0 };
    let (low, high) = if x > 1 << 30 {
        (1, x as f32)
    } else if x > 1 << 20 {
        (2, 5.0)
    } else {
        return;
    };
    let mut turns = 0;
    let grown = loop {
        turns += low;
        let next = if turns > 9 { break turns * 2 } else { turns };
        if next == 4 {
            continue;
        }
        turns += 1;
    };
    let block = 'block: {
        if x % 3 == 0 {
            break 'block 0.5;
        }
        if x % 3 == 1 {
            if x % 5 == 1 {
                break 'block 0.25;
            }
            turns = 100;
        }
        turns as f32
    };
    output[i] = sign * high + grown as f32 + block;
}

#[test]
fn values_of_blocks_agree() {
    agree!(values_of_blocks, GEOMETRY, noise(ITEMS), vec![0.0f32; ITEMS]);
}

/// A condition with everything in it, evaluated before each iteration.
#[kernel]
fn while_condition(input: &[u32], output: &mut [u32]) {
    let i = global_id();
    let mut at = input[i] as usize % input.len();
    let mut seen = 0;
    while seen < 12
        && {
            seen += 1;
            input[at] % 9 != 4
        }
        && !(at == 0 || input[at - 1] == u32::MAX)
    {
        at = (at * 7 + input[at] as usize) % input.len();
        if at == 5 {
            continue;
        }
        output[i] += 1;
    }
    output[i] = output[i] * 1000 + at as u32 * 13 + seen;
}

#[test]
fn while_condition_agrees() {
    agree!(while_condition, GEOMETRY, noise(ITEMS), vec![0u32; ITEMS]);
}

/// The value is computed before the place, and the place only once.
#[kernel]
fn order(input: &[u32], output: &mut [u32]) {
    let first = global_id() * 4;
    let mut at = 0;
    output[first + at] = {
        at += 1;
        input[global_id()]
    };
    output[first + {
        at += 1;
        at
    }] += {
        at -= 1;
        7
    };
    let x = at as u32 + {
        at = 3;
        at as u32 * 10
    };
    output[first + at] = x;
}

#[test]
fn order_agrees() {
    agree!(order, GEOMETRY, noise(ITEMS), vec![1u32; ITEMS * 4]);
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "`if`, loops, labels, `break` with a value",
        spelled: "`'a: loop { break 'a x; }`",
        kernel: labels::kernel,
        test: labels_agree,
    },
    Feature {
        name: "early `return`",
        spelled: "`return;`",
        kernel: early_return::kernel,
        test: early_return_agrees,
    },
    Feature {
        name: "conditions with short circuit",
        spelled: "`i < n && a[i] > 0`",
        kernel: short_circuit::kernel,
        test: short_circuit_agrees,
    },
    Feature {
        name: "variables, tuples, destructuring",
        spelled: "`let (mut a, b) = (1, 2);`",
        kernel: variables::kernel,
        test: variables_agree,
    },
];
