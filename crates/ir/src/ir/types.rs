//! Types and constants of the IR.

use std::fmt;

/// Where a pointer points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Memory of the whole device.
    Global,
    /// Memory of one work-group (SLM).
    Shared,
    /// Memory of one work-item.
    Private,
    /// Any of the three; which one is known only at run time.
    Generic,
}

/// The type of a value. Integers have no sign: signs live in operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// A truth value: bits 0 or 1.
    Bool,
    /// An 8-bit integer.
    I8,
    /// A 16-bit integer.
    I16,
    /// A 32-bit integer.
    I32,
    /// A 64-bit integer.
    I64,
    /// IEEE binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// A 64-bit address in a space.
    Ptr(Space),
    /// The promise of an asynchronous copy; see [`OpKind::Copy`](super::OpKind::Copy).
    Token,
}

impl Type {
    /// Every type, for tests and parsers.
    pub const ALL: [Type; 14] = [
        Type::Bool,
        Type::I8,
        Type::I16,
        Type::I32,
        Type::I64,
        Type::F16,
        Type::Bf16,
        Type::F32,
        Type::F64,
        Type::Ptr(Space::Global),
        Type::Ptr(Space::Shared),
        Type::Ptr(Space::Private),
        Type::Ptr(Space::Generic),
        Type::Token,
    ];

    /// Size in memory, in bytes. A `Bool` takes one byte; a `Token` is never in memory and has none.
    pub const fn bytes(self) -> u32 {
        match self {
            Type::Bool | Type::I8 => 1,
            Type::I16 | Type::F16 | Type::Bf16 => 2,
            Type::I32 | Type::F32 => 4,
            Type::I64 | Type::F64 | Type::Ptr(_) => 8,
            Type::Token => 0,
        }
    }

    /// Number of significant bits in a value of this type. A `Token` counts copies in 64 bits.
    pub const fn bits(self) -> u32 {
        match self {
            Type::Bool => 1,
            Type::Token => 64,
            other => other.bytes() * 8,
        }
    }

    /// The bits a value of this type may have set.
    pub fn mask(self) -> u64 {
        match self.bits() {
            64 => u64::MAX,
            bits => (1 << bits) - 1,
        }
    }

    /// `I8` to `I64`.
    pub fn is_integer(self) -> bool {
        matches!(self, Type::I8 | Type::I16 | Type::I32 | Type::I64)
    }

    /// `F16` to `F64`.
    pub fn is_float(self) -> bool {
        matches!(self, Type::F16 | Type::Bf16 | Type::F32 | Type::F64)
    }

    /// A pointer into any space.
    pub fn is_pointer(self) -> bool {
        matches!(self, Type::Ptr(_))
    }

    /// The space a pointer points into.
    pub fn space(self) -> Option<Space> {
        match self {
            Type::Ptr(space) => Some(space),
            _ => None,
        }
    }

    /// The spelling in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Type::Bool => "bool",
            Type::I8 => "i8",
            Type::I16 => "i16",
            Type::I32 => "i32",
            Type::I64 => "i64",
            Type::F16 => "f16",
            Type::Bf16 => "bf16",
            Type::F32 => "f32",
            Type::F64 => "f64",
            Type::Ptr(Space::Global) => "ptr.global",
            Type::Ptr(Space::Shared) => "ptr.shared",
            Type::Ptr(Space::Private) => "ptr.private",
            Type::Ptr(Space::Generic) => "ptr.generic",
            Type::Token => "token",
        }
    }

    /// The type spelled `name` in the text form.
    pub fn parse(name: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|ty| ty.name() == name)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Private => "private",
            Space::Generic => "generic",
        })
    }
}
