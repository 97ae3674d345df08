//! Expressions: literals, names, operators, casts, indexing.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprBinary, ExprCast, ExprLit, ExprUnary, Lit, Macro, Type, UnOp};

use super::{Lowering, record_path};
use crate::attributes::{is_untyped_float, is_untyped_integer, none_but_lints};
use crate::diverge::diverges;
use crate::methods::INTEGERS;
use crate::scope::Binding;

/// The kind of expression in the place of a value, in words for messages.
const ACCEPTED: &str = "accepted: literals, names, operators, casts, indexing, fields, calls of device functions and \
                        of known methods, `if`, loops, blocks, tuples, structs, assignments";

impl Lowering {
    /// An expression where a value is needed. One that never completes gives any value.
    pub fn value(&mut self, expression: &Expr) -> TokenStream {
        let lowered = self.expression(expression);
        if diverges(expression) {
            let record = record_path(expression.span());
            return quote_spanned!(expression.span()=> { #lowered; #record::absent() });
        }
        match expression {
            // A name has the type of its binding.
            Expr::Path(_) => lowered,
            _ => self.if_types_fit(expression.span(), lowered),
        }
    }

    /// An expression, as a statement or where its value goes unused.
    pub fn expression(&mut self, expression: &Expr) -> TokenStream {
        if let Err(error) = check_attributes(expression) {
            return self.refuse_with(error);
        }
        let span = expression.span();
        match expression {
            Expr::Lit(literal) => self.literal(literal),
            Expr::Path(path) => self.name(path),
            Expr::Paren(inner) => self.expression(&inner.expr),
            Expr::Group(inner) => self.expression(&inner.expr),
            Expr::Unary(unary) => self.unary(unary),
            Expr::Binary(binary) => self.binary(binary),
            Expr::Cast(cast) => self.cast(cast),
            Expr::Index(index) => self.indexed(expression, &index.expr, &index.index),
            Expr::Field(field) => self.field(expression, &field.base, &field.member),
            Expr::Tuple(tuple) => {
                let parts: Vec<TokenStream> = tuple.elems.iter().map(|part| self.value(part)).collect();
                quote_spanned!(span=> (#(#parts,)*))
            }
            Expr::Assign(assign) => self.assign(assign),
            Expr::Call(call) => self.call(call),
            Expr::MethodCall(call) => self.method_call(call),
            Expr::Block(block) => self.labelled_block(block),
            Expr::If(conditional) => self.conditional(conditional),
            Expr::Loop(endless) => self.endless_loop(endless),
            Expr::While(conditional) => self.while_loop(conditional),
            Expr::ForLoop(counted) => self.for_loop(counted),
            Expr::Break(leave) => self.leave_loop(leave),
            Expr::Continue(next) => self.next_iteration(next),
            Expr::Return(end) => self.end_function(end),
            Expr::Macro(call) => self.macro_call(&call.mac),
            Expr::Array(array) => self.vector(array),
            Expr::Repeat(repeat) => self.repeated_vector(repeat),
            Expr::Struct(literal) => self.struct_literal(literal),
            Expr::Reference(_) => self.refuse(
                span,
                "a reference is accepted only as an argument of a device function, and in `prefetch(&a[i], L1)`",
            ),
            Expr::Range(_) => self.refuse(span, "a range is accepted only after `for … in`"),
            Expr::Match(_) => self.refuse(span, "`match` is not accepted in a kernel; write `if … else if … else`"),
            Expr::Let(_) => self.refuse(span, "`if let` and `while let` are not accepted in a kernel"),
            Expr::Closure(_) => {
                self.refuse(span, "closures are not accepted in a kernel; write a `#[device_fn]`")
            }
            Expr::Unsafe(_) => self.refuse(span, "`unsafe` is not accepted in a kernel; nothing here needs it"),
            Expr::Try(passing) => self.refuse(passing.question_token.span, "`?` is not accepted in a kernel: there is no error to pass on"),
            _ => self.refuse(span, format!("this is not accepted in a kernel; {ACCEPTED}")),
        }
    }

    /// Refuses a macro call.
    pub fn refuse_macro(&mut self, call: &Macro) -> TokenStream {
        let name = call.path.to_token_stream().to_string();
        self.refuse(
            call.span(),
            format!("the macro `{name}!` is not accepted in a kernel; {ACCEPTED}"),
        )
    }

    fn literal(&mut self, literal: &ExprLit) -> TokenStream {
        let record = record_path(literal.span());
        match &literal.lit {
            Lit::Int(_) | Lit::Float(_) | Lit::Bool(_) | Lit::Byte(_) => {
                quote_spanned!(literal.span()=> #record::literal(#literal))
            }
            other => self.refuse(
                other.span(),
                "a kernel has integers, floats and truth values only",
            ),
        }
    }

    fn name(&mut self, path: &syn::ExprPath) -> TokenStream {
        let record = record_path(path.span());
        let local = if path.qself.is_none() {
            path.path.get_ident()
        } else {
            None
        };
        match local.and_then(|name| self.scopes.find(name)) {
            Some(Binding::Value) => quote!(#path),
            Some(Binding::Variable) => quote_spanned!(path.span()=> #record::get(#path)),
            Some(Binding::Array) => {
                let at = self.at(path.span());
                quote_spanned!(path.span()=> #record::whole(#at, #path))
            }
            Some(Binding::Memory | Binding::View) => self.refuse(
                path.span(),
                format!(
                    "`{name}` is memory, not a value; accepted: `{name}[i]`, `{name}.len()`, and handing it to a \
                     device function",
                    name = path.to_token_stream()
                ),
            ),
            Some(Binding::Reference) => self.refuse(
                path.span(),
                format!("`{name}` is a reference; write `*{name}`", name = path.to_token_stream()),
            ),
            // No local name, so a constant: its value is known when the kernel is built.
            None => quote_spanned!(path.span()=> #record::constant(#path)),
        }
    }

    /// The handle of a slice or array that is indexed, measured or handed on.
    pub fn memory(&mut self, expression: &Expr) -> Option<TokenStream> {
        match expression {
            Expr::Paren(inner) => return self.memory(&inner.expr),
            Expr::Group(inner) => return self.memory(&inner.expr),
            Expr::Path(path) if path.qself.is_none() => {
                let binding = path.path.get_ident().and_then(|name| self.scopes.find(name));
                if binding.is_some_and(Binding::is_memory) {
                    return Some(quote!(#path));
                }
            }
            _ => {}
        }
        self.refuse(
            expression.span(),
            "only slice parameters and local arrays can be indexed in a kernel",
        );
        None
    }

    fn unary(&mut self, unary: &ExprUnary) -> TokenStream {
        let span = unary.op.span();
        let record = record_path(span);
        match &unary.op {
            // The minus belongs to the literal: `-128i8` is a number, though 128 is none.
            UnOp::Neg(_) if matches!(&*unary.expr, Expr::Lit(_)) => {
                quote_spanned!(unary.span()=> #record::literal(#unary))
            }
            UnOp::Neg(_) => {
                let (at, value) = (self.at(span), self.value(&unary.expr));
                quote_spanned!(span=> #record::neg(#at, #value))
            }
            UnOp::Not(_) => {
                let (at, value) = (self.at(span), self.value(&unary.expr));
                quote_spanned!(span=> #record::not(#at, #value))
            }
            UnOp::Deref(_) => match self.reference(&unary.expr) {
                Some(variable) => quote_spanned!(span=> #record::get(#variable)),
                None => quote!(()),
            },
            _ => self.refuse(
                span,
                format!("this operator is not accepted in a kernel; {ACCEPTED}"),
            ),
        }
    }

    /// The variable behind a `&mut` parameter, for `*p`.
    pub fn reference(&mut self, expression: &Expr) -> Option<TokenStream> {
        if let Expr::Path(path) = expression
            && let Some(name) = path.path.get_ident()
            && self.scopes.find(name) == Some(Binding::Reference)
        {
            return Some(quote!(#path));
        }
        self.refuse(
            expression.span(),
            "only a `&mut` parameter of a device function can be dereferenced",
        );
        None
    }

    fn binary(&mut self, binary: &ExprBinary) -> TokenStream {
        let span = binary.op.span();
        let record = record_path(span);
        if let BinOp::And(_) | BinOp::Or(_) = &binary.op {
            return self.lazy(binary);
        }
        if let Some(function) = assigning_operator(&binary.op) {
            return self.compound_assign(&binary.left, &binary.right, function, span);
        }
        let Some(function) = operator(&binary.op) else {
            return self.refuse(
                span,
                format!("this operator is not accepted in a kernel; {ACCEPTED}"),
            );
        };
        let function = proc_macro2::Ident::new(function, span);
        let (at, left, right) = (self.at(span), self.value(&binary.left), self.value(&binary.right));
        quote_spanned!(span=> #record::#function(#at, #left, #right))
    }

    /// `&&` and `||`: the right side runs only if the left does not decide.
    fn lazy(&mut self, binary: &ExprBinary) -> TokenStream {
        let span = binary.op.span();
        let record = record_path(span);
        let begin = match &binary.op {
            BinOp::And(_) => quote_spanned!(span=> #record::begin_and),
            _ => quote_spanned!(span=> #record::begin_or),
        };
        let (at, left, right) = (self.at(span), self.value(&binary.left), self.value(&binary.right));
        let (lazy, decided) = (self.fresh("lazy", span), self.fresh("decided", span));
        quote_spanned!(span=> {
            let #lazy = #begin(#at, #left);
            let #decided = #right;
            #record::end_lazy(#lazy, #decided)
        })
    }

    fn cast(&mut self, cast: &ExprCast) -> TokenStream {
        let (span, ty) = (cast.as_token.span, &*cast.ty);
        let record = record_path(span);
        if !matches!(ty, Type::Path(_) | Type::Infer(_)) {
            return self.refuse(ty.span(), "a kernel can cast to integers, `f32` and `f64` only");
        }
        // Rust gives a literal the type it is cast to, where that is of the same kind.
        let literal = without_sign_and_parentheses(&cast.expr);
        if (is_untyped_integer(literal) && is_named(ty, &INTEGERS))
            || (is_untyped_float(literal) && is_named(ty, &["f32", "f64"]))
        {
            let value = &cast.expr;
            return quote_spanned!(cast.span()=> #record::literal::<#ty>(#value));
        }
        let (at, value) = (self.at(span), self.value(&cast.expr));
        quote_spanned!(span=> #record::cast::<#ty, _>(#at, #value))
    }
}

fn without_sign_and_parentheses(expression: &Expr) -> &Expr {
    match expression {
        Expr::Paren(inner) => without_sign_and_parentheses(&inner.expr),
        Expr::Group(inner) => without_sign_and_parentheses(&inner.expr),
        Expr::Unary(ExprUnary {
            op: UnOp::Neg(_),
            expr,
            ..
        }) => without_sign_and_parentheses(expr),
        other => other,
    }
}

fn is_named(ty: &Type, names: &[&str]) -> bool {
    matches!(ty, Type::Path(path) if names.iter().any(|name| path.path.is_ident(name)))
}

/// The library's function for an operator that gives a new value.
fn operator(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add(_) => "add",
        BinOp::Sub(_) => "sub",
        BinOp::Mul(_) => "mul",
        BinOp::Div(_) => "div",
        BinOp::Rem(_) => "rem",
        BinOp::BitAnd(_) => "bit_and",
        BinOp::BitOr(_) => "bit_or",
        BinOp::BitXor(_) => "bit_xor",
        BinOp::Shl(_) => "shl",
        BinOp::Shr(_) => "shr",
        BinOp::Eq(_) => "eq",
        BinOp::Ne(_) => "ne",
        BinOp::Lt(_) => "lt",
        BinOp::Le(_) => "le",
        BinOp::Gt(_) => "gt",
        BinOp::Ge(_) => "ge",
        _ => return None,
    })
}

/// The library's function for the operator inside `+=` and its like.
fn assigning_operator(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::AddAssign(_) => "add",
        BinOp::SubAssign(_) => "sub",
        BinOp::MulAssign(_) => "mul",
        BinOp::DivAssign(_) => "div",
        BinOp::RemAssign(_) => "rem",
        BinOp::BitAndAssign(_) => "bit_and",
        BinOp::BitOrAssign(_) => "bit_or",
        BinOp::BitXorAssign(_) => "bit_xor",
        BinOp::ShlAssign(_) => "shl",
        BinOp::ShrAssign(_) => "shr",
        _ => return None,
    })
}

/// Loops read their own attributes; anything else has none but lints.
fn check_attributes(expression: &Expr) -> syn::Result<()> {
    let attributes = match expression {
        Expr::Assign(e) => &e.attrs,
        Expr::Binary(e) => &e.attrs,
        Expr::Block(e) => &e.attrs,
        Expr::Break(e) => &e.attrs,
        Expr::Call(e) => &e.attrs,
        Expr::Cast(e) => &e.attrs,
        Expr::Continue(e) => &e.attrs,
        Expr::Field(e) => &e.attrs,
        Expr::If(e) => &e.attrs,
        Expr::Index(e) => &e.attrs,
        Expr::Lit(e) => &e.attrs,
        Expr::MethodCall(e) => &e.attrs,
        Expr::Paren(e) => &e.attrs,
        Expr::Struct(e) => &e.attrs,
        Expr::Path(e) => &e.attrs,
        Expr::Return(e) => &e.attrs,
        Expr::Tuple(e) => &e.attrs,
        Expr::Unary(e) => &e.attrs,
        _ => return Ok(()),
    };
    none_but_lints(attributes)
}
