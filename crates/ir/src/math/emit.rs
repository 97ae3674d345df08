//! Expansions appended to a kernel as IR operations.

use std::cell::RefCell;

use crate::ir::{
    self, BinaryOp, Builder, CompareOp, ConvertOp, LoopWishes, OpKind, Region, UnaryOp, UnrollWish,
};

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

    /// A region of the operations that `write` appends, ended by the terminator that it returns.
    fn region(self, write: impl FnOnce() -> OpKind) -> Region {
        let before = self.0.borrow_mut().begin_region();
        let terminator = write();
        let mut builder = self.0.borrow_mut();
        builder.push(terminator, &[]);
        builder.end_region(before)
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

    fn when<T: Scalar, const N: usize>(
        self,
        condition: ir::Value,
        then: impl FnOnce() -> [ir::Value; N],
        otherwise: impl FnOnce() -> [ir::Value; N],
    ) -> [ir::Value; N] {
        let label = self.0.borrow_mut().kernel.label(None, vec![T::TYPE; N]);
        let then = self.region(|| OpKind::Break(label, then().to_vec()));
        let otherwise = self.region(|| OpKind::Break(label, otherwise().to_vec()));
        let kind = OpKind::if_(label, condition, then, otherwise);
        let results = self.0.borrow_mut().push(kind, &[T::TYPE; N]);
        std::array::from_fn(|index| results[index])
    }

    fn repeat_while<T: Scalar>(
        self,
        value: ir::Value,
        condition: impl Fn(ir::Value) -> ir::Value,
        step: impl Fn(ir::Value) -> ir::Value,
    ) -> ir::Value {
        // loop: if condition { continue step } else { break }
        let (label, param) = {
            let kernel = &mut self.0.borrow_mut().kernel;
            (kernel.label(None, vec![T::TYPE]), kernel.value(T::TYPE))
        };
        let body = self.region(|| {
            let cond = condition(param);
            let inner = self.0.borrow_mut().kernel.label(None, Vec::new());
            let then = self.region(|| OpKind::Continue(label, vec![step(param)]));
            let otherwise = self.region(|| OpKind::Break(inner, Vec::new()));
            let kind = OpKind::if_(inner, cond, then, otherwise);
            self.0.borrow_mut().push(kind, &[]);
            OpKind::Break(label, vec![param])
        });
        let wishes = LoopWishes {
            unroll: Some(UnrollWish::Keep),
            plan: None,
        };
        let kind = OpKind::Loop {
            label,
            params: vec![param],
            initial: vec![value],
            body,
            wishes,
        };
        self.0.borrow_mut().push(kind, &[T::TYPE])[0]
    }

    fn convert<S: Scalar, T: Scalar>(self, op: ConvertOp, a: ir::Value) -> ir::Value {
        self.0.borrow_mut().convert(op, T::TYPE, a)
    }
}
