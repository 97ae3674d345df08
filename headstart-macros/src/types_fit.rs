//! How a type error of a kernel is said once: a constant that stands for the types of the ordinary copy.

use proc_macro2::TokenStream;
use quote::quote;
use syn::visit::{self, Visit};
use syn::{ExprBreak, ExprContinue, ExprForLoop, ExprLoop, ExprWhile, ItemFn, ReturnType};

use crate::verbatim::verbatim;

/// A constant that the compiler cannot compute if the ordinary copy has a type error; none where the function is generic, since
/// a constant is not.
///
/// The recorded copy would repeat each mistake in its own types. Its values go through a type that depends on this constant:
/// where there is none, the compiler gives that type up, and says nothing about what is computed with it. A closure's types are
/// checked with the constant that it stands in, so the constant has the body as one, and never calls it. What is wrong in it
/// is said once: a message that was there already is dropped.
pub fn types_fit(function: &ItemFn) -> Option<TokenStream> {
    let copy = verbatim(function);
    let signature = &copy.sig;
    let output = match &signature.output {
        // A closure does not give its parameters' lifetimes to what it returns.
        ReturnType::Type(_, ty) if quote!(#ty).to_string().contains('&') => return None,
        ReturnType::Type(_, ty) => quote!(#ty),
        ReturnType::Default => quote!(()),
    };
    let is_generic = !signature.generics.params.is_empty() || signature.generics.where_clause.is_some();
    // The compiler has two messages for a `break` that leaves nothing, and the one about closures would be wrong.
    let mut strays = Strays::default();
    strays.visit_block(&copy.block);
    if is_generic || strays.found {
        return None;
    }
    let (inputs, block) = (&signature.inputs, &copy.block);
    Some(quote! {
        #[doc(hidden)]
        #[allow(warnings)]
        const TYPES_FIT: usize = {
            let _ = |#inputs| -> #output #block;
            0
        };
    })
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
