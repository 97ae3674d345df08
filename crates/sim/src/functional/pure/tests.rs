//! Every operation of every type, against the specification.

use super::*;
use crate::ir::{NoWrapOp, Rounding};
use headstart_ir::random::splitmix64;

const INTEGERS: [Type; 4] = [Type::I8, Type::I16, Type::I32, Type::I64];
const FLOATS: [Type; 4] = [Type::F16, Type::Bf16, Type::F32, Type::F64];

/// Lanes that mix random bits with the values that go wrong: zeros, ones, extremes, infinities, NaNs.
fn operands(ty: Type, seed: u64) -> Lanes {
    let exponent = match ty {
        Type::F16 => 0x7c00,
        Type::Bf16 => 0x7f80,
        Type::F32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000,
    };
    let sign = 1u64 << (ty.bits() - 1);
    let nasty = [
        0,
        1,
        sign,
        sign | 1,
        sign - 1,
        u64::MAX,
        exponent,
        exponent | sign,
        exponent + 1,
        33,
        64,
    ];
    std::array::from_fn(|lane| {
        let random = splitmix64(lane as u64, seed);
        let bits = match random % 3 {
            0 => nasty[(random >> 8) as usize % nasty.len()],
            // A float of moderate size, or a small integer.
            1 => (exponent / 2).wrapping_add(random >> 9 & (exponent >> 4)),
            _ => random >> 3,
        };
        bits & ty.mask()
    })
}

fn check(kind: &LaneOpKind, types: &[Type], expected: impl Fn(&[u64]) -> u64) {
    for seed in 0..20 {
        let mut registers = Registers::new(4, LANES as u32);
        for (index, &ty) in types.iter().enumerate() {
            registers.set(Slot(index as u32 + 1), &operands(ty, seed * 7 + index as u64));
        }
        let before = registers.clone();
        assert!(execute(kind, &mut registers));
        for lane in 0..LANES {
            let inputs = [1, 2, 3].map(|slot| before.get(Slot(slot))[lane]);
            let got = registers.get(Slot(0))[lane];
            assert_eq!(got, expected(&inputs), "{kind:?} on {inputs:x?}");
        }
    }
}

#[test]
fn unary_operations_agree_with_the_specification() {
    let (to, a) = (Slot(0), Slot(1));
    for &op in UnaryOp::ALL {
        let float = matches!(
            op,
            UnaryOp::FNeg
                | UnaryOp::FAbs
                | UnaryOp::Sqrt
                | UnaryOp::Floor
                | UnaryOp::Ceil
                | UnaryOp::Trunc
                | UnaryOp::RoundEven
        );
        let single = matches!(
            op,
            UnaryOp::NormalReciprocal
                | UnaryOp::NormalSqrt
                | UnaryOp::TableExp2
                | UnaryOp::TableLog2
                | UnaryOp::TableReciprocal
        );
        if op == UnaryOp::TableRow {
            let ty = Type::I64;
            check(&LaneOpKind::Unary { op, ty, to, a }, &[ty], |x| {
                eval::unary(op, ty, x[0])
            });
            continue;
        }
        let types: &[Type] = match op.is_approximation() || single {
            true => &[Type::F32],
            false if float => &FLOATS,
            false => &INTEGERS,
        };
        for &ty in types {
            check(&LaneOpKind::Unary { op, ty, to, a }, &[ty], |x| {
                eval::unary(op, ty, x[0])
            });
        }
    }
    let (op, ty) = (UnaryOp::Not, Type::Bool);
    check(&LaneOpKind::Unary { op, ty, to, a }, &[ty], |x| {
        eval::unary(op, ty, x[0])
    });
}

#[test]
fn binary_operations_agree_with_the_specification() {
    let (to, a, b) = (Slot(0), Slot(1), Slot(2));
    for &op in BinaryOp::ALL {
        let float = matches!(
            op,
            BinaryOp::FAdd
                | BinaryOp::FSub
                | BinaryOp::FMul
                | BinaryOp::FDiv
                | BinaryOp::FMin
                | BinaryOp::FMax
                | BinaryOp::FMinimum
                | BinaryOp::FMaximum
                | BinaryOp::CopySign
        );
        let types: &[Type] = match op.is_approximation() {
            true => &[Type::F32],
            false if float => &FLOATS,
            false => &INTEGERS,
        };
        for &ty in types {
            check(&LaneOpKind::Binary { op, ty, to, a, b }, &[ty, ty], |x| {
                eval::binary(op, ty, x[0], x[1])
            });
        }
    }
    for &op in NoWrapOp::ALL {
        for &wrap in crate::ir::Wrap::ALL {
            for ty in INTEGERS {
                let kind = LaneOpKind::NoWrap {
                    op,
                    wrap,
                    ty,
                    to,
                    a,
                    b,
                };
                check(&kind, &[ty, ty], |x| eval::no_wrap(op, wrap, ty, x[0], x[1]).0);
            }
        }
    }
    for ty in FLOATS {
        let c = Slot(3);
        check(&LaneOpKind::Fma { ty, to, a, b, c }, &[ty, ty, ty], |x| {
            eval::fma(ty, x[0], x[1], x[2])
        });
    }
}

#[test]
fn comparisons_agree_with_the_specification() {
    let (to, a, b) = (Slot(0), Slot(1), Slot(2));
    for &op in CompareOp::ALL {
        let float = op >= CompareOp::FEq;
        for ty in if float { FLOATS } else { INTEGERS } {
            check(&LaneOpKind::Compare { op, ty, to, a, b }, &[ty, ty], |x| {
                u64::from(eval::compare(op, ty, x[0], x[1]))
            });
        }
    }
}

