//! How a type error of a kernel is said once: a constant that stands for the types of the ordinary copy.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::visit::{self, Visit};
use syn::{
    ExprBreak, ExprContinue, ExprForLoop, ExprLoop, ExprWhile, GenericParam, Generics, ItemFn, ReturnType,
};

use crate::verbatim::verbatim;

/// A constant that the compiler cannot compute if the ordinary copy has a type error.
///
/// The recorded copy would repeat each mistake in its own types. Its values go through a type that depends on this constant: if
/// the constant has no value, the compiler gives that type up, and reports nothing about computations with it. A closure's
/// types are checked with the constant that contains it, so the constant has the body as a closure, and never calls it. Its
/// errors are reported once: the compiler drops a message that it has already emitted.
pub fn types_fit(function: &ItemFn) -> Option<TokenStream> {
    let copy = verbatim(function);
    let signature = &copy.sig;
    let output = match &signature.output {
        // A closure does not pass its parameters' lifetimes to its result.
        ReturnType::Type(_, ty) if quote!(#ty).to_string().contains('&') => return None,
        ReturnType::Type(_, ty) => quote!(#ty),
        ReturnType::Default => quote!(()),
    };
    // The compiler has two messages for a `break` that leaves nothing, and the one about closures would be wrong.
    let mut strays = Strays::default();
    strays.visit_block(&copy.block);
    if strays.found {
        return None;
    }
    let (inputs, block) = (&signature.inputs, &copy.block);
    let body = quote!({
        let _ = |#inputs| -> #output #block;
        0
    });
    let generics = &signature.generics;
    let value = if generics.params.is_empty() && generics.where_clause.is_none() {
        body
    } else {
        generic(generics, &body)?
    };
    Some(quote! {
        #[doc(hidden)]
        #[allow(warnings)]
        const TYPES_FIT: usize = #value;
    })
}

/// The constant's value for a generic function.
///
/// A constant has no generic parameters, but one of a generic type does. The compiler checks its types with the parameters as they
/// are, and computes it for examples of them: `u32`, `f32`, `f16`. An example without the function's bounds finds the constant of a
/// trait instead, which is always there.
fn generic(generics: &Generics, body: &TokenStream) -> Option<TokenStream> {
    let mut examples = vec![Vec::new()];
    let mut used = Vec::new();
    for parameter in &generics.params {
        let known = match parameter {
            GenericParam::Lifetime(lifetime) => {
                let lifetime = &lifetime.lifetime;
                used.push(quote!(&#lifetime ()));
                vec![quote!('static)]
            }
            GenericParam::Type(parameter) => {
                let name = &parameter.ident;
                used.push(quote!(#name));
                vec![quote!(u32), quote!(f32), quote!(::headstart::facade::f16)]
            }
            GenericParam::Const(parameter) => {
                let ty = &parameter.ty;
                match quote!(#ty).to_string().as_str() {
                    "bool" => vec![quote!(true)],
                    "char" => vec![quote!('1')],
                    _ => vec![quote!(1)],
                }
            }
        };
        examples = examples
            .iter()
            .flat_map(|so_far| {
                known
                    .iter()
                    .map(|next| [so_far, std::slice::from_ref(next)].concat())
            })
            .collect();
        if examples.len() > 27 {
            return None;
        }
    }
    let (with_bounds, names, clause) = generics.split_for_impl();
    let mut plain = generics.clone();
    plain.where_clause = None;
    for parameter in &mut plain.params {
        match parameter {
            GenericParam::Lifetime(parameter) => parameter.bounds.clear(),
            GenericParam::Type(parameter) => parameter.bounds.clear(),
            GenericParam::Const(_) => {}
        }
    }
    let (without_bounds, ..) = plain.split_for_impl();
    // No name of the user's can be one of these.
    let [types, otherwise] = ["Types", "Otherwise"].map(|name| Ident::new(name, Span::mixed_site()));
    Some(quote!({
        struct #types #without_bounds (::core::marker::PhantomData<(#(#used,)*)>);
        trait #otherwise {
            const FIT: usize = 0;
        }
        impl #without_bounds #otherwise for #types #names {}
        impl #with_bounds #types #names #clause {
            const FIT: usize = #body;
        }
        #(<#types<#(#examples),*>>::FIT)+*
    }))
}

/// Looks for a `break` or `continue` outside of all loops.
#[derive(Default)]
struct Strays {
    /// Loops around.
    depth: usize,
    found: bool,
}

impl Visit<'_> for Strays {
    fn visit_expr_break(&mut self, node: &ExprBreak) {
        self.found |= self.depth == 0 && node.label.is_none();
        visit::visit_expr_break(self, node);
    }

    fn visit_expr_continue(&mut self, node: &ExprContinue) {
        self.found |= self.depth == 0;
        visit::visit_expr_continue(self, node);
    }

    fn visit_expr_for_loop(&mut self, node: &ExprForLoop) {
        self.depth += 1;
        visit::visit_expr_for_loop(self, node);
        self.depth -= 1;
    }

    fn visit_expr_while(&mut self, node: &ExprWhile) {
        self.depth += 1;
        visit::visit_expr_while(self, node);
        self.depth -= 1;
    }

    fn visit_expr_loop(&mut self, node: &ExprLoop) {
        self.depth += 1;
        visit::visit_expr_loop(self, node);
        self.depth -= 1;
    }
}
