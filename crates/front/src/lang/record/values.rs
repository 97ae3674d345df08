//! Recorded values, and variables that hold them.

use std::marker::PhantomData;

use super::state::recorder;
use super::tree::VariableId;
use crate::ir::{Type, Value};
use crate::lang::data::{self, Data};
use crate::lang::scalar::Scalar;

/// The type of a value in a register.
pub(crate) trait Register {
    /// Its type in the IR.
    const TYPE: Type;
}

impl<T: Scalar> Register for T {
    const TYPE: Type = T::TYPE;
}

/// A scalar value of the kernel that is being recorded.
#[derive(Debug)]
pub struct Recorded<T> {
    /// Its value in the IR, or the result of a read that construction will replace.
    pub(super) value: Value,
    scalar: PhantomData<fn() -> T>,
}

impl<T> Recorded<T> {
    /// The IR value as a `T`.
    pub(in crate::lang) fn new(value: Value) -> Recorded<T> {
        Recorded {
            value,
            scalar: PhantomData,
        }
    }
}

impl<T> Clone for Recorded<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Recorded<T> {}

/// The value of an expression: a scalar, nothing, a tuple, a vector, a struct.
pub trait Values: Copy {
    /// Appends the types of the scalars in it.
    fn types(types: &mut Vec<Type>);

    /// Appends the scalars in it.
    fn parts(self, parts: &mut Vec<Value>);

    /// Puts one together from its scalars.
    fn from_parts(parts: &mut dyn Iterator<Item = Value>) -> Self;
}

impl<T: Register> Values for Recorded<T> {
    fn types(types: &mut Vec<Type>) {
        types.push(T::TYPE);
    }

    fn parts(self, parts: &mut Vec<Value>) {
        parts.push(self.value);
    }

    fn from_parts(parts: &mut dyn Iterator<Item = Value>) -> Self {
        Recorded::new(parts.next().expect("there are as many parts as types"))
    }
}

impl Values for () {
    fn types(_: &mut Vec<Type>) {}

    fn parts(self, _: &mut Vec<Value>) {}

    fn from_parts(_: &mut dyn Iterator<Item = Value>) -> Self {}
}

impl<V: Values, const N: usize> Values for [V; N] {
    fn types(types: &mut Vec<Type>) {
        for _ in 0..N {
            V::types(types);
        }
    }

    fn parts(self, parts: &mut Vec<Value>) {
        for part in self {
            part.parts(parts);
        }
    }

    fn from_parts(parts: &mut dyn Iterator<Item = Value>) -> Self {
        std::array::from_fn(|_| V::from_parts(parts))
    }
}

macro_rules! tuples {
    ($(($($part:ident),+))+) => {$(
        impl<$($part: Values),+> Values for ($($part,)+) {
            fn types(types: &mut Vec<Type>) {
                $($part::types(types);)+
            }

            fn parts(self, parts: &mut Vec<Value>) {
                #[allow(non_snake_case, reason = "each part's variable is named as its type")]
                let ($($part,)+) = self;
                $($part.parts(parts);)+
            }

            fn from_parts(parts: &mut dyn Iterator<Item = Value>) -> Self {
                ($($part::from_parts(parts),)+)
            }
        }
    )+};
}

tuples! { (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) }

/// A variable: one of the IR's for each scalar of its type.
#[derive(Debug)]
pub struct Variable<V> {
    /// The variable of its first scalar; the others follow.
    pub(super) first: VariableId,
    values: PhantomData<fn() -> V>,
}

impl<V> Clone for Variable<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Variable<V> {}

impl<V: Values> Variable<V> {
    /// A variable of this name without a value.
    pub(super) fn declare(name: &str) -> Variable<V> {
        let types = types_of::<V>();
        let first = recorder(|recorder| {
            let first = recorder.variables.len();
            for ty in types {
                recorder.variable(ty, Some(name));
            }
            first
        });
        Variable {
            first,
            values: PhantomData,
        }
    }

    /// Assigns.
    pub(super) fn write(self, value: V) {
        let mut parts = Vec::new();
        value.parts(&mut parts);
        recorder(|recorder| {
            for (variable, part) in (self.first..).zip(parts) {
                recorder.write(variable, part);
            }
        });
    }

    /// Reads.
    pub(super) fn read(self) -> V {
        let count = types_of::<V>().len();
        let parts: Vec<Value> = recorder(|recorder| {
            (self.first..self.first + count)
                .map(|variable| recorder.read(variable))
                .collect()
        });
        V::from_parts(&mut parts.into_iter())
    }
}

fn types_of<V: Values>() -> Vec<Type> {
    let mut types = Vec::new();
    V::types(&mut types);
    types
}

/// A number or truth value that is known when the kernel is built.
pub fn literal<T: Scalar>(value: T) -> Recorded<T> {
    let bits = value.to_bits();
    Recorded::new(recorder(|recorder| recorder.kernel.constant(T::TYPE, bits)))
}

/// A constant of the program, of any type that a kernel has.
pub fn constant<T: Data>(value: T) -> T::Recorded {
    let parts: Vec<Value> = data::scalars(&value)
        .into_iter()
        .map(|(ty, bits)| recorder(|recorder| recorder.kernel.constant(ty, bits)))
        .collect();
    T::Recorded::from_parts(&mut parts.into_iter())
}

/// Says the type of a value: `f32::sqrt(x)`.
pub fn of_type<T>(value: Recorded<T>) -> Recorded<T> {
    value
}

/// `let name = value;`
pub fn named<V: Values>(name: &str, value: V) -> V {
    let mut parts = Vec::new();
    value.parts(&mut parts);
    if let [part] = parts[..] {
        recorder(|recorder| {
            let data = &mut recorder.kernel.values[part];
            if data.name.is_none() && data.constant.is_none() {
                data.name = Some(name.to_owned());
            }
        });
    }
    value
}

/// `let mut name = value;`
pub fn variable<V: Values>(name: &str, value: V) -> Variable<V> {
    let variable = Variable::declare(name);
    variable.write(value);
    variable
}

/// `let name;`
pub fn declared<V: Values>(name: &str) -> Variable<V> {
    Variable::declare(name)
}

/// Reads a variable.
pub fn get<V: Values>(variable: Variable<V>) -> V {
    variable.read()
}

/// Assigns to a variable.
pub fn set<V: Values>(variable: Variable<V>, value: V) {
    variable.write(value);
}

/// The value of an expression that never completes. It is never used.
pub fn absent<V: Values>() -> V {
    let parts: Vec<Value> = recorder(|recorder| {
        types_of::<V>()
            .into_iter()
            .map(|ty| recorder.kernel.constant(ty, 0))
            .collect()
    });
    V::from_parts(&mut parts.into_iter())
}
