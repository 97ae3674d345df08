//! The ordinary copy of a body: the user's Rust as it is, without the attributes that the compiler would not know.
//!
//! It gives types, lifetimes and errors at the user's own source, and runs on the CPU as a reference. Four
//! things change: our attributes are taken off; a `prefetch` only checks types, because a hint may name an
//! element behind the end, where Rust's indexing would stop; `global_ptr(&a[i])` and its like keep the rest of `a`,
//! because a pointer may go on; and `exp`, `sin` and their like are ours, because the platform's give other bits.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ExprCall, ItemFn};

use crate::attributes::is_ours;
use crate::lower::{element, elements, place_of};
use crate::methods::{OWN_METHODS, POINTERS, SCALARS};
use crate::signature::is_constant;

/// The ordinary copy of a kernel or device function.
pub fn verbatim(function: &ItemFn) -> ItemFn {
    let mut copy = function.clone();
    for input in &mut copy.sig.inputs {
        if let syn::FnArg::Typed(typed) = input
            && typed.attrs.iter().any(is_constant)
        {
            typed.attrs.retain(|attribute| !is_constant(attribute));
            // It may be for the attribute's sizes only; unused it is not.
            if let syn::Pat::Ident(pattern) = &*typed.pat {
                let name = &pattern.ident;
                copy.block.stmts.insert(0, syn::parse_quote!(let _ = #name;));
            }
        }
    }
    Strip.visit_block_mut(&mut copy.block);
    copy
}

struct Strip;

impl VisitMut for Strip {
    fn visit_expr_for_loop_mut(&mut self, node: &mut syn::ExprForLoop) {
        node.attrs.retain(|attribute| !is_ours(attribute));
        visit_mut::visit_expr_for_loop_mut(self, node);
    }

    fn visit_expr_while_mut(&mut self, node: &mut syn::ExprWhile) {
        node.attrs.retain(|attribute| !is_ours(attribute));
        visit_mut::visit_expr_while_mut(self, node);
    }

    fn visit_expr_loop_mut(&mut self, node: &mut syn::ExprLoop) {
        node.attrs.retain(|attribute| !is_ours(attribute));
        visit_mut::visit_expr_loop_mut(self, node);
    }

    fn visit_expr_mut(&mut self, node: &mut Expr) {
        visit_mut::visit_expr_mut(self, node);
        let replacement = match node {
            Expr::Call(call)
                if name_of(call).is_some_and(|name| name == "prefetch" || name == "joint_prefetch") =>
            {
                match prefetched(call) {
                    Some(replacement) => replacement,
                    None => return,
                }
            }
            Expr::Call(call)
                if name_of(call).is_some_and(|name| POINTERS.iter().any(|known| name == known)) =>
            {
                let (Some((memory, index)), 1) = (call.args.first().and_then(element), call.args.len())
                else {
                    return;
                };
                let function = &call.func;
                // The pointer may go on to the elements behind it.
                quote_spanned!(call.span()=> #function::of(&#memory[..], #index))
            }
            Expr::MethodCall(call) if OWN_METHODS.iter().any(|name| call.method == name) => {
                // As an argument it needs its parentheses no more, and rustc would say so.
                let receiver = match &*call.receiver {
                    Expr::Paren(inner) => &inner.expr,
                    other => other,
                };
                let (method, arguments) = (&call.method, &call.args);
                quote_spanned!(call.method.span()=>
                    ::headstart::facade::reference::#method(#receiver, #arguments))
            }
            Expr::Call(call) => match own_function(call) {
                Some(method) => {
                    let arguments = &call.args;
                    quote_spanned!(call.span()=> ::headstart::facade::reference::#method(#arguments))
                }
                None => return,
            },
            _ => return,
        };
        *node = syn::parse_quote!(#replacement);
    }

    // Functions inside have attributes of their own.
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

/// The name of the function that is called.
fn name_of(call: &ExprCall) -> Option<&Ident> {
    match &*call.func {
        Expr::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

/// A prefetch that only checks types, and evaluates its address: an index may count or overflow, though the element need not
/// exist.
fn prefetched(call: &ExprCall) -> Option<TokenStream> {
    let function = &call.func;
    let mut arguments: Vec<TokenStream> = call.args.iter().map(ToTokens::to_token_stream).collect();
    let joint = name_of(call)? == "joint_prefetch";
    let place = usize::from(joint);
    // Without properties.
    if arguments.len() == place + 1 {
        arguments.push(quote!(()));
    }
    let wanted = call.args.iter().nth(place)?;
    let mixed = |name: &str| Ident::new(name, Span::mixed_site());
    let span = call.span();
    if let Some((memory, range)) = elements(wanted) {
        let bound = |bound: &Option<Box<Expr>>, name: &str| {
            let name = mixed(name);
            bound
                .as_ref()
                .map(|bound| (name.clone(), quote_spanned!(span=> let #name: usize = #bound;)))
        };
        let (start, end) = (bound(&range.start, "start"), bound(&range.end, "end"));
        let (first, last) = (
            start.as_ref().map(|start| &start.0),
            end.as_ref().map(|end| &end.0),
        );
        let (limits, steps) = (
            &range.limits,
            [&start, &end].into_iter().flatten().map(|bound| &bound.1),
        );
        arguments[place] = quote_spanned!(wanted.span()=> &#memory[#first #limits #last]);
        return Some(quote_spanned!(span=> { #(#steps)* let _ = || #function(#(#arguments),*); }));
    }
    if let Some((memory, index)) = element(wanted) {
        let position = mixed("position");
        arguments[place] = quote_spanned!(wanted.span()=> &#memory[#position]);
        return Some(quote_spanned!(span=> {
            let #position = #index;
            let _ = || #function(#(#arguments),*);
        }));
    }
    if place_of(wanted).is_some() {
        return Some(quote_spanned!(span=> { let _ = || #function(#(#arguments),*); }));
    }
    Some(quote_spanned!(span=> #function(#(#arguments),*)))
}

/// `f32::exp(x)`: the method.
fn own_function(call: &ExprCall) -> Option<&Ident> {
    let Expr::Path(function) = &*call.func else {
        return None;
    };
    let segments = &function.path.segments;
    if segments.len() != 2 || !SCALARS.iter().any(|name| segments[0].ident == name) {
        return None;
    }
    let method = &segments[1].ident;
    OWN_METHODS.iter().any(|name| method == name).then_some(method)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(source: &str) -> String {
        let function: ItemFn = syn::parse_str(source).expect("the test's source parses");
        let copy = verbatim(&function);
        quote!(#copy).to_string()
    }

    #[test]
    fn our_attributes_are_gone_and_lints_stay() {
        let copy =
            stripped("fn k() { #[unroll(4)] #[allow(unused)] #[prefetch(\"none\")] for i in 0..4 {} }");
        assert!(!copy.contains("unroll") && !copy.contains("prefetch"), "{copy}");
        assert!(copy.contains("allow"), "{copy}");
    }

    #[test]
    fn a_hint_checks_types_and_reads_nothing() {
        let copy = stripped("fn k(v: &[f32]) { prefetch(&v[v.len()], L3); }");
        assert!(copy.contains("let _ = | |"), "{copy}");
    }
}
