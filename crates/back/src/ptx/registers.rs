//! Virtual registers: PTX has as many as one likes, of a few types, and the driver's compiler allocates
//! the real ones.
//!
//! A value with a name in the source gives its register that name, followed by the value's number, so that no register can be
//! mistaken for one of PTX's own (`%tid`, `%clock`). Others are numbered by type as NVIDIA's compilers number them: `%r`,
//! `%rd`, `%f`, `%fd`, `%p`, `%h`.

use std::fmt::Write;

use crate::ir::{Space, Type};

/// The type of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    Predicate,
    B16,
    B32,
    B64,
    F32,
    F64,
}

impl Class {
    const ALL: [Class; 6] = [
        Class::Predicate,
        Class::B16,
        Class::B32,
        Class::B64,
        Class::F32,
        Class::F64,
    ];

    /// The register that holds a value of this type. Narrow integers are kept zero-extended in 32 bits;
    /// shared and private addresses have 32 bits, as in hardware. A token has none.
    pub(super) fn of(ty: Type) -> Option<Class> {
        Some(match ty {
            Type::Bool => Class::Predicate,
            Type::I8 | Type::I16 | Type::I32 => Class::B32,
            Type::Ptr(Space::Shared | Space::Private) => Class::B32,
            Type::I64 | Type::Ptr(Space::Global | Space::Generic) => Class::B64,
            Type::F16 | Type::Bf16 => Class::B16,
            Type::F32 => Class::F32,
            Type::F64 => Class::F64,
            Type::Token => return None,
        })
    }

    /// How unnamed registers start.
    fn prefix(self) -> &'static str {
        match self {
            Class::Predicate => "p",
            Class::B16 => "h",
            Class::B32 => "r",
            Class::B64 => "rd",
            Class::F32 => "f",
            Class::F64 => "fd",
        }
    }

    /// The type in a `.reg` directive, a `mov` or a `selp`.
    pub(super) fn ptx(self) -> &'static str {
        match self {
            Class::Predicate => "pred",
            Class::B16 => "b16",
            Class::B32 => "b32",
            Class::B64 => "b64",
            Class::F32 => "f32",
            Class::F64 => "f64",
        }
    }

    /// A constant of it: 0.
    pub(super) fn zero(self) -> &'static str {
        match self {
            Class::F32 => "0f00000000",
            Class::F64 => "0d0000000000000000",
            _ => "0",
        }
    }
}

/// The registers of one kernel.
#[derive(Debug, Default)]
pub(super) struct Registers {
    /// What all names begin with, behind the percent sign.
    pub(super) stem: String,
    counts: [u32; 6],
    named: Vec<(Class, String)>,
}

impl Registers {
    /// A new register without a name.
    pub(super) fn fresh(&mut self, class: Class) -> String {
        let count = &mut self.counts[class as usize];
        *count += 1;
        format!("%{}{}{count}", self.stem, class.prefix())
    }

    /// A new register for the value of this number with this name.
    pub(super) fn named(&mut self, class: Class, name: &str, number: u32) -> String {
        let register = format!("%{}{}_{number}", self.stem, identifier(name));
        self.named.push((class, register.clone()));
        register
    }

    /// The declarations, in lines of at most 100 columns.
    pub(super) fn declarations(&self) -> String {
        let mut text = String::new();
        for class in Class::ALL {
            let count = self.counts[class as usize];
            if count > 0 {
                let name = format!("%{}{}", self.stem, class.prefix());
                let _ = writeln!(text, "\t.reg .{} {name}<{}>;", class.ptx(), count + 1);
            }
            let names: Vec<&str> = self
                .named
                .iter()
                .filter(|(own, _)| *own == class)
                .map(|(_, name)| name.as_str())
                .collect();
            let mut line = String::new();
            for name in names {
                if line.len() + name.len() > 80 {
                    let _ = writeln!(text, "\t.reg .{} {line};", class.ptx());
                    line.clear();
                }
                let separator = if line.is_empty() { "" } else { ", " };
                let _ = write!(line, "{separator}{name}");
            }
            if !line.is_empty() {
                let _ = writeln!(text, "\t.reg .{} {line};", class.ptx());
            }
        }
        text
    }
}

/// The name with everything replaced that PTX does not take in an identifier.
pub(super) fn identifier(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '_'
            }
        })
        .collect()
}
