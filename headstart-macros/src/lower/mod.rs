//! The recorded copy of a body: the user's Rust, rewritten to calls that write the IR when they run.
//!
//! Before:
//! ```text
//! let mut sum = 0.0;
//! for j in 0..items { if a[j] > 0.0 { sum += a[j]; } }
//! ```
//! After (places left out, `r` for the library's `record` module):
//! ```text
//! let sum = r::variable("sum", r::literal(0.0));
//! { let scope_1 = r::for_range(r::range(r::literal(0), items), …);
//!   let j = r::counter(scope_1);
//!   { { let branch = r::begin_if(r::gt(r::load(a, j), r::literal(0.0)));
//!       { { let right = r::load(a, j); r::set(sum, r::add(r::get(sum), right)) }; }
//!       r::end_if(branch) } }
//!   r::end_loop(scope_1) }
//! ```
//! Names, scopes and types stay the user's: the compiler infers the type of every literal in the copy as it does in the
//! original. Every generated token carries the span of its original, so that messages point into the user's source.

mod assign;
mod call;
mod control;
mod expression;
mod hint;
mod place;
mod print;
mod statement;
mod structs;

pub use hint::{element, elements, place_of};

use std::collections::BTreeSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Block, Error, Generics};

use crate::scope::{Scopes, Targets};

/// Everything that is known while a body is rewritten.
pub struct Lowering {
    /// The local names.
    pub scopes: Scopes,
    /// The loops and labelled blocks around.
    targets: Targets,
    /// The handle that `return` leaves through, in a device function; a kernel's `return` ends the work-item.
    function: Option<Ident>,
    /// The function's generics.
    generics: Generics,
    /// The plain functions beside this one, which it cannot call.
    pub plain: BTreeSet<String>,
    /// Whether the impl has a constant that says whether the ordinary copy's types fit: see [`crate::types_fit`].
    pub knows_types_fit: bool,
    /// How many types were given a name.
    aliases: usize,
    errors: Vec<Error>,
}

impl Lowering {
    /// A fresh one. `function` is the name of the variable with the device function's handle, if it is one.
    pub fn new(function: Option<Ident>, generics: &Generics) -> Lowering {
        let mut scopes = Scopes::default();
        scopes.enter();
        Lowering {
            scopes,
            targets: Targets::default(),
            function,
            generics: generics.clone(),
            plain: BTreeSet::new(),
            knows_types_fit: false,
            aliases: 0,
            errors: Vec::new(),
        }
    }

    /// The body's recorded copy, or every reason why there is none.
    pub fn body(mut self, body: &Block) -> Result<TokenStream, Error> {
        let tokens = self.block(body);
        let mut errors = self.errors.into_iter();
        match errors.next() {
            None => Ok(tokens),
            Some(mut first) => {
                errors.for_each(|error| first.combine(error));
                Err(first)
            }
        }
    }

    /// Notes an error at the user's source, and gives tokens to go on with.
    fn refuse(&mut self, span: Span, message: impl std::fmt::Display) -> TokenStream {
        self.refuse_with(Error::new(span, message))
    }

    fn refuse_with(&mut self, error: Error) -> TokenStream {
        self.errors.push(error);
        quote!(())
    }

    /// A value that the compiler says nothing about if the ordinary copy has a type error: it was told there.
    pub fn if_types_fit(&self, span: Span, value: TokenStream) -> TokenStream {
        let record = record_path(span);
        match self.knows_types_fit {
            true => quote_spanned!(span=> #record::if_types_fit::<[(); Self::TYPES_FIT], _>(#value)),
            false => value,
        }
    }

    /// The source place of a span, as an argument for a call into the library.
    fn at(&self, span: Span) -> TokenStream {
        let record = record_path(span);
        let (line, column) = position(span);
        quote_spanned!(span=> #record::At(#line, #column))
    }

    /// A name that no name of the user's can meet.
    fn fresh(&self, name: &str, span: Span) -> Ident {
        Ident::new(name, Span::mixed_site().located_at(span))
    }
}

/// The path of the library's `record` module, for a call at this span: the compiler's messages about the call
/// point there.
pub fn record_path(span: Span) -> TokenStream {
    quote_spanned!(span=> ::headstart::facade::record)
}

/// Line and column (both from 1) of a span. Outside a running macro there is no source: 0.
fn position(span: Span) -> (u32, u32) {
    if !proc_macro::is_available() {
        return (0, 0);
    }
    let span = span.unwrap();
    (
        u32::try_from(span.line()).unwrap_or(0),
        u32::try_from(span.column()).unwrap_or(0),
    )
}
