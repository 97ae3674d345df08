//! Blocks, statements and `let`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Block, Expr, Item, Local, Pat, PatIdent, Stmt, Type};

use super::{Lowering, record_path};
use crate::attributes::none_but_lints;
use crate::scope::Binding;
use crate::signature::{recorded_element, recorded_type};

impl Lowering {
    /// A block, braces included; its value is that of its last expression.
    pub fn block(&mut self, block: &Block) -> TokenStream {
        self.scopes.enter();
        let last = block.stmts.len().checked_sub(1);
        let mut statements = TokenStream::new();
        for (index, statement) in block.stmts.iter().enumerate() {
            let is_value = Some(index) == last && matches!(statement, Stmt::Expr(_, None));
            let lowered = self.statement(statement);
            statements.extend(if is_value { lowered } else { quote!(#lowered;) });
        }
        self.scopes.leave();
        quote_spanned!(block.span()=> { #statements })
    }

    fn statement(&mut self, statement: &Stmt) -> TokenStream {
        match statement {
            Stmt::Local(local) => self.local(local),
            Stmt::Expr(expression, _) => self.expression(expression),
            // They mean the same in both copies: constants, types and imports, nested device functions.
            Stmt::Item(item @ (Item::Const(_) | Item::Use(_) | Item::Type(_) | Item::Fn(_))) => quote!(#item),
            Stmt::Item(item) => self.refuse(
                item.span(),
                "a kernel cannot declare this; accepted inside: `const`, `use`, `type`, and `#[device_fn] fn`",
            ),
            Stmt::Macro(call) => self.macro_call(&call.mac),
        }
    }

    fn local(&mut self, local: &Local) -> TokenStream {
        if let Err(error) = none_but_lints(&local.attrs) {
            return self.refuse_with(error);
        }
        let (pattern, ty) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            pattern => (pattern, None),
        };
        let Some(init) = &local.init else {
            return self.declaration(pattern, ty);
        };
        if let Some((otherwise, _)) = &init.diverge {
            return self.refuse(
                otherwise.span,
                "`let … else` is not accepted in a kernel; every pattern here always matches",
            );
        }
        if let Some(array) = self.array(pattern, ty, &init.expr) {
            return array;
        }
        let value = self.value(&init.expr);
        let annotation = match ty.map(|ty| recorded_type(ty, &self.generics)).transpose() {
            Ok(ty) => ty.map(|ty| quote!(: #ty)),
            Err(error) => return self.refuse_with(error),
        };
        match pattern {
            Pat::Ident(name) => {
                let ident = &name.ident;
                let initial = self.fresh("initial", ident.span());
                let made = self.named(name, quote!(#initial));
                quote_spanned!(local.span()=> let #ident = { let #initial #annotation = #value; #made })
            }
            pattern => {
                let (mut variables, mut before) = (Vec::new(), Vec::new());
                let lowered = self.pattern(pattern, &mut variables, &mut before);
                quote_spanned!(local.span()=> #(#before)* let #lowered #annotation = #value; #(#variables)*)
            }
        }
    }

    /// The value or variable that a plain name is bound to, made from `initial`; declares the name.
    fn named(&mut self, name: &PatIdent, initial: TokenStream) -> TokenStream {
        let record = record_path(name.span());
        if name.by_ref.is_some() || name.subpat.is_some() {
            return self.refuse(
                name.span(),
                "a kernel binds plain names: `x`, `mut x`, `_`, or tuples of them, `[x, y]` of a vector, `P { x, y }` of a struct",
            );
        }
        let text = name.ident.to_string();
        if name.mutability.is_some() {
            self.scopes.declare(&name.ident, Binding::Variable);
            quote_spanned!(name.span()=> #record::variable(#text, #initial))
        } else {
            self.scopes.declare(&name.ident, Binding::Value);
            quote_spanned!(name.span()=> #record::named(#text, #initial))
        }
    }

    /// `let x;` and `let x: T;`: assigned later, so a variable whether it is `mut` or not.
    fn declaration(&mut self, pattern: &Pat, ty: Option<&Type>) -> TokenStream {
        let record = record_path(pattern.span());
        let Pat::Ident(name) = pattern else {
            return self.refuse(
                pattern.span(),
                "without a value only a plain name can be declared: `let x;`",
            );
        };
        let annotation = match ty.map(|ty| recorded_type(ty, &self.generics)).transpose() {
            Ok(ty) => ty.map(|ty| quote!(: #record::Variable<#ty>)),
            Err(error) => return self.refuse_with(error),
        };
        self.scopes.declare(&name.ident, Binding::Variable);
        let (ident, text) = (&name.ident, name.ident.to_string());
        quote_spanned!(name.span()=> let #ident #annotation = #record::declared(#text))
    }

    /// A pattern with the `mut` names taken out; `variables` gets the statements that turn them into
    /// variables, `before` the types that it names.
    pub(super) fn pattern(
        &mut self,
        pattern: &Pat,
        variables: &mut Vec<TokenStream>,
        before: &mut Vec<TokenStream>,
    ) -> TokenStream {
        match pattern {
            Pat::Wild(wild) => quote!(#wild),
            Pat::Paren(inner) => self.pattern(&inner.pat, variables, before),
            Pat::Ident(name) => {
                let ident = &name.ident;
                let made = self.named(name, quote!(#ident));
                variables.push(quote_spanned!(name.span()=> let #ident = #made;));
                quote!(#ident)
            }
            // The scalars of a vector.
            Pat::Slice(slice) => {
                let parts: Vec<TokenStream> = slice
                    .elems
                    .iter()
                    .map(|part| self.pattern(part, variables, before))
                    .collect();
                quote_spanned!(slice.span()=> [#(#parts),*])
            }
            Pat::Struct(fields) => self.struct_pattern(fields, variables, before),
            Pat::Tuple(tuple) => {
                let parts: Vec<TokenStream> = tuple
                    .elems
                    .iter()
                    .map(|part| self.pattern(part, variables, before))
                    .collect();
                quote_spanned!(tuple.span()=> (#(#parts,)*))
            }
            other => self.refuse(
                other.span(),
                "a kernel binds plain names: `x`, `mut x`, `_`, or tuples of them, `[x, y]` of a vector, `P { x, y }` of a struct",
            ),
        }
    }

    /// `let a = [x; N];`, `let a = [x, y];`, `let a: [T; N] = shared();`: memory, not a value.
    fn array(&mut self, pattern: &Pat, ty: Option<&Type>, init: &Expr) -> Option<TokenStream> {
        let record = record_path(pattern.span());
        let Pat::Ident(name) = pattern else { return None };
        let text = name.ident.to_string();
        let at = self.at(init.span());
        let made = match init {
            Expr::Repeat(repeat) => {
                let (value, length) = (self.value(&repeat.expr), &repeat.len);
                quote_spanned!(init.span()=> #record::array_of::<_, { #length }>(#at, #text, #value))
            }
            Expr::Array(array) => {
                let values: Vec<TokenStream> =
                    array.elems.iter().map(|element| self.value(element)).collect();
                quote_spanned!(init.span()=> #record::array_from(#at, #text, [#(#values),*]))
            }
            Expr::Call(call) if is_shared(&call.func) => {
                if let Some(argument) = call.args.first() {
                    return Some(self.refuse(
                        argument.span(),
                        "`shared` takes no arguments: `shared::<f32, 256>()`",
                    ));
                }
                let Expr::Path(function) = &*call.func else {
                    return None;
                };
                let arguments = function.path.segments.last().map(|segment| &segment.arguments);
                let arguments = match arguments {
                    Some(syn::PathArguments::AngleBracketed(angle)) => {
                        let list = &angle.args;
                        Some(quote!(::<#list>))
                    }
                    // Nothing could tell the element from its recorded form.
                    _ => match ty {
                        Some(Type::Array(array)) => {
                            let (element, length) = (&array.elem, &array.len);
                            Some(quote!(::<#element, { #length }>))
                        }
                        _ => None,
                    },
                };
                quote_spanned!(init.span()=> #record::shared_array #arguments (#at, #text))
            }
            // `&a[i..j]`, `&mut a[i..]`: a part of memory is memory.
            Expr::Reference(reference) => match &*reference.expr {
                Expr::Index(index) => {
                    let Expr::Range(range) = &*index.index else {
                        return None;
                    };
                    if let Some(ty) = ty {
                        return Some(self.refuse(ty.span(), "a part of a slice needs no type"));
                    }
                    let mutable = reference.mutability.is_some();
                    let part = self
                        .part(&index.expr, range, mutable)
                        .unwrap_or_else(|| quote!(()));
                    self.scopes.declare(&name.ident, Binding::Memory);
                    let ident = &name.ident;
                    return Some(quote_spanned!(pattern.span()=> let #ident = #part));
                }
                _ => return None,
            },
            _ => return None,
        };
        let annotation = match ty {
            None => None,
            Some(Type::Array(array)) => {
                let length = &array.len;
                let element = match recorded_element(&array.elem, &self.generics) {
                    Ok(element) => element,
                    Err(error) => return Some(self.refuse_with(error)),
                };
                Some(quote_spanned!(array.span()=> : #record::Array<#element, { #length }>))
            }
            Some(other) => {
                return Some(self.refuse(other.span(), "the type of an array is `[T; N]`"));
            }
        };
        self.scopes.declare(&name.ident, Binding::Array);
        let ident = &name.ident;
        Some(quote_spanned!(pattern.span()=> let #ident #annotation = #made))
    }
}

fn is_shared(function: &Expr) -> bool {
    matches!(function, Expr::Path(path)
        if path.path.segments.last().is_some_and(|segment| segment.ident == "shared"))
}
