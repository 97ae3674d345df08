//! Functions of a device's own library, for devices that are not reached by it.
//!
//! Before: `%y = library.exp %x`. After: the expansion from [`math`](crate::math). OpenCL devices have these functions and keep
//! them. Elsewhere the kernel gets expansions of about the same cost: within a few ulp of OpenCL's, `erfc` within 1 of them,
//! and the hardware's approximations for OpenCL's `native_` and `half_` functions. Divisions and roots that need not be rounded
//! ([`Accuracy`]) are approximated, too, as OpenCL's compilers build them.

use std::collections::HashMap;

use crate::ir::{
    Accuracy, BinaryOp, Builder, CompareOp, ConvertOp, Kernel, Op, OpKind, Region, Type, UnaryOp, Value,
};
use crate::math::Function;

/// Writes out every function of a library. The kernel stays verified.
pub(crate) fn expand(kernel: &mut Kernel) {
    relax(kernel);
    let mut any = false;
    kernel.body.walk(&mut |op| any |= is_library(&op.kind));
    if !any {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    let mut made = HashMap::new();
    region(kernel, &mut body, &mut made);
    body.walk_mut(&mut |op| {
        op.kind
            .map_operands(|value| made.get(&value).copied().unwrap_or(value));
    });
    kernel.body = body;
}

/// Takes the approximations that the kernel's accuracy allows.
fn relax(kernel: &mut Kernel) {
    let quotient = match kernel.float_mode.accuracy {
        Accuracy::Rounded => return,
        Accuracy::OpenCl => BinaryOp::ApproximateDiv,
        Accuracy::Fast => BinaryOp::ApproximateDivInRange,
    };
    let mut body = std::mem::take(&mut kernel.body);
    body.walk_mut(&mut |op| {
        let relaxed = match op.kind {
            OpKind::Unary(UnaryOp::Sqrt, x) => OpKind::Unary(UnaryOp::ApproximateSqrt, x),
            OpKind::Binary(BinaryOp::FDiv, x, y) => OpKind::Binary(quotient, x, y),
            _ => return,
        };
        if kernel.ty(op.results[0]) == Type::F32 {
            op.kind = relaxed;
        }
    });
    kernel.body = body;
}

fn is_library(kind: &OpKind) -> bool {
    match kind {
        OpKind::Unary(op, _) => *op >= UnaryOp::LibraryExp,
        OpKind::Binary(op, ..) => *op >= BinaryOp::LibraryPow,
        _ => false,
    }
}

fn region(kernel: &mut Kernel, body: &mut Region, made: &mut HashMap<Value, Value>) {
    for mut op in std::mem::take(&mut body.ops) {
        for inner in op.kind.regions_mut() {
            region(kernel, inner, made);
        }
        match is_library(&op.kind) {
            true => {
                let mut builder = Builder::new(kernel, op.place);
                let value = written(&mut builder, &op);
                body.ops.extend(builder.finish().ops);
                made.insert(op.results[0], value);
            }
            false => body.ops.push(op),
        }
    }
}

fn written(b: &mut Builder<'_>, op: &Op) -> Value {
    let operands = match op.kind {
        OpKind::Unary(_, x) => vec![x],
        OpKind::Binary(_, x, y) => vec![x, y],
        _ => unreachable!("only functions of a library come here"),
    };
    // Halves are computed in single precision, and rounded once more.
    let is_half = b.kernel.ty(operands[0]) == Type::F16;
    let operands: Vec<Value> = operands
        .into_iter()
        .map(|operand| match is_half {
            true => b.convert(ConvertOp::FloatToFloat, Type::F32, operand),
            false => operand,
        })
        .collect();
    let made = match (&op.kind, &operands[..]) {
        (OpKind::Unary(op, _), &[x]) => of_one(b, *op, x),
        (OpKind::Binary(op, ..), &[x, y]) => of_two(b, *op, x, y),
        _ => unreachable!("functions of a library have one or two operands"),
    };
    match is_half {
        true => b.convert(ConvertOp::FloatToFloat, Type::F16, made),
        false => made,
    }
}

fn of_one(b: &mut Builder<'_>, op: UnaryOp, x: Value) -> Value {
    let times = |b: &mut Builder<'_>, x: Value, factor: f64| {
        let factor = number(b, x, factor);
        b.binary(BinaryOp::FMul, x, factor)
    };
    match op {
        UnaryOp::LibraryRsqrt => {
            let root = b.unary(UnaryOp::Sqrt, x);
            let one = number(b, root, 1.0);
            b.binary(BinaryOp::FDiv, one, root)
        }
        UnaryOp::LibraryExp10 => {
            let ten = number(b, x, 10.0);
            Function::Pow.emit(b, &[ten, x])
        }
        UnaryOp::LibraryLog1p => log1p(b, x),
        UnaryOp::LibraryExpm1 => expm1(b, x),
        // Within a few units in the last place of 1.
        UnaryOp::LibraryErfc => {
            let (one, own) = (number(b, x, 1.0), Function::Erf.emit(b, &[x]));
            b.binary(BinaryOp::FSub, one, own)
        }
        // Within 8,192 units in the last place, which the approximations of logarithms near 1, of sines of small numbers, and of
        // cosines of large ones are not.
        UnaryOp::HalfLog => Function::Log.emit(b, &[x]),
        UnaryOp::HalfLog2 => Function::Log2.emit(b, &[x]),
        UnaryOp::HalfLog10 => Function::Log10.emit(b, &[x]),
        UnaryOp::HalfSin => Function::Sin.emit(b, &[x]),
        UnaryOp::HalfCos => Function::Cos.emit(b, &[x]),
        UnaryOp::HalfTan => Function::Tan.emit(b, &[x]),
        UnaryOp::NativeExp | UnaryOp::HalfExp => {
            let power = times(b, x, std::f64::consts::LOG2_E);
            b.unary(UnaryOp::ApproximateExp2, power)
        }
        UnaryOp::NativeExp10 | UnaryOp::HalfExp10 => {
            let power = times(b, x, std::f64::consts::LOG2_10);
            b.unary(UnaryOp::ApproximateExp2, power)
        }
        UnaryOp::HalfExp2 => b.unary(UnaryOp::ApproximateExp2, x),
        UnaryOp::NativeLog => {
            let own = b.unary(UnaryOp::ApproximateLog2, x);
            times(b, own, std::f64::consts::LN_2)
        }
        UnaryOp::NativeLog10 => {
            let own = b.unary(UnaryOp::ApproximateLog2, x);
            times(b, own, std::f64::consts::LOG10_2)
        }
        UnaryOp::NativeTan => {
            let sine = b.unary(UnaryOp::ApproximateSin, x);
            let cosine = b.unary(UnaryOp::ApproximateCos, x);
            fast_quotient(b, sine, cosine)
        }
        UnaryOp::HalfReciprocal => b.unary(UnaryOp::ApproximateReciprocal, x),
        UnaryOp::HalfRsqrt => b.unary(UnaryOp::ApproximateRsqrt, x),
        UnaryOp::HalfSqrt => b.unary(UnaryOp::ApproximateSqrt, x),
        _ => function(op).emit(b, &[x]),
    }
}

