//! Numbers and pointers.

use super::Translator;
use crate::ir::{
    BinaryOp, Builder, CacheUse, ConvertOp, Id, LoadData, NoWrapOp, OpKind, PlaceData, Space, Type, Value,
    Wrap,
};
use crate::source::tree::{Access, Arithmetic, Expr, Local, Pointer, Scalar};

impl Translator<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Value {
        let ty = self.program.type_of(expr);
        match expr {
            Expr::Number(ty, bits) => self.kernel.constant(ty.ir(), *bits),
            Expr::Variable(local) => self.read(*local),
            Expr::Parameter(number) => self.scalars[*number],
            Expr::Group => self.build(|b| b.id(Id::Group(0))),
            Expr::Item => self.item.unwrap_or_else(|| self.kernel.constant(Type::I32, 0)),
            Expr::Binary(op, ty, left, right) => {
                let (left, right) = (self.expr(left), self.expr(right));
                self.arithmetic(*op, *ty, left, right)
            }
            Expr::Cast(to, inner) => {
                let from = self.program.type_of(inner);
                let inner = self.expr(inner);
                self.build(|b| cast(b, from, *to, inner))
            }
            Expr::Choose(condition, then, otherwise) => {
                let variable = self.temporary(ty.ir());
                let cond = self.truth(condition);
                let writing = |expr: &Expr| {
                    let expr = expr.clone();
                    move |translator: &mut Self| {
                        let value = translator.expr(&expr);
                        translator.write(variable, value);
                    }
                };
                self.branch(cond, writing(then), writing(otherwise));
                self.read(variable)
            }
            Expr::Load(pointer, index, access) => {
                let name = self.array_name(pointer);
                let at = self.address(pointer, index);
                self.lines += 1;
                let place = self.kernel.places.push(PlaceData {
                    file: "source.c".to_owned(),
                    line: self.lines,
                    column: 1,
                    inlined_at: None,
                });
                let id = self.kernel.loads.push(LoadData {
                    name,
                    place,
                    constant: *access == Access::Constant,
                });
                let cache = match access {
                    Access::Volatile => CacheUse::Volatile,
                    Access::Plain | Access::Constant => CacheUse::Default,
                };
                let kind = OpKind::Load { ptr: at, id, cache };
                self.build_at(place, |b| b.push(kind, &[ty.ir()])[0])
            }
            Expr::Step(local, up, after) => {
                let old = self.read(*local);
                let one = self.kernel.constant(ty.ir(), 1);
                let op = if *up { Arithmetic::Add } else { Arithmetic::Sub };
                let new = self.arithmetic(op, ty, old, one);
                self.write(*local, new);
                if *after { new } else { old }
            }
        }
    }

    pub(super) fn arithmetic(&mut self, op: Arithmetic, ty: Scalar, left: Value, right: Value) -> Value {
        let promises = self.style.promises && matches!(ty, Scalar::I32 | Scalar::I64);
        // As C has it: in an `int`, and back.
        if ty.is_narrow() && !self.style.narrow {
            return self.build(|b| {
                let (left, right) = (cast(b, ty, Scalar::I32, left), cast(b, ty, Scalar::I32, right));
                let wide = b.binary(operation(op, Scalar::I32), left, right);
                cast(b, Scalar::I32, ty, wide)
            });
        }
        self.build(|b| match op {
            Arithmetic::Add if promises => b.no_wrap(NoWrapOp::Add, Wrap::NotSigned, left, right),
            Arithmetic::Sub if promises => b.no_wrap(NoWrapOp::Sub, Wrap::NotSigned, left, right),
            Arithmetic::Mul if promises => b.no_wrap(NoWrapOp::Mul, Wrap::NotSigned, left, right),
            _ => b.binary(operation(op, ty), left, right),
        })
    }

    /// What plans call the array that a pointer is made from.
    pub(super) fn array_name(&self, pointer: &Pointer) -> String {
        let array = match pointer {
            Pointer::Array(array) => *array,
            Pointer::Variable(local) | Pointer::Step(local, ..) => match self.program.locals[*local] {
                Local::Pointer(_, array) => array,
                Local::Number(_) => 0,
            },
            Pointer::Moved(inner, _) | Pointer::Choose(_, inner, _) | Pointer::Across(_, inner) => {
                return self.array_name(inner);
            }
        };
        self.program.arrays[array].name.to_owned()
    }

    pub(super) fn pointer(&mut self, pointer: &Pointer) -> Value {
        let size = self.program.element_of(pointer).ir().bytes();
        match pointer {
            Pointer::Array(array) => self.arrays[*array],
            Pointer::Variable(local) => self.read(*local),
            Pointer::Moved(inner, index) => self.address(inner, index),
            Pointer::Choose(condition, one, other) => {
                let variable = self.temporary(Type::Ptr(Space::Global));
                let cond = self.truth(condition);
                let writing = |pointer: &Pointer| {
                    let pointer = pointer.clone();
                    move |translator: &mut Self| {
                        let value = translator.pointer(&pointer);
                        translator.write(variable, value);
                    }
                };
                self.branch(cond, writing(one), writing(other));
                self.read(variable)
            }
            Pointer::Across(from, to) => {
                let (from, to) = (self.pointer(from), self.pointer(to));
                self.build(|b| {
                    let numbers = [from, to].map(|pointer| b.convert(ConvertOp::Bits, Type::I64, pointer));
                    let difference = b.sub(numbers[1], numbers[0]);
                    b.address(from, difference, 1, 0)
                })
            }
            Pointer::Step(local, by, after) => {
                let old = self.read(*local);
                let bytes = by * i64::from(size);
                let new = self.build(|b| {
                    let zero = b.i64(0);
                    b.address(old, zero, 1, bytes)
                });
                self.write(*local, new);
                if *after { new } else { old }
            }
        }
    }

    pub(super) fn address(&mut self, pointer: &Pointer, index: &Expr) -> Value {
        let size = self.program.element_of(pointer).ir().bytes();
        let base = self.pointer(pointer);
        let ty = self.program.type_of(index);
        let index = self.expr(index);
        self.build(|b| {
            let wide = if ty.is_signed() { Scalar::I64 } else { Scalar::U64 };
            let index = cast(b, ty, wide, index);
            b.address(base, index, size, 0)
        })
    }
}

