//! Device functions, generic kernels, constants.

use headstart::prelude::*;

use crate::agree::{agree, noise};
use crate::conformance::Feature;

const ONE: Geometry = Geometry {
    groups: [2, 1, 1],
    group: [48, 1, 1],
    ..Geometry::new(1, 1)
};
const ITEMS: usize = 96;
const SCALE: f64 = 1.5;

mod elsewhere {
    use headstart::prelude::*;

    /// Returns from inside a loop, and calls another function of its module.
    #[device_fn]
    pub fn first_above(values: &[u32], bound: u32, from: usize) -> (usize, bool) {
        for i in from..values.len() {
            if above(values[i], bound) {
                return (i, true);
            }
        }
        (values.len(), false)
    }

    #[device_fn]
    fn above(x: u32, bound: u32) -> bool {
        return x > bound;
    }
}

/// Writes through references to scalars, arrays and slices of the caller.
#[device_fn]
fn spread<const N: usize>(row: &mut [u32; N], target: &mut [u32], sum: &mut u32, mut at: usize) {
    if *sum > 1_000_000 {
        return;
    }
    for i in 0..N {
        row[i] += i as u32;
        *sum += row[i] % 1000;
        bump(sum);
        target[at] = *sum;
        at += 1;
    }
}

#[device_fn]
fn bump(x: &mut u32) {
    *x += 1;
}

#[kernel]
fn calls(input: &[u32], output: &mut [u32]) {
    let i = global_id();
    let (at, found) = elsewhere::first_above(input, input[i] | 0x8000_0000, i);
    let mut row = [at as u32, 7, found as u32];
    let mut sum = 0;
    spread(&mut row, output, &mut sum, i * 6);
    spread::<3>(&mut row, output, &mut sum, i * 6 + 3);
    output[i * 6] += row[0] + row[1] + row[2];
}

#[test]
fn calls_agree() {
    agree!(calls, ONE, noise(ITEMS), vec![0u32; ITEMS * 6]);
}

/// Generic over the type: horner's rule with a limit.
#[device_fn]
fn polynomial<T: Float, const N: usize>(x: T, coefficients: &[T; N], limit: T) -> T {
    let mut sum = T::ZERO;
    for i in (0..N).rev() {
        sum = sum.mul_add(x, coefficients[i]);
        if sum > limit {
            sum = sum.sqrt();
        }
    }
    sum.min(limit) + (-x.abs()).exp()
}

#[kernel]
fn generic<T: Float>(input: &[T], output: &mut [T], limit: T) {
    let coefficients = [T::ONE, T::ONE + T::ONE, -T::ONE, limit];
    output[global_id()] = polynomial(input[global_id()], &coefficients, limit);
}

#[test]
fn generic_kernels_agree_for_both_floats() {
    let input: Vec<f64> = noise(ITEMS)
        .iter()
        .map(|&bits| f64::from(bits) / 1e9 - 2.0)
        .collect();
    agree!(generic::<f64>, ONE, input.clone(), vec![0.0f64; ITEMS], 3.5);
    let input: Vec<f32> = input.into_iter().map(|x| x as f32).collect();
    agree!(generic::<f32>, ONE, input, vec![0.0f32; ITEMS], 3.5);
}

/// Generic over integers, with sizes and code that constants choose.
#[kernel]
fn constants<T: Integer, const N: usize, const WIDE: bool>(input: &[T], output: &mut [T]) {
    const OFFSET: usize = 3;
    type Position = usize;
    let i: Position = global_id();
    let mut x = input[i];
    for k in 0..N * 2 {
        x ^= input[(i + k * OFFSET) % input.len()] >> 1;
    }
    if WIDE {
        x = x % (T::ONE + T::ONE + T::ONE);
    }
    if N > 100 {
        // Never taken for this N: not even its index is there.
        x ^= input[usize::MAX];
    }
    output[i] = x.max(T::ONE) >> (SCALE < 2.0 && N == 4) as u32;
}

#[test]
fn constants_choose_the_code() {
    let input: Vec<u16> = noise(ITEMS).iter().map(|&bits| bits as u16).collect();
    agree!(constants::<u16, 4, true>, ONE, input.clone(), vec![0u16; ITEMS]);
    agree!(constants::<u16, 7, false>, ONE, input, vec![0u16; ITEMS]);
    let input: Vec<i64> = noise(ITEMS)
        .iter()
        .map(|&bits| i64::from(bits) - (1 << 31))
        .collect();
    agree!(constants::<i64, 3, true>, ONE, input, vec![0i64; ITEMS]);
    // What a constant rules out is not in the kernel.
    let loads = |kernel: &headstart::ir::Kernel| {
        let mut loads = 0;
        kernel
            .body
            .walk(&mut |op| loads += u32::from(matches!(op.kind, headstart::ir::OpKind::Load { .. })));
        loads
    };
    assert_eq!(
        loads(&constants::kernel::<u16, 4, true>().expect("it is right")),
        2
    );
    assert_eq!(
        loads(&constants::kernel::<u16, 400, true>().expect("it is right")),
        3
    );
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "device functions",
        spelled: "`#[device_fn] fn f(x: &mut u32)`",
        kernel: calls::kernel,
        test: calls_agree,
    },
    Feature {
        name: "generic kernels, const generics",
        spelled: "`fn k<T: Float, const N: usize>`",
        kernel: generic::kernel::<f32>,
        test: generic_kernels_agree_for_both_floats,
    },
];
