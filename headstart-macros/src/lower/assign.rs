//! Assignments: `=`, `+=` and their like, to variables, elements, parts of both, tuples.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprAssign};

use super::place::To;
use super::{Lowering, record_path};
use crate::scope::Binding;

impl Lowering {
    /// `place = value`. As in Rust, the value is computed before the place.
    pub fn assign(&mut self, assign: &ExprAssign) -> TokenStream {
        let span = assign.eq_token.span;
        let value = self.value(&assign.right);
        let right = self.fresh("right", span);
        let store = self.store(&assign.left, &right, span);
        quote_spanned!(span=> { let #right = #value; #store; })
    }

    /// Assigns the value in `right` to a place.
    fn store(&mut self, place: &Expr, right: &Ident, span: Span) -> TokenStream {
        let record = record_path(span);
        match place {
            Expr::Paren(inner) => self.store(&inner.expr, right, span),
            Expr::Group(inner) => self.store(&inner.expr, right, span),
            Expr::Infer(_) => quote!(()),
            Expr::Tuple(tuple) => {
                let stores: Vec<TokenStream> = (0..)
                    .zip(&tuple.elems)
                    .map(|(number, part)| {
                        let number = syn::Index {
                            index: number,
                            span: part.span(),
                        };
                        let field = self.fresh("field", part.span());
                        let store = self.store(part, &field, span);
                        quote_spanned!(part.span()=> { let #field = #right.#number; #store; })
                    })
                    .collect();
                quote!({ #(#stores)* })
            }
            Expr::Index(_) | Expr::Field(_) => self.store_in(place, right, span),
            array if self.binding(array) == Some(Binding::Array) => {
                let at = self.at(span);
                quote_spanned!(span=> #record::set_whole(#at, #array, #right))
            }
            other => match self.variable(other) {
                Some(variable) => quote_spanned!(span=> #record::set(#variable, #right)),
                None => quote!(()),
            },
        }
    }

    /// `place op= value`. As in Rust for scalars, the value is computed first, then the place, once.
    pub fn compound_assign(&mut self, place: &Expr, value: &Expr, operator: &str, span: Span) -> TokenStream {
        let record = record_path(span);
        let operator = Ident::new(operator, span);
        let value = self.value(value);
        let right = self.fresh("right", span);
        let at = self.at(span);
        let place = without_parentheses(place);
        let update = if let Some(memory) = self.place(place, To::Change) {
            let here = self.at(place.span());
            let (lies, left) = (self.fresh("place", span), self.fresh("left", span));
            let read = self.if_types_fit(span, quote_spanned!(span=> #record::read(#here, #lies)));
            let result = self.if_types_fit(
                span,
                quote_spanned!(span=> #record::#operator(#at, #left, #right)),
            );
            quote_spanned!(span=> {
                let #lies = #memory;
                let #left = #read;
                #record::write(#here, #lies, #result)
            })
        } else if let Expr::Index(_) | Expr::Field(_) = place {
            let (at, right, operator) = (&at, &right, &operator);
            self.change(
                place,
                span,
                Box::new(
                    |_, current| quote_spanned!(span=> #current = #record::#operator(#at, #current, #right);),
                ),
            )
        } else {
            let Some(variable) = self.variable(place) else {
                return quote!(());
            };
            quote_spanned!(span=>
                #record::set(#variable, #record::#operator(#at, #record::get(#variable), #right))
            )
        };
        quote_spanned!(span=> { let #right = #value; #update; })
    }
}

/// The expression inside any parentheses.
pub(super) fn without_parentheses(expression: &Expr) -> &Expr {
    match expression {
        Expr::Paren(inner) => without_parentheses(&inner.expr),
        Expr::Group(inner) => without_parentheses(&inner.expr),
        other => other,
    }
}