pub(super) fn operation(op: Arithmetic, ty: Scalar) -> BinaryOp {
    let signed = ty.is_signed();
    match (op, ty) {
        (Arithmetic::Add, Scalar::F32) => BinaryOp::FAdd,
        (Arithmetic::Sub, Scalar::F32) => BinaryOp::FSub,
        (Arithmetic::Mul, Scalar::F32) => BinaryOp::FMul,
        (Arithmetic::Add, _) => BinaryOp::Add,
        (Arithmetic::Sub, _) => BinaryOp::Sub,
        (Arithmetic::Mul, _) => BinaryOp::Mul,
        (Arithmetic::Div, _) if signed => BinaryOp::DivS,
        (Arithmetic::Div, _) => BinaryOp::DivU,
        (Arithmetic::Rem, _) if signed => BinaryOp::RemS,
        (Arithmetic::Rem, _) => BinaryOp::RemU,
        (Arithmetic::And, _) => BinaryOp::And,
        (Arithmetic::Or, _) => BinaryOp::Or,
        (Arithmetic::Xor, _) => BinaryOp::Xor,
        (Arithmetic::Shl, _) => BinaryOp::Shl,
        (Arithmetic::Shr, _) if signed => BinaryOp::ShrS,
        (Arithmetic::Shr, _) => BinaryOp::ShrU,
    }
}

pub(super) fn cast(b: &mut Builder<'_>, from: Scalar, to: Scalar, value: Value) -> Value {
    let (from_bits, to_bits) = (from.ir().bits(), to.ir().bits());
    if to == Scalar::F32 && from != Scalar::F32 {
        let op = match from.is_signed() {
            true => ConvertOp::SignedToFloat,
            false => ConvertOp::UnsignedToFloat,
        };
        return b.convert(op, Type::F32, value);
    }
    let op = match (from_bits < to_bits, from.is_signed()) {
        _ if from_bits == to_bits => return value,
        (true, true) => ConvertOp::ExtendS,
        (true, false) => ConvertOp::ExtendU,
        (false, _) => ConvertOp::Truncate,
    };
    b.convert(op, to.ir(), value)
}
