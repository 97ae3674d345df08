//! The ordinary copy of a body: the user's Rust as it stands, less what the compiler would not know.
//!
//! It gives types, lifetimes and errors at the user's own source, and runs on the CPU as a reference. Three
//! things change: our attributes are taken off; a `prefetch` only checks types, because a hint may name an
//! element behind the end, where Rust's indexing would stop; and `exp`, `sin` and their like are ours, because
//! the platform's give other bits.

use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ItemFn};

use crate::attributes::is_ours;
use crate::lower::prefetched_place;
use crate::methods::{OWN_METHODS, SCALARS};
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
            Expr::Call(call) if is_prefetch(&call.func) => {
                let Some(place) = call.args.first().and_then(prefetched_place) else {
                    return;
                };
                let (function, hint) = (&call.func, call.args.iter().skip(1));
                // The index is computed, for it may count or overflow; the element may not be there.
                let Expr::Index(element) = place else {
                    let of = quote_spanned!(call.span()=> let _ = || #function(&#place, #(#hint),*););
                    *node = syn::parse_quote!({ #of });
                    return;
                };
                let (memory, index) = (&element.expr, &element.index);
                let position = proc_macro2::Ident::new("position", proc_macro2::Span::mixed_site());
                quote_spanned!(call.span()=> {
                    let #position = #index;
                    let _ = || #function(&#memory[#position], #(#hint),*);
                })
            }
            Expr::MethodCall(call) if OWN_METHODS.iter().any(|name| call.method == name) => {
                // As an argument it needs its parentheses no more, and rustc would say so.
                let receiver = match &*call.receiver {
                    Expr::Paren(inner) => &inner.expr,
                    other => other,
                };
                let (method, arguments) = (&call.method, &call.args);
                quote_spanned!(call.method.span()=>
                    ::headstart::front::lang::reference::#method(#receiver, #arguments))
            }
            Expr::Call(call) => match own_function(call) {
                Some(method) => {
                    let arguments = &call.args;
                    quote_spanned!(call.span()=> ::headstart::front::lang::reference::#method(#arguments))
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

fn is_prefetch(function: &Expr) -> bool {
    matches!(function, Expr::Path(path)
        if path.path.segments.last().is_some_and(|segment| segment.ident == "prefetch"))
}

/// `f32::exp(x)`: the method.
fn own_function(call: &syn::ExprCall) -> Option<&syn::Ident> {
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
    use quote::quote;

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
