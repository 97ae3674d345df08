//! Declaration of operations: one row each, which printer, parser and verifier read. The rows of [`OpKind`](super::OpKind) are in
//! [`rows`](super::rows).
//!
//! [`operations!`] declares [`OpKind`](super::OpKind), [`family!`] the pure operations of one type, [`words!`] an enumeration whose variants have a spelling.
//!
//! # Families
//!
//! A row has the spelling, the operands, and the [rules](super::FloatRule) that the operation can have:
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
//! A new operation further needs its meaning in [`eval`](super::eval), and its lowering in each back end.
//!
//! # Operations
//!
//! A row has the operation's fields, its [`OpClass`], its [effects](super::effects), and its text form: the word that it starts
//! with, then its fields and further words in the order in which they are written. Pure operations and structures have no
//! effects; a row of the class `Effect` without them does not compile. Operands are separated by commas;
//! [`Spelled`](super::text::Spelled) says how each field is written and read.
//!
//! ```text
//! operations! {
//!     pub enum OpKind {
//!         /// `a × b + c` rounded once.
//!         Fma(a: Value, b: Value, c: Value) = Pure ["fma" a b c];
//!         /// Starts an asynchronous copy.
//!         Copy { to: Value, from: Value, bytes: u32, id: LoadId }
//!             = Effect(Effects { reads: Memory::At(*from), writes: Memory::At(*to), ..Effects::NONE })
//!             ["copy" bytes "to" to "from" from id];
//!         /// Reads consecutive values.
//!         Load { ptr: Value, id: LoadId, cache: CacheUse } = Effect(Effects::load(*ptr, *cache)) [by_hand "load"];
//!     }
//! }
//! ```
//!
//! becomes
//!
//! ```text
//! pub enum OpKind { Fma(Value, Value, Value), Copy { to: Value, … }, Load { … } }
//!
//! impl OpKind {
//!     fn class(&self) -> OpClass { match self { OpKind::Fma(..) => OpClass::Pure, … } }
//!     fn effects(&self) -> Effects { match self { OpKind::Fma(..) => Effects::NONE, … } }
//!     /// Calls `visit` on each field that holds operands, in the order of the fields.
//!     fn visit_fields(&self, visit: &mut dyn FnMut(Value)) { … }
//!     fn map_fields(&mut self, map: &mut dyn FnMut(Value) -> Value) { … }
//! }
//! ```
//!
//! [`text`](super::text) makes their text form of the same rows.

use super::rule::{FloatRule, Rounding};
use super::types::Type;

/// The properties of an operation for passes that do not know it by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpClass {
    /// No effect, and the result depends on the operands and the work-item's identity alone: may be repeated, moved or
    /// removed.
    Pure,
    /// Has [effects](super::effects), or knows of copies in flight.
    Effect,
    /// Has regions.
    Structure,
    /// Ends a region.
    Terminator,
}

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
    /// Those and `F16`.
    F16F32OrF64,
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
            Operands::F16F32OrF64 => matches!(ty, Type::F16 | Type::F32 | Type::F64),
            Operands::F32 => ty == Type::F32,
            Operands::I32 => ty == Type::I32,
            Operands::I64 => ty == Type::I64,
        }
    }

    /// The words for one of them, and several, in messages.
    pub(crate) fn words(self) -> [&'static str; 2] {
        match self {
            Operands::Integer => ["an integer", "integers"],
            Operands::IntegerOrBool => ["an integer or a bool", "integers or bools"],
            Operands::IntegerOrPointer => ["an integer or a pointer", "integers or pointers"],
            Operands::IntegerBoolOrPointer => ["an integer, bool or pointer", "integers, bools or pointers"],
            Operands::Float => ["a float", "floats"],
            Operands::F16Bf16OrF32 => ["an f16, bf16 or f32", "f16s, bf16s or f32s"],
            Operands::F32OrF64 => ["an f32 or an f64", "f32s or f64s"],
            Operands::F16F32OrF64 => ["an f16, f32 or f64", "f16s, f32s or f64s"],
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
    pub(crate) contracts: &'static [Type],
    /// No device has it without flushing.
    pub(crate) flushes_always: &'static [Type],
}

impl Rules {
    /// The part of a rule that an operation on this type cannot have; none if it can have the rule.
    pub(crate) fn refused(&self, rule: FloatRule, ty: Type) -> Option<&'static str> {
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

/// An enumeration whose variants have a spelling. The word for one of them in messages may follow its name; then it can be a
/// field of a row of [`operations!`].
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident $(: $what:literal)? {
            $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)?
        }
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

        $(
            impl $name {
                /// One of them, in messages.
                pub(super) const WHAT: &'static str = $what;
            }
        )?
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

/// The operations; see the [module](self).
macro_rules! operations {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(
                $(#[$doc:meta])*
                $variant:ident
                $(( $($at:ident : $at_ty:ty),+ ))?
                $({ $($(#[$field_doc:meta])* $field:ident : $field_ty:ty),+ $(,)? })?
                = $class:ident $(($effects:expr))? [$($piece:tt)+]
            );+ $(;)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $($(#[$doc])* $variant $(( $($at_ty),+ ))? $({ $($(#[$field_doc])* $field: $field_ty),+ })?),+
        }

        #[allow(unused_variables, reason = "the fields of what is written by hand")]
        impl $name {
            /// Its properties for passes.
            pub fn class(&self) -> OpClass {
                match self { $($name::$variant { .. } => OpClass::$class),+ }
            }

            /// What it does besides computing its results.
            #[doc(hidden)]
            pub fn effects(&self) -> Effects {
                match self {
                    $(
                        $name::$variant $(( $($at),+ ))? $({ $($field),+ })? => effects_of!($class $($effects)?)
                    ),+
                }
            }

            /// Calls `visit` on each operand in its fields.
            fn visit_fields(&self, visit: &mut dyn FnMut(Value)) {
                match self {
                    $(
                        $name::$variant $(( $($at),+ ))? $({ $($field),+ })? => {
                            $($(Field::visit($at, visit);)+)?
                            $($(Field::visit($field, visit);)+)?
                        }
                    )+
                }
            }

            /// Replaces each operand in its fields.
            fn map_fields(&mut self, map: &mut dyn FnMut(Value) -> Value) {
                match self {
                    $(
                        $name::$variant $(( $($at),+ ))? $({ $($field),+ })? => {
                            $($(Field::map($at, map);)+)?
                            $($(Field::map($field, map);)+)?
                        }
                    )+
                }
            }
        }
    };
}

/// The effects that a row of [`operations!`] states. None need not be stated where the class says so.
macro_rules! effects_of {
    (Pure) => {
        Effects::NONE
    };
    (Structure) => {
        Effects::NONE
    };
    (Terminator) => {
        Effects::NONE
    };
    (Terminator $effects:expr) => {
        $effects
    };
    (Effect $effects:expr) => {
        $effects
    };
}

pub(super) use {effects_of, family, operations, words};
