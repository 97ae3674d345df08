//! Halves and vectors.

use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

use crate::agree::{agree, devices, lowers, noise};
use crate::conformance::Feature;

const ONE: Geometry = Geometry {
    groups: [2, 1, 1],
    group: [64, 1, 1],
    ..Geometry::new(1, 1)
};

/// Arithmetic in 16 bits, conversions, comparisons, functions.
#[kernel]
fn halves<T: Half>(input: &[T], output: &mut [T]) {
    let i = global_id();
    let (x, y) = (input[i], input[(i + 9) % input.len()]);
    let first = i * 8;
    output[first] = x * y + x - y / (x * x + T::ONE);
    output[first + 1] = x.mul_add(y, T::ONE);
    output[first + 2] = x.abs().sqrt() + -y;
    output[first + 3] = if x < y { x } else { y % T::ONE };
    output[first + 4] = x.cbrt() + y.tanh();
    output[first + 5] = x.floor() + y.ceil();
    let mut sum = T::ZERO;
    for j in 0..6 {
        sum += input[(i + j) % input.len()] * x;
    }
    output[first + 6] = sum;
    output[first + 7] = select(x == y, x, x.max(y));
}

/// A dot product in single precision of what is stored in half of it, and conversions by name.
#[kernel]
fn mixed(input: &[f16], output: &mut [bf16]) {
    let i = global_id();
    let mut sum = 0.0;
    for j in 0..4 {
        let x = input[(i * 3 + j) % input.len()];
        sum += f32::from(x) * x.to_f32() + f16::from_f32(0.5).to_f32();
    }
    let bits = input[i].to_bits() as u32;
    let wide = f64::from(input[i]);
    output[i] = if bits % 2 == 0 {
        bf16::from_f32(sum)
    } else {
        bf16::from_f64(wide + f16::ONE.to_f64())
    };
}

#[test]
fn halves_agree() {
    let numbers: Vec<f32> = noise(128).iter().map(|&bits| bits as f32 / 4e8 - 5.0).collect();
    let f16s: Vec<f16> = numbers.iter().map(|&x| f16::from_f32(x)).collect();
    let bf16s: Vec<bf16> = numbers.iter().map(|&x| bf16::from_f32(x)).collect();
    agree!(halves::<f16>, ONE, f16s.clone(), vec![f16::ZERO; 128 * 8]);
    agree!(halves::<bf16>, ONE, bf16s, vec![bf16::ZERO; 128 * 8]);
    agree!(mixed, ONE, f16s, vec![bf16::ZERO; 128]);
    lowers(halves::kernel::<f16>());
    lowers(halves::kernel::<bf16>());
    lowers(mixed::kernel());
}

#[device_fn]
fn length(points: &[[f32; 4]], at: usize) -> f32 {
    let [x, y, z, w] = points[at];
    (x * x + y * y + z * z + w * w).sqrt()
}

/// Whole vectors, parts of them, a part counted by a variable, and vectors handed on.
#[kernel]
fn vectors(points: &[[f32; 4]], pairs: &mut [[f64; 2]], quads: &mut [[f64; 4]], bytes: &mut [[u8; 4]]) {
    let i = global_id() % points.len();
    prefetch(&points[i], L2);
    let [x, mut y, _, w] = points[i];
    y += x;
    pairs[i] = [(y * w) as f64, length(points, i) as f64];
    pairs[i][0] += points[i][i % 4] as f64;
    let [a, b] = pairs[i];
    quads[i] = [a, b, points.len() as f64, pairs.len() as f64];
    quads[i][3] = quads[i][0] - 1.0;
    bytes[i] = [i as u8, 1, 2, i as u8 / 2];
    let [p, q, r, s] = bytes[i];
    bytes[i] = [s, r, q, p];
}

