//! Functions of a device's own library, for devices that are not reached by it.
//!
//! Before: `%y = library.exp %x`. After: what [`math`](crate::math) makes of it. OpenCL's devices have these functions and keep
//! them; here the kernel gets ones of about the same cost, within a few units in the last place of theirs.

use std::collections::HashMap;

use crate::ir::{BinaryOp, Builder, Kernel, Op, OpKind, Region, Type, UnaryOp, Value};
use crate::math::Function;

/// Writes out every function of a library. The kernel stays verified.
pub fn expand(kernel: &mut Kernel) {
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
    match op.kind {
        OpKind::Unary(UnaryOp::LibraryRsqrt, x) => {
            let root = b.unary(UnaryOp::Sqrt, x);
            let one = number(b, root, 1.0);
            b.binary(BinaryOp::FDiv, one, root)
        }
        OpKind::Unary(UnaryOp::LibraryExp10, x) => {
            let ten = number(b, x, 10.0);
            Function::Pow.emit(b, &[ten, x])
        }
        OpKind::Unary(op, x) => function(op).emit(b, &[x]),
        OpKind::Binary(BinaryOp::LibraryPow, x, y) => Function::Pow.emit(b, &[x, y]),
        OpKind::Binary(BinaryOp::LibraryAtan2, x, y) => Function::Atan2.emit(b, &[x, y]),
        OpKind::Binary(_, x, y) => Function::Hypot.emit(b, &[x, y]),
        _ => unreachable!("only functions of a library come here"),
    }
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
        UnaryOp::LibrarySin => Function::Sin,
        UnaryOp::LibraryCos => Function::Cos,
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
        for ty in ["f32", "f64"] {
            let mut text = format!("hsir 1\nkernel @k(%p: ptr.global {ty}[] align 8, %v0: {ty}) {{\n");
            let (unary, binary) = (UnaryOp::ALL.iter(), BinaryOp::ALL.iter());
            let unary = unary
                .filter(|op| **op >= UnaryOp::LibraryExp)
                .map(|op| (op.name(), 1));
            let binary = binary
                .filter(|op| **op >= BinaryOp::LibraryPow)
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
            assert!(!print(&kernel).contains("library."), "{}", print(&kernel));
        }
    }
}
