//! What a kernel computes is what the host computes: the emitted operations, evaluated as the IR specifies.

use std::collections::HashMap;

use super::{Random, seed};
use crate::ir::{Builder, Kernel, OpKind, Region, Type, Value, eval};
use crate::math::Function;

/// Evaluates straight-line code with the arguments' bits given.
fn evaluate(kernel: &Kernel, region: &Region, mut bits: HashMap<Value, u64>, result: Value) -> u64 {
    for op in &region.ops {
        let of = |value: Value| kernel.as_constant(value).unwrap_or_else(|| bits[&value]);
        let ty = |value: Value| kernel.ty(value);
        let to = kernel.ty(op.results[0]);
        let computed = match op.kind {
            OpKind::Unary(op, a) => eval::unary(op, to, of(a)),
            OpKind::Binary(op, a, b) => eval::binary(op, to, of(a), of(b)),
            OpKind::Fma(a, b, c) => eval::fma(to, of(a), of(b), of(c)),
            OpKind::Compare(op, a, b) => u64::from(eval::compare(op, ty(a), of(a), of(b))),
            OpKind::Select(condition, a, b) => of(if of(condition) != 0 { a } else { b }),
            OpKind::Convert(op, a) => eval::convert(op, ty(a), to, of(a)),
            ref other => panic!("expansions are straight-line code, but this has {other:?}"),
        };
        bits.insert(op.results[0], computed);
    }
    bits[&result]
}

/// Random bits, half of the time near 1 in magnitude, where most happens.
fn argument(random: &mut Random, ty: Type) -> u64 {
    let bits = random.bits();
    let x = (bits as i32 as f64) / f64::from(1 << 28);
    match (random.bits() % 2, ty) {
        (0, Type::F32) => bits & 0xffff_ffff,
        (0, _) => bits,
        (_, Type::F32) => u64::from((x as f32).to_bits()),
        _ => x.to_bits(),
    }
}

#[test]
fn kernels_compute_what_the_host_computes() {
    let mut random = Random(seed());
    for &function in Function::ALL {
        for ty in [Type::F32, Type::F64] {
            let mut kernel = Kernel::new(function.name());
            let arguments: Vec<Value> = (0..function.arguments()).map(|_| kernel.value(ty)).collect();
            let mut builder = Builder::new(&mut kernel, Kernel::NOWHERE);
            let result = function.emit(&mut builder, &arguments);
            let region = builder.finish();
            for _ in 0..2000 {
                let bits: Vec<u64> = arguments.iter().map(|_| argument(&mut random, ty)).collect();
                let given = arguments.iter().copied().zip(bits.iter().copied()).collect();
                let in_kernel = evaluate(&kernel, &region, given, result);
                let on_host = match ty {
                    Type::F32 => {
                        let arguments: Vec<f32> = bits.iter().map(|&b| f32::from_bits(b as u32)).collect();
                        u64::from(function.f32(&arguments).to_bits())
                    }
                    _ => {
                        let arguments: Vec<f64> = bits.iter().map(|&b| f64::from_bits(b)).collect();
                        function.f64(&arguments).to_bits()
                    }
                };
                assert_eq!(in_kernel, on_host, "{} of {bits:x?} in {ty}", function.name());
            }
        }
    }
}
