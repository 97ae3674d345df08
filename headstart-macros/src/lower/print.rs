//! `print!("x = {x}, {:x}\n", bits)`: the only macros that a kernel calls.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, LitStr, Macro, Token};

use super::{Lowering, record_path};

/// The accepted text between braces, in words for messages.
const PLACES: &str =
    "accepted: `{}`, `{:x}`, `{name}`, `{name:x}`, `{:?}` and `{:x?}` for vectors, and `{{`, `}}` for braces";

/// A text, and the values after it.
struct Line {
    text: LitStr,
    values: Punctuated<Expr, Token![,]>,
}

impl Parse for Line {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let text = input.parse()?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        Ok(Line {
            text,
            values: Punctuated::parse_terminated(input)?,
        })
    }
}

/// A part of the text.
enum Piece {
    Text(String),
    /// The next value, or the variable of this name; in base 16 or not.
    Value(Option<String>, bool),
}

/// Takes the text apart; the message if it cannot be.
fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        let (brace, behind) = rest[at..].split_at(1);
        if behind.starts_with(brace) {
            plain.push_str(brace);
            rest = &behind[1..];
            continue;
        }
        let place = behind.split_once('}').filter(|_| brace == "{");
        let Some((place, behind)) = place else {
            return Err(format!("a brace is out of place; {PLACES}"));
        };
        let (name, how) = place.split_once(':').unwrap_or((place, ""));
        let is_name = name.is_empty() || syn::parse_str::<syn::Ident>(name).is_ok();
        if !is_name || !matches!(how, "" | "x" | "?" | "x?") {
            return Err(format!("a kernel cannot print `{{{place}}}`; {PLACES}"));
        }
        pieces.push(Piece::Text(std::mem::take(&mut plain)));
        let name = (!name.is_empty()).then(|| name.to_owned());
        pieces.push(Piece::Value(name, how.starts_with('x')));
        rest = behind;
    }
    plain.push_str(rest);
    pieces.push(Piece::Text(plain));
    Ok(pieces)
}

impl Lowering {
    /// A macro call: a line to be printed, or none that a kernel has.
    pub fn macro_call(&mut self, call: &Macro) -> TokenStream {
        let span = call.span();
        let ends_line = match call.path.get_ident().map(ToString::to_string).as_deref() {
            Some("print") => false,
            Some("println") => true,
            _ => return self.refuse_macro(call),
        };
        let line = match call.parse_body::<Line>() {
            Ok(line) => line,
            Err(error) => return self.refuse_with(error),
        };
        let pieces = match pieces(&line.text.value()) {
            Ok(pieces) => pieces,
            Err(message) => return self.refuse(line.text.span(), message),
        };
        let record = record_path(span);
        let at = self.at(span);
        let mut tokens = quote_spanned!(span=> #record::print::line(#at));
        let mut values = line.values.iter();
        for piece in pieces {
            match piece {
                Piece::Text(text) => tokens.extend(quote_spanned!(line.text.span()=> .text(#text))),
                Piece::Value(name, hexadecimal) => {
                    let value = match name {
                        Some(name) => {
                            let name = syn::Ident::new(&name, line.text.span());
                            self.value(&syn::parse_quote_spanned!(line.text.span()=> #name))
                        }
                        None => match values.next() {
                            Some(value) => self.value(value),
                            // The ordinary copy has the compiler's own message.
                            None => continue,
                        },
                    };
                    tokens.extend(quote_spanned!(line.text.span()=> .value(#value, #hexadecimal)));
                }
            }
        }
        if ends_line {
            tokens.extend(quote_spanned!(span=> .text("\n")));
        }
        quote_spanned!(span=> #tokens.end())
    }
}
