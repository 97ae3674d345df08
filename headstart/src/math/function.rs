//! The functions by name, for fronts.

use std::cell::RefCell;

use crate::ir::{Builder, Type, Value};

use super::{Arithmetic, Emit, HostNumber, Number, exp, log};

/// A transcendental function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// e to the power of the argument.
    Exp,
    /// The natural logarithm.
    Log,
}

impl Function {
    /// Every function.
    pub const ALL: &'static [Function] = &[Function::Exp, Function::Log];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Function::Exp => "exp",
            Function::Log => "log",
        }
    }

    /// How many arguments it takes.
    pub fn arguments(self) -> usize {
        match self {
            Function::Exp | Function::Log => 1,
        }
    }

    /// Appends the function of `arguments`: [`Function::arguments`] values, all `F32` or all `F64`. The
    /// result has the same type.
    pub fn emit(self, builder: &mut Builder<'_>, arguments: &[Value]) -> Value {
        let ty = builder.kernel.ty(arguments[0]);
        let cell = RefCell::new(builder);
        let emit = Emit::new(&cell);
        match ty {
            Type::F32 => self.expand_f32(|index| emit.number(arguments[index])).raw(),
            _ => self.expand_f64(|index| emit.number(arguments[index])).raw(),
        }
    }

    /// The value in single precision, to the bit what a kernel computes.
    pub fn f32(self, arguments: &[f32]) -> f32 {
        self.expand_f32(|index| HostNumber::on_host(arguments[index]))
            .raw()
    }

    /// The value in double precision, to the bit what a kernel computes.
    pub fn f64(self, arguments: &[f64]) -> f64 {
        self.expand_f64(|index| HostNumber::on_host(arguments[index]))
            .raw()
    }

    fn expand_f32<A: Arithmetic>(self, argument: impl Fn(usize) -> Number<A, f32>) -> Number<A, f32> {
        match self {
            Function::Exp => exp::f32(argument(0)),
            Function::Log => log::f32(argument(0)),
        }
    }

    fn expand_f64<A: Arithmetic>(self, argument: impl Fn(usize) -> Number<A, f64>) -> Number<A, f64> {
        match self {
            Function::Exp => exp::f64(argument(0)),
            Function::Log => log::f64(argument(0)),
        }
    }
}