fn of_two(b: &mut Builder<'_>, op: BinaryOp, x: Value, y: Value) -> Value {
    match op {
        BinaryOp::LibraryAtan2 => Function::Atan2.emit(b, &[x, y]),
        BinaryOp::LibraryHypot => Function::Hypot.emit(b, &[x, y]),
        BinaryOp::LibraryPown => {
            let ty = b.kernel.ty(x);
            let integer = if ty == Type::F64 { Type::I64 } else { Type::I32 };
            let power = b.convert(ConvertOp::Bits, integer, y);
            let power = b.convert(ConvertOp::SignedToFloat, ty, power);
            Function::Pow.emit(b, &[x, power])
        }
        BinaryOp::NativePowr => {
            let own = b.unary(UnaryOp::ApproximateLog2, x);
            let power = b.binary(BinaryOp::FMul, y, own);
            b.unary(UnaryOp::ApproximateExp2, power)
        }
        BinaryOp::NativeDivide | BinaryOp::HalfDivide => fast_quotient(b, x, y),
        // NaN wherever y ln x is.
        BinaryOp::LibraryPowr | BinaryOp::HalfPowr => {
            let log = Function::Log.emit(b, &[x]);
            let product = b.binary(BinaryOp::FMul, y, log);
            let is_number = b.compare(CompareOp::FEq, product, product);
            let base = b.unary(UnaryOp::FAbs, x);
            let power = Function::Pow.emit(b, &[base, y]);
            b.select(is_number, power, product)
        }
        _ => Function::Pow.emit(b, &[x, y]),
    }
}

/// x / y as devices' compilers have OpenCL's fast ones: a reciprocal and a product.
fn fast_quotient(b: &mut Builder<'_>, x: Value, y: Value) -> Value {
    let reciprocal = b.unary(UnaryOp::ApproximateReciprocal, y);
    b.binary(BinaryOp::FMul, x, reciprocal)
}

/// ln(1 + x). The factor x / ((1 + x) - 1) restores the part of x that rounding 1 + x lost.
fn log1p(b: &mut Builder<'_>, x: Value) -> Value {
    let one = number(b, x, 1.0);
    let sum = b.binary(BinaryOp::FAdd, one, x);
    let kept = b.binary(BinaryOp::FSub, sum, one);
    let log = Function::Log.emit(b, &[sum]);
    let factor = b.binary(BinaryOp::FDiv, x, kept);
    let made = b.binary(BinaryOp::FMul, log, factor);
    let tiny = b.compare(CompareOp::FEq, sum, one);
    let made = b.select(tiny, x, made);
    let infinity = number(b, x, f64::INFINITY);
    let endless = b.compare(CompareOp::FEq, x, infinity);
    b.select(endless, x, made)
}

