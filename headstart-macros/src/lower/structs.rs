//! Structs and vectors as values: literals and patterns.
//!
//! A struct's recorded form is another struct with the same fields. Its name is not known here, so it is given one:
//! `Body { mass: m, ..b }` becomes `{ type Struct = r::Of<Body>; Struct { mass: m, ..b } }`.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{ExprArray, ExprRepeat, ExprStruct, Member, PatStruct};

use super::{Lowering, record_path};

impl Lowering {
    /// `P { x: a, ..b }`.
    pub fn struct_literal(&mut self, literal: &ExprStruct) -> TokenStream {
        let span = literal.span();
        let (alias, declaration) = self.alias(&literal.path);
        let fields: Vec<TokenStream> = literal
            .fields
            .iter()
            .map(|field| {
                let (member, value) = (&field.member, self.value(&field.expr));
                quote_spanned!(field.span()=> #member: #value)
            })
            .collect();
        let rest = literal.rest.as_ref().map(|rest| {
            let rest = self.value(rest);
            quote_spanned!(rest.span()=> ..#rest)
        });
        quote_spanned!(span=> { #declaration #alias { #(#fields,)* #rest } })
    }

    /// A name for a struct's recorded form, and its declaration.
    fn alias(&mut self, path: &syn::Path) -> (Ident, TokenStream) {
        self.aliases += 1;
        let span = path.span();
        let record = record_path(span);
        let alias = Ident::new(&format!("Struct{}", self.aliases), span);
        let declaration = quote_spanned!(span=> type #alias = #record::Of<#path>;);
        (alias, declaration)
    }

    /// `P { x, y: p, .. }` in a `let`; the declaration of its name goes to `before`.
    pub fn struct_pattern(
        &mut self,
        pattern: &PatStruct,
        variables: &mut Vec<TokenStream>,
        before: &mut Vec<TokenStream>,
    ) -> TokenStream {
        let (alias, declaration) = self.alias(&pattern.path);
        before.push(declaration);
        let fields: Vec<TokenStream> = pattern
            .fields
            .iter()
            .map(|field| {
                let member = match &field.member {
                    Member::Named(name) => quote!(#name),
                    Member::Unnamed(number) => quote!(#number),
                };
                let inner = self.pattern(&field.pat, variables, before);
                match field.colon_token {
                    Some(_) => quote_spanned!(field.span()=> #member: #inner),
                    None => inner,
                }
            })
            .collect();
        let rest = &pattern.rest;
        quote_spanned!(pattern.span()=> #alias { #(#fields,)* #rest })
    }

    /// `[x, y]` as a vector.
    pub fn vector(&mut self, array: &ExprArray) -> TokenStream {
        let parts: Vec<TokenStream> = array.elems.iter().map(|part| self.value(part)).collect();
        quote_spanned!(array.span()=> [#(#parts),*])
    }

    /// `[x; N]` as a vector.
    pub fn repeated_vector(&mut self, repeat: &ExprRepeat) -> TokenStream {
        let (value, length) = (self.value(&repeat.expr), &repeat.len);
        quote_spanned!(repeat.span()=> [#value; #length])
    }
}
