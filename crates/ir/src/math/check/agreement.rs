//! Kernels and host compute the same: the emitted operations, evaluated as the IR specifies.

use std::collections::HashMap;

use super::{Random, seed};
use crate::ir::{Builder, Kernel, Label, OpKind, Region, Type, Value, eval};
use crate::math::Function;

/// The values computed so far, by their bits.
struct Run<'k> {
    kernel: &'k Kernel,
    bits: HashMap<Value, u64>,
}

impl Run<'_> {
    fn of(&self, value: Value) -> u64 {
        self.kernel
            .as_constant(value)
            .unwrap_or_else(|| self.bits[&value])
    }

    fn define(&mut self, values: &[Value], bits: Vec<u64>) {
        self.bits.extend(values.iter().copied().zip(bits));
    }

    /// Runs a region; returns the label it leaves to, the values it passes, and whether it continues.
    fn region(&mut self, region: &Region) -> (Label, Vec<u64>, bool) {
        for op in &region.ops {
            let ty = |value: Value| self.kernel.ty(value);
            let to = op.results.first().map_or(Type::Bool, |&result| ty(result));
            let computed = match &op.kind {
                OpKind::Unary(op, a) => eval::unary(*op, to, self.of(*a)),
                OpKind::Binary(op, a, b) => eval::binary(*op, to, self.of(*a), self.of(*b)),
                OpKind::Fma(a, b, c) => eval::fma(to, self.of(*a), self.of(*b), self.of(*c)),
                OpKind::Compare(op, a, b) => u64::from(eval::compare(*op, ty(*a), self.of(*a), self.of(*b))),
                OpKind::Select(condition, a, b) => self.of(if self.of(*condition) != 0 { *a } else { *b }),
                OpKind::Convert(op, a) => eval::convert(*op, ty(*a), to, self.of(*a)),
                OpKind::If {
                    label,
                    cond,
                    then,
                    otherwise,
                } => {
                    let left = self.region(if self.of(*cond) != 0 { then } else { otherwise });
                    if left.0 != *label {
                        return left;
                    }
                    self.define(&op.results, left.1);
                    continue;
                }
                OpKind::Loop {
                    params,
                    initial,
                    body,
                    ..
                } => {
                    let mut values = initial.iter().map(|&value| self.of(value)).collect();
                    loop {
                        self.define(params, values);
                        let left = self.region(body);
                        values = left.1;
                        if !left.2 {
                            break;
                        }
                    }
                    self.define(&op.results, values);
                    continue;
                }
                OpKind::Break(label, values) => {
                    return (
                        *label,
                        values.iter().map(|&value| self.of(value)).collect(),
                        false,
                    );
                }
                OpKind::Continue(label, values) => {
                    return (*label, values.iter().map(|&value| self.of(value)).collect(), true);
                }
                other => panic!("expansions are pure, but this has {other:?}"),
            };
            self.define(&op.results, vec![computed]);
        }
        panic!("a region ends with a terminator");
    }
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
            let end = builder.kernel.label(None, vec![ty]);
            builder.break_(end, vec![result]);
            let region = builder.finish();
            for _ in 0..2000 {
                let bits: Vec<u64> = arguments.iter().map(|_| argument(&mut random, ty)).collect();
                let given = arguments.iter().copied().zip(bits.iter().copied()).collect();
                let in_kernel = Run {
                    kernel: &kernel,
                    bits: given,
                }
                .region(&region)
                .1[0];
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
