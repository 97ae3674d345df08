//! Calls: device functions, methods, `f32::from(x)`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, ExprCall, ExprMethodCall, ExprPath, ExprReference, Token, UnOp};

use super::assign::without_parentheses;
use super::{Lowering, record_path};
use crate::methods::{
    ATOMIC_METHODS, MEMORY_METHODS, METHODS, POINTER_METHODS, POINTERS, SCALARS, VIEW_METHODS, list, near,
};
use crate::scope::Binding;
use crate::signature::device_form;

/// How the message about a method begins that kernels do not have.
const UNKNOWN: &str = "the method `";

impl Lowering {
    /// `f(a, b)`.
    pub fn call(&mut self, call: &ExprCall) -> TokenStream {
        let Expr::Path(function) = &*call.func else {
            return self.refuse(
                call.func.span(),
                "only functions can be called in a kernel, by their names",
            );
        };
        let Some(name) = function
            .path
            .segments
            .last()
            .map(|segment| segment.ident.to_string())
        else {
            return quote!(());
        };
        let type_name = scalar_type(function);
        match (name.as_str(), type_name) {
            ("prefetch", None) => self.prefetch(call, false),
            ("joint_prefetch", None) => self.prefetch(call, true),
            (name, None) if POINTERS.contains(&name) => self.pointer(call, function),
            (name, None) if name.starts_with("lsc_") => self.with_control(call, function),
            ("fence", None) => self.fence(call),
            ("shared", None) => self.refuse(
                call.span(),
                "a shared array needs a name: `let mut tile = shared::<f32, 256>();`",
            ),
            (name, Some(ty)) => self.type_call(name, &ty, &call.args, function.span()),
            (name, None) if function.path.get_ident().is_some() && self.plain.contains(name) => self.refuse(
                function.span(),
                format!("`{name}` is a plain function; `#[device_fn]` above it lets kernels call it"),
            ),
            _ => {
                let at = self.at(call.span());
                let arguments: Vec<TokenStream> =
                    call.args.iter().map(|argument| self.argument(argument)).collect();
                let function = ExprPath {
                    path: device_form(&function.path),
                    ..function.clone()
                };
                quote_spanned!(call.span()=> #function(#at, #(#arguments),*))
            }
        }
    }

    /// An argument of a device function: a value, or a slice, array or variable of ours.
    fn argument(&mut self, argument: &Expr) -> TokenStream {
        match argument {
            Expr::Paren(inner) => self.argument(&inner.expr),
            Expr::Group(inner) => self.argument(&inner.expr),
            Expr::Path(path) => match path.path.get_ident().and_then(|name| self.scopes.find(name)) {
                Some(Binding::Memory | Binding::View | Binding::Reference) => {
                    self.if_types_fit(path.span(), quote!(#path))
                }
                _ => self.value(argument),
            },
            Expr::Reference(reference) => self.reference_argument(reference),
            other => self.value(other),
        }
    }

    /// `&a`, `&mut a`, `&mut *p`.
    fn reference_argument(&mut self, reference: &ExprReference) -> TokenStream {
        let target = match &*reference.expr {
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => &*unary.expr,
            other => other,
        };
        if let Expr::Index(index) = target
            && let Expr::Range(range) = &*index.index
        {
            return self
                .part(&index.expr, range, reference.mutability.is_some())
                .unwrap_or_else(|| quote!(()));
        }
        if let Expr::Path(path) = target {
            let binding = path.path.get_ident().and_then(|name| self.scopes.find(name));
            if binding.is_some_and(Binding::is_memory)
                || binding == Some(Binding::Reference)
                || (binding == Some(Binding::Variable) && reference.mutability.is_some())
            {
                return quote!(#path);
            }
        }
        self.refuse(
            reference.span(),
            "a device function takes references to arrays, slices and `let mut` variables: `&a`, `&mut a`, \
             `&mut x`; scalars go by value",
        )
    }

    /// `a[i..j]`, `a[i..]`, `a[..j]`: memory again.
    pub fn part(&mut self, memory: &Expr, range: &syn::ExprRange, mutable: bool) -> Option<TokenStream> {
        let span = range.span();
        let record = record_path(span);
        let function = match (self.binding(memory), mutable) {
            (Some(Binding::View), false) => quote_spanned!(span=> #record::views::part_to_read),
            (Some(Binding::View), true) => quote_spanned!(span=> #record::views::part_to_write),
            _ => quote_spanned!(span=> #record::part),
        };
        let memory = self.memory(memory)?;
        let at = self.at(span);
        let start = match &range.start {
            Some(start) => self.value(start),
            None => quote_spanned!(span=> #record::literal(0)),
        };
        let end = match &range.end {
            Some(end) => {
                let end = self.value(end);
                match range.limits {
                    syn::RangeLimits::HalfOpen(_) => quote_spanned!(span=> Some(#end)),
                    syn::RangeLimits::Closed(_) => {
                        quote_spanned!(span=> Some(#record::add(#at, #end, #record::literal(1))))
                    }
                }
            }
            None => quote!(None),
        };
        Some(quote_spanned!(span=> #function(#at, #memory, #start, #end)))
    }

    /// `f32::from(x)`, `f32::from_bits(x)`, `u32::min(a, b)`.
    fn type_call(
        &mut self,
        name: &str,
        ty: &Ident,
        arguments: &Punctuated<Expr, Token![,]>,
        span: Span,
    ) -> TokenStream {
        let record = record_path(span);
        let at = self.at(span);
        match (name, arguments.len()) {
            ("from" | "from_f32" | "from_f64", 1) => {
                let value = self.value(&arguments[0]);
                quote_spanned!(span=> #record::cast::<#ty, _>(#at, #value))
            }
            ("from_bits", 1) => {
                let value = self.value(&arguments[0]);
                quote_spanned!(span=> #record::methods::from_bits::<#ty>(#at, #value))
            }
            (_, 1..) => {
                let receiver = self.value(&arguments[0]);
                let receiver = quote_spanned!(span=> #record::of_type::<#ty>(#receiver));
                self.method(
                    name,
                    receiver,
                    &arguments.iter().skip(1).collect::<Vec<_>>(),
                    span,
                )
            }
            _ => self.refuse(
                span,
                format!("`{ty}::{name}` is not accepted in a kernel; methods: {}", list()),
            ),
        }
    }

    /// `x.f(a)`.
    pub fn method_call(&mut self, call: &ExprMethodCall) -> TokenStream {
        let name = call.method.to_string();
        if let Some(turbofish) = &call.turbofish {
            return self.refuse(turbofish.span(), "the methods of a kernel have no type arguments");
        }
        if let Expr::Path(path) = &*call.receiver
            && path
                .path
                .get_ident()
                .and_then(|name| self.scopes.find(name))
                .is_some_and(Binding::is_memory)
        {
            let record = record_path(call.method.span());
            if name == "size" && self.binding(&call.receiver) == Some(Binding::View) && call.args.len() == 1 {
                let (at, dimension) = (self.at(call.method.span()), self.value(&call.args[0]));
                return quote_spanned!(call.method.span()=> #record::views::size(#at, #path, #dimension));
            }
            if VIEW_METHODS.contains(&name.as_str())
                && self.binding(&call.receiver) == Some(Binding::View)
                && call.args.len() == 2
            {
                let (at, method) = (self.at(call.method.span()), &call.method);
                let (first, size) = (self.value(&call.args[0]), self.value(&call.args[1]));
                let path = self.if_types_fit(path.span(), quote!(#path));
                return quote_spanned!(call.method.span()=>
                    #record::views::#method(#at, #path, #first, #size));
            }
            if !MEMORY_METHODS.contains(&name.as_str()) || !call.args.is_empty() {
                return self.refuse(
                    call.method.span(),
                    format!(
                        "a slice or array in a kernel has no method `{name}`; accepted: `len()`, `is_empty()`"
                    ),
                );
            }
            let (at, method) = (self.at(call.method.span()), &call.method);
            return quote_spanned!(call.method.span()=> #record::#method(#at, #path));
        }
        if let Some(&(_, values)) = ATOMIC_METHODS.iter().find(|(known, _)| *known == name) {
            return self.atomic(call, values);
        }
        let receiver = self.value(&call.receiver);
        self.method(
            &name,
            receiver,
            &call.args.iter().collect::<Vec<_>>(),
            call.method.span(),
        )
    }

    fn method(&mut self, name: &str, receiver: TokenStream, arguments: &[&Expr], span: Span) -> TokenStream {
        let record = record_path(span);
        if matches!(name, "compare_exchange" | "compare_exchange_weak") {
            return self.refuse(
                span,
                "a kernel has no `Result`; `compare_and_swap(current, new, order)` returns the old value",
            );
        }
        let (table, module) = match POINTER_METHODS.iter().any(|(known, _)| *known == name) {
            true => (&POINTER_METHODS[..], "places"),
            false => (&METHODS[..], "methods"),
        };
        let Some((_, count)) = table.iter().find(|(known, _)| *known == name) else {
            // Once for a body: the list is long.
            let is_listed = self
                .errors
                .iter()
                .any(|error| error.to_string().starts_with(UNKNOWN));
            let accepted = match (near(name), is_listed) {
                (Some(near), _) => format!("; did you mean `{near}`?"),
                (None, true) => String::new(),
                (None, false) => format!("; accepted: {}", list()),
            };
            return self.refuse(
                span,
                format!("{UNKNOWN}{name}` is not accepted in a kernel{accepted}"),
            );
        };
        if arguments.len() != *count {
            return self.refuse(span, format!("`{name}` takes {count} arguments here"));
        }
        let at = self.at(span);
        let arguments: Vec<TokenStream> = arguments.iter().map(|argument| self.value(argument)).collect();
        let (name, module) = (Ident::new(name, span), Ident::new(module, span));
        quote_spanned!(span=> #record::#module::#name(#at, #receiver, #(#arguments),*))
    }

    /// `bins[i].fetch_add(x, Ordering::Relaxed)`.
    fn atomic(&mut self, call: &ExprMethodCall, values: usize) -> TokenStream {
        let span = call.method.span();
        let record = record_path(span);
        let name = &call.method;
        let Expr::Index(index) = without_parentheses(&call.receiver) else {
            return self.refuse(
                span,
                format!("`{name}` is for an element of atomic memory: `bins[i].{name}(…)`, with `bins: &[Atomic<T>]`"),
            );
        };
        if call.args.len() != values + 1 {
            return self.refuse(
                span,
                format!("`{name}` takes {values} values and an order, such as `Ordering::Relaxed`"),
            );
        }
        if let Some(order) = call.args.last()
            && !is_named_order(order)
        {
            return self.refuse(
                order.span(),
                "an order is named, not computed: `Ordering::Relaxed`, `Ordering::AcqRel.within(Scope::WorkGroup)`",
            );
        }
        let Some(memory) = self.memory(&index.expr) else {
            return quote!(());
        };
        let (at, position) = (self.at(span), self.value(&index.index));
        let arguments: Vec<TokenStream> = call
            .args
            .iter()
            .take(values)
            .map(|value| self.value(value))
            .collect();
        // The order is no value of the kernel's: it is known when the kernel is built.
        let order = call.args.last().map(ToTokens::to_token_stream);
        quote_spanned!(span=> #record::atomics::#name(#at, #memory, #position, #(#arguments,)* #order))
    }

    /// `fence(Ordering::AcqRel)`.
    fn fence(&mut self, call: &ExprCall) -> TokenStream {
        let (Some(order), 1) = (call.args.first(), call.args.len()) else {
            return self.refuse(call.span(), "a fence takes an order: `fence(Ordering::AcqRel)`");
        };
        let Expr::Path(function) = &*call.func else {
            return quote!(());
        };
        let (at, function) = (self.at(call.span()), device_form(&function.path));
        quote_spanned!(call.span()=> #function(#at, #order))
    }
}

/// `Ordering::Relaxed`, a constant, or either with `.within(…)`.
fn is_named_order(order: &Expr) -> bool {
    match order {
        Expr::Path(_) => true,
        Expr::MethodCall(call) => call.method == "within" && is_named_order(&call.receiver),
        _ => false,
    }
}

/// The scalar type in front of a function's name: `f32` in `f32::from`.
fn scalar_type(function: &ExprPath) -> Option<Ident> {
    if function.qself.is_some() || function.path.segments.len() != 2 {
        return None;
    }
    let first = &function.path.segments[0].ident;
    SCALARS.iter().any(|name| first == name).then(|| first.clone())
}