/// eˣ − 1. The factor x / ln eˣ restores the part that rounding eˣ lost.
fn expm1(b: &mut Builder<'_>, x: Value) -> Value {
    let one = number(b, x, 1.0);
    let power = Function::Exp.emit(b, &[x]);
    let less = b.binary(BinaryOp::FSub, power, one);
    let log = Function::Log.emit(b, &[power]);
    let factor = b.binary(BinaryOp::FDiv, x, log);
    let near = b.binary(BinaryOp::FMul, less, factor);
    // Far from 0 nothing is lost.
    let (magnitude, half) = (b.unary(UnaryOp::FAbs, x), number(b, x, 0.5));
    let is_near = b.compare(CompareOp::FLt, magnitude, half);
    let made = b.select(is_near, near, less);
    let tiny = b.compare(CompareOp::FEq, power, one);
    b.select(tiny, x, made)
}

/// A constant of the type of another value.
fn number(b: &mut Builder<'_>, like: Value, number: f64) -> Value {
    match b.kernel.ty(like) {
        Type::F64 => b.f64(number),
        _ => b.f32(number as f32),
    }
}

/// The function that stands for one of a library.
fn function(op: UnaryOp) -> Function {
    match op {
        UnaryOp::LibraryExp => Function::Exp,
        UnaryOp::LibraryExp2 => Function::Exp2,
        UnaryOp::LibraryLog => Function::Log,
        UnaryOp::LibraryLog2 => Function::Log2,
        UnaryOp::LibraryLog10 => Function::Log10,
        UnaryOp::LibrarySin | UnaryOp::LibrarySinOfBoth => Function::Sin,
        UnaryOp::LibraryCos | UnaryOp::LibraryCosOfBoth => Function::Cos,
        UnaryOp::LibraryTan => Function::Tan,
        UnaryOp::LibraryAsin => Function::Asin,
        UnaryOp::LibraryAcos => Function::Acos,
        UnaryOp::LibraryAtan => Function::Atan,
        UnaryOp::LibrarySinh => Function::Sinh,
        UnaryOp::LibraryCosh => Function::Cosh,
        UnaryOp::LibraryTanh => Function::Tanh,
        UnaryOp::LibraryErf => Function::Erf,
        _ => Function::Cbrt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{parse, print, verify};

    #[test]
    fn every_function_is_written_out() {
        for ty in ["f16", "f32", "f64"] {
            let own = Type::ALL
                .into_iter()
                .find(|one| one.name() == ty)
                .expect("a type");
            let mut text = format!("hsir 1\nkernel @k(%p: ptr.global {ty}[] align 8, %v0: {ty}) {{\n");
            let (unary, binary) = (UnaryOp::ALL.iter(), BinaryOp::ALL.iter());
            let unary = unary
                .filter(|op| **op >= UnaryOp::LibraryExp && op.operands().fit(own))
                .map(|op| (op.name(), 1));
            let binary = binary
                .filter(|op| **op >= BinaryOp::LibraryPow && op.operands().fit(own))
                .map(|op| (op.name(), 2));
            let mut count = 0;
            for (name, operands) in unary.chain(binary) {
                let second = if operands == 2 { ", %v0" } else { "" };
                text.push_str(&format!("%v{} = {name} %v{count}{second}\n", count + 1));
                count += 1;
            }
            text.push_str(&format!("store %p, %v{count}\nreturn\n}}\n"));
            let mut kernel = parse(&text, "k.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
            verify(&kernel).expect("it is right");
            expand(&mut kernel);
            verify(&kernel).unwrap_or_else(|error| panic!("{error}"));
            for left in ["library.", "native.", "half."] {
                assert!(!print(&kernel).contains(left), "{}", print(&kernel));
            }
        }
    }

    #[test]
    fn roots_and_quotients_of_f32_are_as_accurate_as_the_kernel_says() {
        let text = |accuracy: &str| {
            format!(
                "hsir 1\nkernel @k(%f: f32, %d: f64, %to: ptr.global f32[] align 4, %wide: ptr.global f64[] align 8) {accuracy}{{\n\
                 %a = sqrt %f\n%b = fdiv %f, %a\n%c = sqrt %d\n%e = sqrt.ftz %f\n%s = fadd %b, %e\nstore %to, %s\n\
                 store %wide, %c\nreturn\n}}\n"
            )
        };
        for (accuracy, root, quotient) in [
            ("", "= sqrt %f", "= fdiv %f"),
            ("accuracy opencl ", "approximate.sqrt %f", "approximate.div %f"),
            (
                "accuracy fast ",
                "approximate.sqrt %f",
                "approximate.div_in_range %f",
            ),
        ] {
            let mut kernel = parse(&text(accuracy), "k.hsir").expect("it is read");
            expand(&mut kernel);
            verify(&kernel).expect("it is right");
            let found = print(&kernel);
            for line in [root, quotient, "= sqrt %d", "= sqrt.ftz %f"] {
                assert!(found.contains(line), "{line}: {found}");
            }
        }
    }
}