#[test]
fn vectors_agree() {
    const COUNT: usize = 64;
    let geometry = Geometry::new(1, COUNT as u32);
    let flat: Vec<f32> = noise(COUNT * 4).iter().map(|&bits| bits as f32 / 1e9).collect();
    let points: Vec<[f32; 4]> = flat.chunks(4).map(|p| [p[0], p[1], p[2], p[3]]).collect();
    let mut pairs = vec![[0.0; 2]; COUNT];
    let mut quads = vec![[0.0; 4]; COUNT];
    let mut bytes = vec![[0; 4]; COUNT];
    vectors::reference(geometry, &points, &mut pairs, &mut quads, &mut bytes)
        .expect("the ordinary function runs");
    for device in devices() {
        let queue = device.queue().expect("a queue");
        let points = TypedBuffer::from_slice(&*device, &flat).expect("fits");
        let mut found_pairs = TypedBuffer::<f64>::uninitialized(&*device, COUNT as u64 * 2).expect("fits");
        let mut found_quads = TypedBuffer::<f64>::uninitialized(&*device, COUNT as u64 * 4).expect("fits");
        let mut found_bytes = TypedBuffer::<u8>::uninitialized(&*device, COUNT as u64 * 4).expect("fits");
        let arguments = vectors::arguments(&points, &mut found_pairs, &mut found_quads, &mut found_bytes);
        let event = vectors::compile(&*device)
            .expect("compiles")
            .launch(&*queue, geometry, arguments);
        event.wait().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found_pairs.read(&*queue).expect("written"), pairs.concat());
        assert_eq!(found_quads.read(&*queue).expect("written"), quads.concat());
        assert_eq!(found_bytes.read(&*queue).expect("written"), bytes.concat());
    }
    let text = lowers(vectors::kernel());
    for wanted in ["ld.global.nc.v4.f32", "st.global.v2.f64", "st.global.v4.u8"] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

/// Vectors in a loop are loads like others: they can be fetched early, as whole ones.
#[kernel(work_group = 64)]
fn sums(rows: &[[f32; 4]], result: &mut [f32], items: u32) {
    let mut sum = 0.0;
    for j in 0..items as usize {
        let [a, b, c, d] = rows[j * global_size() + global_id()];
        sum += (a + b) * (c - d);
    }
    result[global_id()] = sum;
}

#[test]
fn vectors_are_prefetched_whole() {
    use headstart::device::sim::functional::Groups;
    use headstart::device::{Argument, Fill, Launch, Pattern};
    use headstart::ir::Type;
    let kernel = std::sync::Arc::new(sums::kernel().expect("the kernel is right"));
    let device = headstart::device::sim::Simulator::untimed();
    let filled = |element, length, pattern| {
        device
            .allocate(element, length, Fill::Pattern(pattern))
            .expect("fits")
    };
    let items = 7;
    let rows = filled(Type::F32, 128 * items * 4, Pattern::Fractions { low: 1.0 });
    let result = filled(Type::F32, 128, Pattern::Constant(0));
    let arguments = vec![
        Argument::Buffer(rows),
        Argument::Scalar(Type::I64, 128 * items * 4),
        Argument::Buffer(result),
        Argument::Scalar(Type::I64, 128),
        Argument::Scalar(Type::I32, items),
    ];
    let launch = Launch::new(2, 64, arguments);
    for plan in [
        "unroll:2",
        "rows=rolling-registers:3",
        "rows=rolling-async:4",
        "unroll:2,rows=rolling-async:4",
    ] {
        let plan: headstart::prefetch::Plan = plan.parse().expect("a plan");
        let applied = headstart::prefetch::apply(&kernel, &plan, &headstart::prefetch::PlanTarget::default())
            .unwrap_or_else(|error| panic!("{plan}: {error}"));
        let derived = std::sync::Arc::new(applied.kernel);
        let report = headstart::checker::check(&kernel, &derived, &launch, 32, &Groups::All)
            .unwrap_or_else(|error| panic!("{plan}: {error}"));
        assert_eq!(report.bytes, 512);
    }
}

#[test]
fn vectors_of_three_move_one_by_one() {
    #[kernel]
    fn threes(input: &[[f32; 3]], output: &mut [f32]) {
        let [x, y, z] = input[global_id()];
        output[global_id()] = x + y + z + input.len() as f32;
    }
    let text = lowers(threes::kernel());
    assert!(
        text.contains("ld.global.nc.f32") && !text.contains(".v2"),
        "{text}"
    );
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "floats of 16 bits",
        spelled: "`f16`, `bf16`, `f32::from(x)`",
        kernel: halves::kernel::<f16>,
        test: halves_agree,
    },
    Feature {
        name: "vectors of 2 and 4",
        spelled: "`let [x, y] = a[i];`, `a[i] = [x, y];`",
        kernel: vectors::kernel,
        test: vectors_agree,
    },
];
