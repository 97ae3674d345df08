//! The arguments of `#[kernel(...)]` and the attributes of loops.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Ident, Lit, LitStr, Meta, Result, Token};

use crate::lower::record_path;

/// The text between the parentheses of `#[kernel(...)]`.
#[derive(Default)]
pub struct KernelArguments {
    /// `work_group = N` or `work_group = (X, Y, Z)`: the size a launch must have, one to three dimensions.
    pub work_group: Option<Vec<Expr>>,
    /// `sub_group = N`.
    pub sub_group: Option<Expr>,
    /// `accuracy = Accuracy::OpenCl`.
    pub accuracy: Option<Expr>,
}

impl Parse for KernelArguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut arguments = KernelArguments::default();
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            let value: Expr = input.parse()?;
            match name.to_string().as_str() {
                "work_group" if arguments.work_group.is_none() => {
                    arguments.work_group = Some(dimensions(value)?);
                }
                "sub_group" if arguments.sub_group.is_none() => arguments.sub_group = Some(value),
                "accuracy" if arguments.accuracy.is_none() => arguments.accuracy = Some(value),
                "work_group" | "sub_group" | "accuracy" => {
                    return Err(Error::new(name.span(), format!("`{name}` is given twice")));
                }
                _ => {
                    return Err(Error::new(
                        name.span(),
                        format!(
                            "unknown argument `{name}`; accepted: `work_group = SIZE`, `sub_group = SIZE`, `accuracy = \
                             Accuracy::OpenCl`"
                        ),
                    ));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}

fn dimensions(value: Expr) -> Result<Vec<Expr>> {
    match value {
        Expr::Tuple(tuple) if (1..=3).contains(&tuple.elems.len()) => Ok(tuple.elems.into_iter().collect()),
        Expr::Tuple(tuple) => Err(Error::new(
            tuple.span(),
            "a work-group has one, two or three dimensions: `work_group = 128` or `work_group = (16, 8)`",
        )),
        one => Ok(vec![one]),
    }
}

/// The author's requests for a loop.
#[derive(Default)]
pub struct LoopAttributes {
    unroll: Option<Unroll>,
    plan: Option<LitStr>,
}

enum Unroll {
    Full,
    By(Box<Expr>),
}

/// Attributes that only speak to the compiler's lints: they stay in the ordinary function.
const LINTS: [&str; 5] = ["allow", "expect", "warn", "deny", "forbid"];

/// Whether this attribute is for us, and so must not reach the compiler.
pub fn is_ours(attribute: &Attribute) -> bool {
    ["unroll", "prefetch"]
        .iter()
        .any(|name| attribute.path().is_ident(name))
}

/// Refuses attributes where none of ours can stand.
pub fn none_but_lints(attributes: &[Attribute]) -> Result<()> {
    for attribute in attributes {
        if is_ours(attribute) {
            return Err(Error::new(
                attribute.span(),
                "this attribute belongs on a loop: `for`, `while` or `loop`",
            ));
        }
        if !LINTS.iter().any(|name| attribute.path().is_ident(name)) {
            return Err(Error::new(
                attribute.span(),
                "inside a kernel only lint attributes are accepted, and `#[unroll]`, `#[unroll(N)]` and \
                 `#[prefetch(\"PLAN\")]` on loops",
            ));
        }
    }
    Ok(())
}

impl LoopAttributes {
    /// Reads the attributes of a loop.
    pub fn read(attributes: &[Attribute]) -> Result<LoopAttributes> {
        let mut read = LoopAttributes::default();
        for attribute in attributes {
            if attribute.path().is_ident("unroll") && read.unroll.is_none() {
                read.unroll = Some(match &attribute.meta {
                    Meta::Path(_) => Unroll::Full,
                    _ => Unroll::By(Box::new(attribute.parse_args()?)),
                });
            } else if attribute.path().is_ident("prefetch") && read.plan.is_none() {
                let plan: LitStr = attribute.parse_args().map_err(|error| {
                    Error::new(
                        error.span(),
                        "a plan is a string: `#[prefetch(\"values=rolling-async:4\")]`",
                    )
                })?;
                read.plan = Some(plan);
            } else if is_ours(attribute) {
                return Err(Error::new(attribute.span(), "this attribute is given twice"));
            } else {
                none_but_lints(std::slice::from_ref(attribute))?;
            }
        }
        Ok(read)
    }

    /// The expression that builds the loop's wishes.
    pub fn tokens(&self) -> TokenStream {
        let record = record_path(proc_macro2::Span::mixed_site());
        let mut tokens = quote_spanned!(proc_macro2::Span::mixed_site()=> #record::Wishes::none());
        match &self.unroll {
            None => {}
            Some(Unroll::Full) => {
                tokens.extend(quote_spanned!(proc_macro2::Span::mixed_site()=> .unroll_full()))
            }
            Some(Unroll::By(count)) => {
                tokens.extend(quote_spanned!(count.span()=> .unroll_by((#count) as u64)));
            }
        }
        if let Some(plan) = &self.plan {
            tokens.extend(quote_spanned!(plan.span()=> .plan(#plan)));
        }
        tokens
    }
}

/// Whether an expression is an integer literal without a type of its own.
pub fn is_untyped_integer(expression: &Expr) -> bool {
    matches!(expression, Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) if literal.suffix().is_empty())
}

/// Whether an expression is a float literal without a type of its own.
pub fn is_untyped_float(expression: &Expr) -> bool {
    matches!(expression, Expr::Lit(ExprLit { lit: Lit::Float(literal), .. }) if literal.suffix().is_empty())
}
