//! The text form of operations, from their [rows](super::rows): how each is written and read.
//!
//! ```text
//! Fma(a: Value, b: Value, c: Value) = Pure ["fma" a b c];        fma %a, %b, %c
//! Copy { … } = … ["copy" bytes "to" to "from" from id];          copy 16 to %slot from %ptr, @values
//! ```
//!
//! `by_hand` is for the few whose text form has options; `print/operation.rs` and `parse/operation.rs` have those.

use super::hint::{CacheUse, PrefetchScope};
use super::kernel::{Array, LoadId, Value};
use super::op::{Dependency, OpKind};
use super::opaque::{Opaque, OpaqueOperands, Touches};
use super::parse::Parser;
use super::print::Printer;
use super::rows::with_operations;
use super::rule::FloatRule;
use super::together::{AtomicOp, GroupVoteOp, MemoryOrder, MemoryScope, ReduceOp, ShuffleOp, VoteOp};
use crate::error::Result;

/// A field with a text form of its own. `first` is whether no operand came before, so that no comma is wanted.
pub(super) trait Spelled: Sized {
    /// Writes it, with the separator from the text before.
    fn write(&self, out: &mut Printer<'_>, first: &mut bool);

    /// Reads the output of [`write`](Spelled::write).
    ///
    /// # Errors
    /// Something else is there.
    fn read(parser: &mut Parser<'_>, first: &mut bool) -> Result<Self>;
}

impl Spelled for Value {
    fn write(&self, out: &mut Printer<'_>, first: &mut bool) {
        let text = out.value_text(*self);
        out.operand(&text, first);
    }

    fn read(parser: &mut Parser<'_>, first: &mut bool) -> Result<Value> {
        parser.separator(first)?;
        parser.operand("an operand")
    }
}

/// One operand or more.
impl Spelled for Vec<Value> {
    fn write(&self, out: &mut Printer<'_>, first: &mut bool) {
        self.iter().for_each(|value| value.write(out, first));
    }

    fn read(parser: &mut Parser<'_>, first: &mut bool) -> Result<Vec<Value>> {
        parser.separator(first)?;
        parser.operand_list()
    }
}

/// Who takes part, unless it is the whole sub-group.
impl Spelled for Option<Value> {
    fn write(&self, out: &mut Printer<'_>, _first: &mut bool) {
        out.among(*self);
    }

    fn read(parser: &mut Parser<'_>, _first: &mut bool) -> Result<Option<Value>> {
        parser.party()
    }
}

impl Spelled for Array {
    fn write(&self, out: &mut Printer<'_>, first: &mut bool) {
        let text = out.array_text(*self);
        out.operand(&text, first);
    }

    fn read(parser: &mut Parser<'_>, first: &mut bool) -> Result<Array> {
        parser.separator(first)?;
        parser.array_name()
    }
}

impl Spelled for LoadId {
    fn write(&self, out: &mut Printer<'_>, first: &mut bool) {
        let text = out.load_text(*self);
        out.operand(&text, first);
    }

    fn read(parser: &mut Parser<'_>, first: &mut bool) -> Result<LoadId> {
        parser.separator(first)?;
        parser.load_name()
    }
}

/// The cache controls, unless they are the default.
impl Spelled for CacheUse {
    fn write(&self, out: &mut Printer<'_>, _first: &mut bool) {
        if *self != CacheUse::Default {
            out.word(self.name());
        }
    }

    fn read(parser: &mut Parser<'_>, _first: &mut bool) -> Result<CacheUse> {
        parser.cache()
    }
}

/// A size in bytes.
impl Spelled for u32 {
    fn write(&self, out: &mut Printer<'_>, first: &mut bool) {
        out.operand(&self.to_string(), first);
    }

    fn read(parser: &mut Parser<'_>, first: &mut bool) -> Result<u32> {
        parser.separator(first)?;
        parser.small_number("a size in bytes", 0, u32::MAX)
    }
}

/// Enumerations whose variants are words.
macro_rules! spelled_words {
    ($($name:ident),+ $(,)?) => {$(
        impl Spelled for $name {
            fn write(&self, out: &mut Printer<'_>, _first: &mut bool) {
                out.word(self.name());
            }

            fn read(parser: &mut Parser<'_>, _first: &mut bool) -> Result<$name> {
                parser.tabled($name::WHAT, $name::ALL, $name::name)
            }
        }
    )+};
}

spelled_words!(
    AtomicOp,
    Dependency,
    GroupVoteOp,
    MemoryOrder,
    MemoryScope,
    PrefetchScope,
    ReduceOp,
    ShuffleOp,
    Touches,
    VoteOp,
);

/// `"mov.u64 =0, %clock64" nothing unordered alone settled (i64)`.
impl Spelled for Opaque {
    fn write(&self, out: &mut Printer<'_>, _first: &mut bool) {
        out.quoted(&self.text);
        out.word(self.touches.name());
        for (word, _) in self.stated().into_iter().filter(|(_, is)| *is) {
            out.word(word);
        }
        let types: Vec<&str> = self.makes.iter().map(|ty| ty.name()).collect();
        out.word(&format!("({})", types.join(", ")));
    }

    fn read(parser: &mut Parser<'_>, _first: &mut bool) -> Result<Opaque> {
        let text = parser.quoted("an instruction in quotes")?;
        let touches = parser.tabled(Touches::WHAT, Touches::ALL, Touches::name)?;
        let orders = !parser.accept_word("unordered")?;
        let convergent = !parser.accept_word("alone")?;
        let speculatable = parser.accept_word("speculatable")?;
        let asynchronous = !parser.accept_word("settled")?;
        let ends = parser.accept_word("ends")?;
        Ok(Opaque {
            touches,
            orders,
            convergent,
            speculatable,
            asynchronous,
            ends,
            ..Opaque::unknown(text, parser.types()?)
        })
    }
}

impl Spelled for OpaqueOperands {
    fn write(&self, out: &mut Printer<'_>, _first: &mut bool) {
        let values: Vec<String> = self.0.iter().map(|&value| out.value_text(value)).collect();
        out.word(&format!("({})", values.join(", ")));
    }

    fn read(parser: &mut Parser<'_>, _first: &mut bool) -> Result<OpaqueOperands> {
        parser.operands_in_brackets().map(OpaqueOperands)
    }
}

/// The parts of a row of [`operations!`] between the brackets: its words, how it is written, how it is read.
macro_rules! text_form {
    (words by_hand $($word:literal)*) => { &[$($word),*] };
    (words $word:literal $($piece:tt)*) => { &[$word] };

    (write $rule:ident $out:ident by_hand $($word:literal)*) => { false };
    (write $rule:ident $out:ident $word:literal $($piece:tt)*) => {{
        $out.put(format!("{}{}", $word, $rule));
        let first = &mut true;
        $(text_form!(write_piece $out first $piece);)*
        true
    }};
    (write_piece $out:ident $first:ident $word:literal) => {
        $out.word($word);
        *$first = true;
    };
    (write_piece $out:ident $first:ident $field:ident) => { Spelled::write($field, $out, $first) };

    (read $found:ident $parser:ident [$($make:tt)+] by_hand $($word:literal)*) => {};
    (read $found:ident $parser:ident [$($make:tt)+] $word:literal $($piece:tt)*) => {
        if $found == $word {
            let first = &mut true;
            $(text_form!(read_piece $parser first $piece);)*
            return Ok(Some($($make)+));
        }
    };
    (read_piece $parser:ident $first:ident $word:literal) => {
        $parser.expect_word($word)?;
        *$first = true;
    };
    (read_piece $parser:ident $first:ident $field:ident) => { let $field = Spelled::read($parser, $first)?; };
}

/// The text forms of all rows.
macro_rules! text_forms {
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
        #[allow(unused_variables, reason = "the fields of what is written by hand")]
        impl $name {
            /// The words that operations start with, besides those of the families.
            pub(super) const WORDS: &'static [&'static [&'static str]] = &[$(text_form!(words $($piece)+)),+];

            /// The word that it starts with in the text form; empty for those of the families.
            pub fn word(&self) -> &'static str {
                let words: &[&str] = match self { $($name::$variant { .. } => text_form!(words $($piece)+)),+ };
                words.first().copied().unwrap_or_default()
            }

            /// Writes its text form, with the rule behind its word; false if that is written by hand.
            pub(super) fn write(&self, rule: FloatRule, out: &mut Printer<'_>) -> bool {
                match self {
                    $(
                        $name::$variant $(( $($at),+ ))? $({ $($field),+ })? => {
                            text_form!(write rule out $($piece)+)
                        }
                    )+
                }
            }

            /// Reads the text behind `word`; none if that starts no operation of the table, or one that is read by hand.
            pub(super) fn read(word: &str, parser: &mut Parser<'_>) -> Result<Option<$name>> {
                $(
                    text_form!(
                        read word parser
                        [$name::$variant $(( $($at),+ ))? $({ $($field),+ })?]
                        $($piece)+
                    );
                )+
                Ok(None)
            }
        }
    };
}

with_operations!(text_forms);
