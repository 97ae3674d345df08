//! How operations are declared: a row for each, from which printer, parser and verifier take what they say.
//!
//! [`words!`] declares an enumeration whose variants have a spelling; [`family!`] one of pure operations, with the
//! operands that each takes and the [rules](super::FloatRule) that it can have:
//!
//! ```text
//! family! {
//!     /// Two operands of one type, same type out.
//!     pub enum BinaryOp {
//!         /// Integer, wrapping.
//!         Add = "add": Integer;
//!         /// Float, correctly rounded.
//!         FDiv = "fdiv": Float, rounds F32 F64, flushes F32;
//!     }
//! }
//! ```
//!
//! becomes
//!
//! ```text
//! /// Two operands of one type, same type out.
//! #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
//! pub enum BinaryOp { Add, FDiv }
//!
//! impl BinaryOp {
//!     pub const ALL: &'static [BinaryOp] = &[BinaryOp::Add, BinaryOp::FDiv];
//!     pub fn name(self) -> &'static str { match self { BinaryOp::Add => "add", BinaryOp::FDiv => "fdiv" } }
//!     pub fn parse(name: &str) -> Option<BinaryOp> { … }
//!     pub fn operands(self) -> Operands { match self { BinaryOp::Add => Operands::Integer, … } }
//!     pub fn rules(self) -> Rules { match self { BinaryOp::FDiv => Rules { rounds: &[F32, F64], … }, … } }
//! }
//! ```
//!
//! What is left to write for a new one is its meaning in [`eval`](super::eval), and what each back end makes of it.

use super::rule::{FloatRule, Rounding};
use super::types::Type;

/// Which operands a pure operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// `I8` to `I64`.
    Integer,
    /// Those and `Bool`.
    IntegerOrBool,
    /// Integers and pointers.
    IntegerOrPointer,
    /// Integers, `Bool` and pointers.
    IntegerBoolOrPointer,
    /// `F16` to `F64`.
    Float,
    /// Floats of less than 64 bits.
    F16Bf16OrF32,
    /// The floats that every device has.
    F32OrF64,
    /// `F32`.
    F32,
    /// `I32`.
    I32,
    /// `I64`.
    I64,
}

impl Operands {
    /// Whether a value of this type is one.
    pub fn fit(self, ty: Type) -> bool {
        match self {
            Operands::Integer => ty.is_integer(),
            Operands::IntegerOrBool => ty.is_integer() || ty == Type::Bool,
            Operands::IntegerOrPointer => ty.is_integer() || ty.is_pointer(),
            Operands::IntegerBoolOrPointer => ty.is_integer() || ty.is_pointer() || ty == Type::Bool,
            Operands::Float => ty.is_float(),
            Operands::F16Bf16OrF32 => ty.is_float() && ty != Type::F64,
            Operands::F32OrF64 => matches!(ty, Type::F32 | Type::F64),
            Operands::F32 => ty == Type::F32,
            Operands::I32 => ty == Type::I32,
            Operands::I64 => ty == Type::I64,
        }
    }

    /// What messages call one of them, and several.
    pub fn words(self) -> [&'static str; 2] {
        match self {
            Operands::Integer => ["an integer", "integers"],
            Operands::IntegerOrBool => ["an integer or a bool", "integers or bools"],
            Operands::IntegerOrPointer => ["an integer or a pointer", "integers or pointers"],
            Operands::IntegerBoolOrPointer => ["an integer, bool or pointer", "integers, bools or pointers"],
            Operands::Float => ["a float", "floats"],
            Operands::F16Bf16OrF32 => ["an f16, bf16 or f32", "f16s, bf16s or f32s"],
            Operands::F32OrF64 => ["an f32 or an f64", "f32s or f64s"],
            Operands::F32 => ["an f32", "f32s"],
            Operands::I32 => ["an i32", "i32s"],
            Operands::I64 => ["an i64", "i64s"],
        }
    }
}

/// The operand types for which a float operation can have a rule of its own, as far as some device has that.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// It can be rounded otherwise than to nearest.
    pub rounds: &'static [Type],
    /// It can flush subnormal numbers.
    pub flushes: &'static [Type],
    /// It can be fused with another.
    pub contracts: &'static [Type],
    /// No device has it without flushing.
    pub flushes_always: &'static [Type],
}

impl Rules {
    /// What a rule asks of an operation on this type that it cannot have; nothing if it can have the rule.
    pub fn refused(&self, rule: FloatRule, ty: Type) -> Option<&'static str> {
        let asked = [
            (
                rule.rounding != Rounding::Nearest,
                self.rounds,
                "be rounded otherwise",
            ),
            (rule.flush, self.flushes, "flush subnormal numbers"),
            (rule.contract, self.contracts, "be fused with another"),
        ];
        let refused = asked
            .into_iter()
            .find(|(is, types, _)| *is && !types.contains(&ty));
        refused.map(|(.., what)| what)
    }
}

/// An enumeration whose variants have a spelling; see the [module](self).
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// Every variant, in the order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The spelling in the text form.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// The variant spelled `name` in the text form.
            pub fn parse(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)+ _ => None }
            }
        }
    };
}

/// A family of pure operations; see the [module](self).
macro_rules! family {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(
                $(#[$doc:meta])*
                $variant:ident = $text:literal : $operands:ident $(, $rule:ident $($ty:ident)+)*;
            )+
        }
    ) => {
        $crate::ir::table::words! {
            $(#[$meta])*
            pub enum $name { $($(#[$doc])* $variant = $text),+ }
        }

        impl $name {
            /// Which operands it takes.
            pub fn operands(self) -> $crate::ir::table::Operands {
                match self { $($name::$variant => $crate::ir::table::Operands::$operands),+ }
            }

            /// Which rules of rounding it can have.
            pub fn rules(self) -> $crate::ir::table::Rules {
                match self {
                    $(
                        $name::$variant => $crate::ir::table::Rules {
                            $($rule: &[$($crate::ir::Type::$ty),+],)*
                            ..$crate::ir::table::Rules::default()
                        },
                    )+
                }
            }
        }
    };
}

pub(super) use {family, words};
