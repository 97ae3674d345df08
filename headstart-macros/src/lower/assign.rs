//! Assignments: `=`, `+=` and their like, to variables, elements, tuples.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprAssign, Member, UnOp};

use super::expression::Element;
use super::{Lowering, record_path};
use crate::scope::Binding;

/// What can stand on the left of an assignment, in words for messages.
const ACCEPTED: &str = "accepted on the left: a `let mut` variable, an element `a[i]`, `*p` of a `&mut` parameter, \
                        a tuple's field, `_`, and tuples of these";

impl Lowering {
    /// `place = value`. As in Rust, the value is computed before the place.
    pub fn assign(&mut self, assign: &ExprAssign) -> TokenStream {
        let span = assign.eq_token.span;
        // A vector's scalars, if that is what is stored.
        let value = match &*assign.right {
            Expr::Array(array) => {
                let parts: Vec<TokenStream> = array.elems.iter().map(|part| self.value(part)).collect();
                quote_spanned!(array.span()=> [#(#parts),*])
            }
            right => self.value(right),
        };
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
            Expr::Index(index) => {
                let Some(element) = self.element(&index.expr, &index.index) else {
                    return quote!(());
                };
                let at = self.at(place.span());
                match element {
                    Element::Scalar { memory, position } => {
                        quote_spanned!(place.span()=> #record::store(#at, #memory, #position, #right))
                    }
                    Element::Vector { memory, position } => {
                        quote_spanned!(place.span()=> #record::vectors::store(#at, #memory, #position, #right))
                    }
                    Element::Part {
                        memory,
                        position,
                        part,
                    } => quote_spanned!(place.span()=>
                        #record::vectors::store_part(#at, #memory, #position, #part, #right)
                    ),
                }
            }
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
            Expr::Field(field) => {
                let Member::Unnamed(number) = &field.member else {
                    return self.refuse(field.span(), ACCEPTED);
                };
                let Some(variable) = self.variable(&field.base) else {
                    return quote!(());
                };
                let tuple = self.fresh("tuple", span);
                quote_spanned!(span=> {
                    let mut #tuple = #record::get(#variable);
                    #tuple.#number = #right;
                    #record::set(#variable, #tuple)
                })
            }
            other => match self.variable(other) {
                Some(variable) => quote_spanned!(span=> #record::set(#variable, #right)),
                None => quote!(()),
            },
        }
    }

    /// The variable that a place names.
    fn variable(&mut self, place: &Expr) -> Option<TokenStream> {
        match place {
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => return self.reference(&unary.expr),
            Expr::Path(path) => {
                if let Some(name) = path.path.get_ident() {
                    match self.scopes.find(name) {
                        Some(Binding::Variable) => return Some(quote!(#path)),
                        // The ordinary copy says that it is not mutable; the recorded one need not.
                        Some(Binding::Value) => {
                            let record = record_path(path.span());
                            return Some(quote_spanned!(path.span()=> #record::variable("", #path)));
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        self.refuse(
            place.span(),
            format!("this cannot be assigned to in a kernel; {ACCEPTED}"),
        );
        None
    }

    /// `place op= value`. As in Rust for scalars, the value is computed first, then the place, once.
    pub fn compound_assign(&mut self, place: &Expr, value: &Expr, operator: &str, span: Span) -> TokenStream {
        let record = record_path(span);
        let operator = Ident::new(operator, span);
        let value = self.value(value);
        let right = self.fresh("right", span);
        let at = self.at(span);
        let update = match without_parentheses(place) {
            Expr::Index(index) => {
                let Some(element) = self.element(&index.expr, &index.index) else {
                    return quote!(());
                };
                let here = self.at(place.span());
                let (memory, number) = match element {
                    Element::Scalar { memory, position } => (memory, position),
                    Element::Part {
                        memory,
                        position,
                        part,
                    } => {
                        let (position_of, part_of) = (self.fresh("vector", span), self.fresh("part", span));
                        let left = self.fresh("left", span);
                        let update = quote_spanned!(span=> {
                            let (#position_of, #part_of) = (#position, #part);
                            let #left = #record::vectors::load_part(#here, #memory, #position_of, #part_of);
                            let #left = #record::#operator(#at, #left, #right);
                            #record::vectors::store_part(#here, #memory, #position_of, #part_of, #left)
                        });
                        return quote_spanned!(span=> { let #right = #value; #update; });
                    }
                    Element::Vector { .. } => {
                        return self.refuse(
                            place.span(),
                            "a vector has no operators; take it apart: `let [x, y] = a[i];`",
                        );
                    }
                };
                let (position, left) = (self.fresh("position", span), self.fresh("left", span));
                quote_spanned!(span=> {
                    let #position = #number;
                    let #left = #record::load(#here, #memory, #position);
                    #record::store(#here, #memory, #position, #record::#operator(#at, #left, #right))
                })
            }
            Expr::Field(field) => {
                let Member::Unnamed(number) = &field.member else {
                    return self.refuse(field.span(), ACCEPTED);
                };
                let Some(variable) = self.variable(&field.base) else {
                    return quote!(());
                };
                let tuple = self.fresh("tuple", span);
                quote_spanned!(span=> {
                    let mut #tuple = #record::get(#variable);
                    #tuple.#number = #record::#operator(#at, #tuple.#number, #right);
                    #record::set(#variable, #tuple)
                })
            }
            other => {
                let Some(variable) = self.variable(other) else {
                    return quote!(());
                };
                quote_spanned!(span=>
                    #record::set(#variable, #record::#operator(#at, #record::get(#variable), #right))
                )
            }
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
