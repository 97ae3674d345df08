//! Places: elements, their fields and parts, and the same of variables.
//!
//! `points[i].position[k]` is a place in memory: nothing but that scalar is read or written. `body.position[k]` of a
//! variable is a part of its value: assigning to it changes the whole.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{Expr, Member, UnOp};

use super::assign::without_parentheses;
use super::{Lowering, record_path};
use crate::scope::Binding;

/// The accepted left sides of an assignment, in words for messages.
const ACCEPTED: &str = "accepted on the left: a `let mut` variable, an element `a[i]`, `*p` of a `&mut` parameter, \
                        their fields and parts, `_`, and tuples of these";

/// The access at a place.
#[derive(Clone, Copy)]
pub enum To {
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// It is read and written.
    Change,
}

impl To {
    /// The library's function that gives such a place of a view.
    fn name(self) -> &'static str {
        match self {
            To::Read => "to_read",
            To::Write => "to_write",
            To::Change => "to_change",
        }
    }
}

impl Lowering {
    /// Whether an expression names an element of a slice or array, or a part of one.
    fn is_in_memory(&self, expression: &Expr) -> bool {
        match without_parentheses(expression) {
            Expr::Index(index) => self.is_memory(&index.expr) || self.is_in_memory(&index.expr),
            Expr::Field(field) => self.is_in_memory(&field.base),
            _ => false,
        }
    }

    /// The meaning of a local name.
    pub fn binding(&self, expression: &Expr) -> Option<Binding> {
        match without_parentheses(expression) {
            Expr::Path(path) => path.path.get_ident().and_then(|name| self.scopes.find(name)),
            _ => None,
        }
    }

    /// Whether an expression is the name of a slice, array or view.
    pub fn is_memory(&self, expression: &Expr) -> bool {
        self.binding(expression).is_some_and(Binding::is_memory)
    }

    /// The place in memory that an expression names, if it names one.
    pub fn place(&mut self, expression: &Expr, to: To) -> Option<TokenStream> {
        let expression = without_parentheses(expression);
        if !self.is_in_memory(expression) {
            return None;
        }
        let span = expression.span();
        let record = record_path(span);
        Some(match expression {
            Expr::Index(index) if self.is_memory(&index.expr) => {
                let memory = self.memory(&index.expr)?;
                let (at, position) = (self.at(span), self.value(&index.index));
                if self.binding(&index.expr) == Some(Binding::View) {
                    let function = Ident::new(to.name(), span);
                    return Some(quote_spanned!(span=> #record::views::#function(#at, #memory, #position)));
                }
                quote_spanned!(span=> #record::place(#at, #memory, #position))
            }
            Expr::Index(index) => {
                let base = self.place(&index.expr, to)?;
                let base = self.if_types_fit(index.expr.span(), base);
                let (at, position) = (self.at(span), self.value(&index.index));
                quote_spanned!(span=> #record::item(#at, #base, #position))
            }
            Expr::Field(field) => {
                let (base, member) = (self.place(&field.base, to)?, &field.member);
                let base = self.if_types_fit(field.base.span(), base);
                quote_spanned!(span=> #record::fields(#base).#member)
            }
            _ => return None,
        })
    }

    /// `base[index]` as a value.
    pub fn indexed(&mut self, whole: &Expr, base: &Expr, index: &Expr) -> TokenStream {
        let span = whole.span();
        let record = record_path(span);
        let at = self.at(span);
        if let Some(place) = self.place(whole, To::Read) {
            return quote_spanned!(span=> #record::read(#at, #place));
        }
        if !self.can_have_parts(base) {
            return self.refuse(
                base.span(),
                "only slice parameters, local arrays and vectors can be indexed in a kernel",
            );
        }
        let (vector, position) = (self.value(base), self.value(index));
        quote_spanned!(span=> #record::item_of(#at, #vector, #position))
    }

    /// `base.member` as a value.
    pub fn field(&mut self, whole: &Expr, base: &Expr, member: &Member) -> TokenStream {
        let span = whole.span();
        let record = record_path(span);
        if let Some(place) = self.place(whole, To::Read) {
            let at = self.at(span);
            return quote_spanned!(span=> #record::read(#at, #place));
        }
        let base = self.value(base);
        quote_spanned!(span=> (#base).#member)
    }

    /// Whether something may be a vector: not a name that no `let` made, which is a constant.
    fn can_have_parts(&self, base: &Expr) -> bool {
        match without_parentheses(base) {
            Expr::Path(path) => path
                .path
                .get_ident()
                .is_some_and(|name| self.scopes.find(name).is_some()),
            Expr::Call(call) => !matches!(&*call.func, Expr::Path(path)
                if path.path.segments.last().is_some_and(|last| last.ident == "shared")),
            _ => true,
        }
    }

    /// Assigns the value in `right` to a place that is no tuple.
    pub fn store_in(&mut self, place: &Expr, right: &Ident, span: Span) -> TokenStream {
        let record = record_path(span);
        if let Some(memory) = self.place(place, To::Write) {
            let at = self.at(place.span());
            return quote_spanned!(place.span()=> #record::write(#at, #memory, #right));
        }
        self.change(
            place,
            span,
            Box::new(|_, current| quote_spanned!(span=> #current = #right;)),
        )
    }

    /// Changes a variable, or a part of one: `change` is given an expression that can be assigned to.
    pub fn change(
        &mut self,
        place: &Expr,
        span: Span,
        change: Box<dyn FnOnce(&mut Self, TokenStream) -> TokenStream + '_>,
    ) -> TokenStream {
        let record = record_path(span);
        match without_parentheses(place) {
            Expr::Field(field) => {
                let member = &field.member;
                self.change(
                    &field.base,
                    span,
                    Box::new(|lowering, current| {
                        change(lowering, quote_spanned!(member.span()=> #current.#member))
                    }),
                )
            }
            Expr::Index(index) => {
                if !self.can_have_parts(&index.expr) {
                    return self.refuse(
                        index.expr.span(),
                        "only slice parameters, local arrays and vectors can be indexed in a kernel",
                    );
                }
                let (at, position) = (self.at(place.span()), self.value(&index.index));
                // Parts of parts: each has names of its own.
                self.aliases += 1;
                let number = format!("number_{}", self.aliases);
                let part = format!("part_{}", self.aliases);
                let (number, part) = (self.fresh(&number, span), self.fresh(&part, span));
                let inner = change(self, quote_spanned!(span=> #part));
                let changed = self.change(
                    &index.expr,
                    span,
                    Box::new(|_, current| {
                        quote_spanned!(span=> {
                            let mut #part = #record::item_of(#at, #current, #number);
                            #inner
                            #record::set_item(#at, &mut #current, #number, #part);
                        })
                    }),
                );
                quote_spanned!(span=> { let #number = #position; #changed })
            }
            other => {
                let Some(variable) = self.variable(other) else {
                    return quote::quote!(());
                };
                let whole = self.fresh("whole", span);
                let changed = change(self, quote_spanned!(span=> #whole));
                quote_spanned!(span=> {
                    let mut #whole = #record::get(#variable);
                    #changed
                    #record::set(#variable, #whole)
                })
            }
        }
    }

    /// The variable that a place names.
    pub fn variable(&mut self, place: &Expr) -> Option<TokenStream> {
        match place {
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => return self.reference(&unary.expr),
            Expr::Path(path) => {
                if let Some(name) = path.path.get_ident() {
                    match self.scopes.find(name) {
                        Some(Binding::Variable) => return Some(quote::quote!(#path)),
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
}
