//! One small kernel for each pure operation and type, with what it must compute.

use headstart::ir::{
    self, BinaryOp, Builder, CompareOp, ConvertOp, FloatRule, Id, Kernel, LoadData, OpKind, Param,
    PointerFacts, Races, Rounding, Space, Type, UnaryOp, Value, eval,
};

/// A kernel `result[i] = operation(a[i], b[i], c[i])`, and the operation as the IR specifies it.
pub struct Operation {
    /// The operation and its types.
    pub name: String,
    /// The kernel: buffers `a`, `b`, `c`, `result`, then their length.
    pub kernel: Kernel,
    /// The type of `a`, `b` and `c`.
    pub operand: Type,
    /// The type of `result`.
    pub result: Type,
    /// How it rounds and flushes.
    pub rule: FloatRule,
    /// The operation on bits.
    pub expected: Box<dyn Fn(u64, u64, u64) -> u64>,
}

/// The types that a buffer can hold.
pub const TYPES: [Type; 9] = [
    Type::Bool,
    Type::I8,
    Type::I16,
    Type::I32,
    Type::I64,
    Type::F16,
    Type::Bf16,
    Type::F32,
    Type::F64,
];

/// Every pure operation on every type that the verifier lets it have.
pub fn operations() -> Vec<Operation> {
    let mut all = Vec::new();
    for ty in TYPES {
        for &op in UnaryOp::ALL {
            all.extend(operation(
                format!("{} {ty}", op.name()),
                ty,
                ty,
                move |b, [x, _, _]| b.unary(op, x),
                move |x, _, _| eval::unary(op, ty, x),
            ));
        }
        for &op in BinaryOp::ALL {
            all.extend(operation(
                format!("{} {ty}", op.name()),
                ty,
                ty,
                move |b, [x, y, _]| b.binary(op, x, y),
                move |x, y, _| eval::binary(op, ty, x, y),
            ));
        }
        for &op in CompareOp::ALL {
            let name = format!("{} {ty}", op.name());
            all.extend(operation(
                name,
                ty,
                Type::Bool,
                move |b, [x, y, _]| b.compare(op, x, y),
                move |x, y, _| u64::from(eval::compare(op, ty, x, y)),
            ));
        }
        all.extend(operation(
            format!("fma {ty}"),
            ty,
            ty,
            |b, [x, y, z]| b.fma(x, y, z),
            move |x, y, z| eval::fma(ty, x, y, z),
        ));
        all.extend(operation(
            format!("select {ty}"),
            ty,
            ty,
            |b, [x, y, z]| {
                let same = b.compare(
                    if ty.is_float() {
                        CompareOp::FEq
                    } else {
                        CompareOp::Eq
                    },
                    y,
                    z,
                );
                b.select(same, x, y)
            },
            move |x, y, z| {
                let op = if ty.is_float() {
                    CompareOp::FEq
                } else {
                    CompareOp::Eq
                };
                if eval::compare(op, ty, y, z) { x } else { y }
            },
        ));
        for to in TYPES.into_iter().filter(|&to| to != ty) {
            for &op in ConvertOp::ALL {
                let name = format!("{} {ty} {to}", op.name());
                all.extend(operation(
                    name,
                    ty,
                    to,
                    move |b, [x, _, _]| b.convert(op, to, x),
                    move |x, _, _| eval::convert(op, ty, to, x),
                ));
            }
        }
        all.extend(ruled(ty));
    }
    all
}

/// The float operations on a type that can have a rule of their own, with every such rule.
fn ruled(ty: Type) -> Vec<Operation> {
    let [x, y, z] = [0, 1, 2].map(Value::from_u32);
    let mut kinds: Vec<(String, Type, OpKind)> = Vec::new();
    for &op in UnaryOp::ALL {
        kinds.push((op.name().to_owned(), ty, OpKind::Unary(op, x)));
    }
    for &op in BinaryOp::ALL {
        kinds.push((op.name().to_owned(), ty, OpKind::Binary(op, x, y)));
    }
    for &op in CompareOp::ALL {
        kinds.push((op.name().to_owned(), Type::Bool, OpKind::Compare(op, x, y)));
    }
    kinds.push(("fma".to_owned(), ty, OpKind::Fma(x, y, z)));
    for &op in ConvertOp::ALL {
        for to in TYPES {
            kinds.push((op.name().to_owned(), to, OpKind::Convert(op, x)));
        }
    }
    let rules = Rounding::ALL.into_iter().flat_map(|rounding| {
        [false, true].map(|flush| FloatRule {
            rounding,
            flush,
            ..FloatRule::EXACT
        })
    });
    let mut all = Vec::new();
    for rule in rules.filter(|&rule| rule != FloatRule::EXACT) {
        for (name, to, plain) in kinds.iter().cloned() {
            let name = match plain {
                OpKind::Convert(..) => format!("{name}{rule} {ty} {to}"),
                _ => format!("{name}{rule} {ty}"),
            };
            let written = plain.clone();
            let found = operation(
                name,
                ty,
                to,
                move |b, operands| {
                    let mut kind = written.clone();
                    kind.map_operands(|value| operands[value.as_u32() as usize]);
                    b.ruled(rule, kind, to)
                },
                move |x, y, z| {
                    let bits = |value: Value| [x, y, z][value.as_u32() as usize];
                    eval::ruled::ruled(rule, &plain, to, |_| ty, bits).unwrap_or_default()
                },
            );
            all.extend(found.map(|found| Operation { rule, ..found }));
        }
    }
    all
}