#[test]
fn conversions_agree_with_the_specification() {
    let (to, a) = (Slot(0), Slot(1));
    for &op in ConvertOp::ALL {
        for from in Type::ALL {
            for into in Type::ALL {
                let fits = match op {
                    ConvertOp::ExtendU | ConvertOp::ExtendS => {
                        from.is_integer() && into.is_integer() && from.bits() < into.bits()
                    }
                    ConvertOp::Truncate => {
                        from.is_integer() && into.is_integer() && from.bits() > into.bits()
                    }
                    ConvertOp::FloatToFloat => from.is_float() && into.is_float(),
                    ConvertOp::SignedToFloat | ConvertOp::UnsignedToFloat => {
                        from.is_integer() && into.is_float()
                    }
                    ConvertOp::FloatToSigned | ConvertOp::FloatToUnsigned => {
                        from.is_float() && into.is_integer()
                    }
                    ConvertOp::Bits => from.bytes() == into.bytes() && from.bits() > 1 && into.bits() > 1,
                    ConvertOp::ToGeneric | ConvertOp::FromGeneric => false,
                };
                if fits {
                    let kind = LaneOpKind::Convert {
                        op,
                        from,
                        into,
                        to,
                        a,
                    };
                    check(&kind, &[from], |x| eval::convert(op, from, into, x[0]));
                }
            }
        }
    }
}

#[test]
fn addresses_selections_and_joins_agree_with_the_specification() {
    let (to, a, b, c) = (Slot(0), Slot(1), Slot(2), Slot(3));
    let kind = LaneOpKind::Address {
        to,
        base: a,
        index: b,
        scale: 12,
        offset: -5,
    };
    check(&kind, &[Type::I64, Type::I64], |x| {
        eval::address(x[0], x[1], 12, -5)
    });
    let kind = LaneOpKind::Select {
        to,
        cond: a,
        a: b,
        b: c,
    };
    check(&kind, &[Type::Bool, Type::F64, Type::F64], |x| {
        if x[0] != 0 { x[1] } else { x[2] }
    });
    let tokens = Box::new([a, b]);
    check(&LaneOpKind::Join { to, tokens }, &[Type::I64, Type::I64], |x| {
        x[0].max(x[1])
    });
}

/// Every rule that says something.
fn rules() -> impl Iterator<Item = FloatRule> {
    Rounding::ALL.into_iter().flat_map(|rounding| {
        [false, true].map(|flush| FloatRule {
            rounding,
            flush,
            ..FloatRule::EXACT
        })
    })
}

#[test]
fn ruled_operations_agree_with_the_specification() {
    use crate::ir::OpKind;
    let (to, a, b, c) = (Slot(0), Slot(1), Slot(2), Slot(3));
    let values = [1, 2, 3].map(crate::ir::Value::from_u32);
    let [x, y, z] = values;
    // The operation, as lanes and as the specification have it.
    let mut kinds: Vec<(LaneOpKind, OpKind)> = Vec::new();
    for ty in FLOATS {
        for op in [
            UnaryOp::FNeg,
            UnaryOp::FAbs,
            UnaryOp::Sqrt,
            UnaryOp::Ceil,
            UnaryOp::ApproximateRsqrt,
        ] {
            kinds.push((LaneOpKind::Unary { op, ty, to, a }, OpKind::Unary(op, x)));
        }
        use BinaryOp::{FAdd, FDiv, FMax, FMin, FMul, FSub};
        for op in [FAdd, FSub, FMul, FDiv, FMin, FMax] {
            kinds.push((LaneOpKind::Binary { op, ty, to, a, b }, OpKind::Binary(op, x, y)));
        }
        for op in [
            CompareOp::FEq,
            CompareOp::FNe,
            CompareOp::FLt,
            CompareOp::FLe,
            CompareOp::FUnordered,
        ] {
            kinds.push((
                LaneOpKind::Compare { op, ty, to, a, b },
                OpKind::Compare(op, x, y),
            ));
        }
        kinds.push((LaneOpKind::Fma { ty, to, a, b, c }, OpKind::Fma(x, y, z)));
        for into in FLOATS {
            let op = ConvertOp::FloatToFloat;
            let from = ty;
            kinds.push((
                LaneOpKind::Convert {
                    op,
                    from,
                    into,
                    to,
                    a,
                },
                OpKind::Convert(op, x),
            ));
        }
    }
    for (lanes, plain) in &kinds {
        let (ty, result) = match *lanes {
            LaneOpKind::Convert { from, into, .. } => (from, into),
            LaneOpKind::Unary { ty, .. }
            | LaneOpKind::Binary { ty, .. }
            | LaneOpKind::Compare { ty, .. }
            | LaneOpKind::Fma { ty, .. } => (ty, ty),
            _ => unreachable!("no other is listed"),
        };
        for rule in rules() {
            for seed in 0..6 {
                let mut registers = Registers::new(4, LANES as u32);
                for slot in 1..4 {
                    registers.set(Slot(slot), &operands(ty, seed * 7 + u64::from(slot)));
                }
                let before = registers.clone();
                execute_ruled(rule, lanes, &mut registers);
                for lane in 0..LANES {
                    let bits = |value: crate::ir::Value| before.get(Slot(value.as_u32()))[lane];
                    let expected = ruled::ruled(rule, plain, result, |_| ty, bits);
                    let found = Some(registers.get(to)[lane]);
                    assert_eq!(found, expected, "{lanes:?}{rule} on {:x?}", values.map(bits));
                }
            }
        }
    }
}
