//! Expansions appended to a kernel as IR operations.

use std::cell::RefCell;

use crate::ir::{self, BinaryOp, Builder, CompareOp, ConvertOp, UnaryOp};

use super::arithmetic::{Arithmetic, Float, Number, Scalar};

/// Appends each operation to a builder's region. A copy appends to the same one.
pub struct Emit<'e, 'b, 'k>(&'e RefCell<&'b mut Builder<'k>>);

impl Clone for Emit<'_, '_, '_> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Copy for Emit<'_, '_, '_> {}

impl<'e, 'b, 'k> Emit<'e, 'b, 'k> {
    /// Appends to the builder in the cell.
    pub fn new(builder: &'e RefCell<&'b mut Builder<'k>>) -> Self {
        Emit(builder)
    }

    /// A value of the kernel, whose type must be `T`'s, as a number.
    pub fn number<T: Scalar>(self, value: ir::Value) -> Number<Self, T> {
        Number::new(self, value)
    }
}

impl Arithmetic for Emit<'_, '_, '_> {
    type Raw<T: Scalar> = ir::Value;

    fn constant<T: Scalar>(self, value: T) -> ir::Value {
        self.0.borrow_mut().constant(T::TYPE, value.to_bits64())
    }

    fn unary<T: Scalar>(self, op: UnaryOp, a: ir::Value) -> ir::Value {
        self.0.borrow_mut().unary(op, a)
    }

    fn binary<T: Scalar>(self, op: BinaryOp, a: ir::Value, b: ir::Value) -> ir::Value {
        self.0.borrow_mut().binary(op, a, b)
    }

    fn fma<T: Float>(self, a: ir::Value, b: ir::Value, c: ir::Value) -> ir::Value {
        self.0.borrow_mut().fma(a, b, c)
    }

    fn compare<T: Scalar>(self, op: CompareOp, a: ir::Value, b: ir::Value) -> ir::Value {
        self.0.borrow_mut().compare(op, a, b)
    }

    fn select<T: Scalar>(self, condition: ir::Value, a: ir::Value, b: ir::Value) -> ir::Value {
        self.0.borrow_mut().select(condition, a, b)
    }

    fn convert<S: Scalar, T: Scalar>(self, op: ConvertOp, a: ir::Value) -> ir::Value {
        self.0.borrow_mut().convert(op, T::TYPE, a)
    }
}