fn operation(
    name: String,
    operand: Type,
    result: Type,
    apply: impl Fn(&mut Builder<'_>, [Value; 3]) -> Value,
    expected: impl Fn(u64, u64, u64) -> u64 + 'static,
) -> Option<Operation> {
    let mut kernel = Kernel::new("operation");
    let count = kernel.value(Type::I64);
    let mut pointers = Vec::new();
    for (name, element, read_only) in [
        ("a", operand, true),
        ("b", operand, true),
        ("c", operand, true),
        ("result", result, false),
    ] {
        let value = kernel.value(Type::Ptr(Space::Global));
        let facts = PointerFacts {
            element,
            align: 16,
            length: Some(count),
            read_only,
            unaliased: true,
            is_constant: false,
            races: Races::None,
        };
        kernel.params.push(Param {
            name: name.into(),
            value,
            facts: Some(facts),
        });
        pointers.push(value);
    }
    kernel.params.push(Param {
        name: "count".into(),
        value: count,
        facts: None,
    });
    let loads: Vec<_> = ["a", "b", "c"]
        .map(|name| kernel.loads.push(LoadData::new(name, Kernel::NOWHERE)))
        .into();
    let mut b = Builder::new(&mut kernel, Kernel::NOWHERE);
    let (group, size, local) = (b.id(Id::Group(0)), b.id(Id::GroupSize(0)), b.id(Id::Local(0)));
    let [group, size, local] = [group, size, local].map(|id| b.convert(ConvertOp::ExtendU, Type::I64, id));
    let before = b.mul(group, size);
    let index = b.add(before, local);
    let inside = b.compare(CompareOp::LtU, index, count);
    b.if_(
        inside,
        &[],
        |b| {
            let operands = [0, 1, 2].map(|k| {
                let from = b.element(pointers[k], operand, index);
                b.load(operand, from, loads[k])
            });
            let made = apply(b, operands);
            let to = b.element(pointers[3], result, index);
            b.store(to, made);
            Vec::new()
        },
        |_| Vec::new(),
    );
    b.return_();
    kernel.body = b.finish();
    ir::verify(&kernel).ok()?;
    Some(Operation {
        name,
        kernel,
        operand,
        result,
        rule: FloatRule::EXACT,
        expected: Box::new(expected),
    })
}

/// Bits of a type that are likely to be treated wrongly, and some others.
pub fn values(ty: Type) -> Vec<u64> {
    let width = ty.bits();
    let mask = ty.mask();
    let mut values: Vec<u64> = match ty {
        Type::Bool => return vec![0, 1],
        Type::F16 | Type::Bf16 | Type::F32 | Type::F64 => {
            let from = |x: f64| eval::convert(ConvertOp::FloatToFloat, Type::F64, ty, x.to_bits());
            let numbers = [
                0.0,
                1.0,
                0.5,
                1.5,
                2.5,
                3.5,
                0.1,
                1e-3,
                3.0,
                7.0,
                127.5,
                255.5,
                300.0,
                32768.0,
                65504.0,
                65536.0,
                2147483648.0,
                4294967296.0,
                9.3e18,
                1.9e19,
                1e30,
                1e-40,
                6e-8,
                1.0000001,
                0.99999994,
            ];
            let infinity = from(f64::INFINITY);
            let mantissa_top = (infinity & infinity.wrapping_neg()) >> 1;
            let mut values: Vec<u64> = numbers.into_iter().flat_map(|x| [from(x), from(-x)]).collect();
            values.extend([infinity, from(f64::NEG_INFINITY)]);
            // NaNs: the canonical one, with the sign, with a payload, signalling.
            values.extend([infinity | mantissa_top, from(f64::NEG_INFINITY) | mantissa_top]);
            values.extend([
                infinity | mantissa_top | 5,
                infinity | 1,
                infinity - 1,
                1,
                mantissa_top * 2 - 1,
            ]);
            values.push(mantissa_top * 2);
            values
        }
        _ => {
            let mut values = vec![0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 255, 256];
            values.extend([
                1 << (width - 1),
                (1 << (width - 1)) - 1,
                mask,
                mask - 1,
                mask >> 1,
                mask / 3,
            ]);
            values.extend([1 << 31, 1 << 32, 0xffff_ffff, 0x8000_0001, 0x1_0000_0001]);
            values
        }
    };
    // A few arbitrary ones, the same in every run.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..12 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        values.push(state >> (64 - width.min(63)));
    }
    values.iter_mut().for_each(|value| *value &= mask);
    values.sort_unstable();
    values.dedup();
    values
}
