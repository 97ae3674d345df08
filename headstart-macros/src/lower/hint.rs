//! Prefetches, and pointers to elements: calls whose arguments are places in memory, not values.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprCall, ExprPath, ExprRange, RangeLimits};

use super::assign::without_parentheses;
use super::place::To;
use super::{Lowering, record_path};
use crate::signature::device_form;

/// `&memory[index]` in an argument: the memory and the index.
pub fn element(argument: &Expr) -> Option<(&Expr, &Expr)> {
    match without_parentheses(argument) {
        Expr::Reference(reference) if reference.mutability.is_none() => {
            match without_parentheses(&reference.expr) {
                Expr::Index(index) => Some((&*index.expr, &*index.index)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// `values[i]` in `&values[i]`, or a part of it.
pub fn place_of(argument: &Expr) -> Option<&Expr> {
    match without_parentheses(argument) {
        Expr::Reference(reference) if reference.mutability.is_none() => {
            let place = without_parentheses(&reference.expr);
            matches!(place, Expr::Index(_) | Expr::Field(_)).then_some(place)
        }
        _ => None,
    }
}

/// `&memory[a..b]` in an argument: the memory and the range.
pub fn elements(argument: &Expr) -> Option<(&Expr, &ExprRange)> {
    let (memory, index) = element(argument)?;
    match without_parentheses(index) {
        Expr::Range(range) => Some((memory, range)),
        _ => None,
    }
}

/// The `n` of `a..a + n`.
fn counted(range: &ExprRange) -> Option<&Expr> {
    let (Some(start), Some(end), RangeLimits::HalfOpen(_)) = (&range.start, &range.end, &range.limits) else {
        return None;
    };
    match without_parentheses(end) {
        Expr::Binary(sum) if matches!(sum.op, BinOp::Add(_)) => {
            let same = sum.left.to_token_stream().to_string() == start.to_token_stream().to_string();
            same.then_some(&*sum.right)
        }
        _ => None,
    }
}

impl Lowering {
    /// `prefetch(wanted, properties)`, `joint_prefetch(group, wanted, properties)`; properties may be left out.
    pub(super) fn prefetch(&mut self, call: &ExprCall, joint: bool) -> TokenStream {
        let span = call.span();
        let record = record_path(span);
        let arguments: Vec<&Expr> = call.args.iter().collect();
        let (group, rest) = match (joint, &arguments[..]) {
            (true, [group, rest @ ..]) => (Some(*group), rest),
            (_, rest) => (None, rest),
        };
        let (wanted, properties) = match rest {
            [wanted] => (*wanted, quote!(())),
            // A prefetch's level is not a value of the kernel: it is known when the kernel is built.
            [wanted, properties] => {
                let known = self.if_types_fit(properties.span(), properties.to_token_stream());
                (*wanted, known)
            }
            _ => {
                let accepted = match joint {
                    true => {
                        "accepted: `joint_prefetch(sub_group(), &values[i..i + n], L2)`, with `sub_group()` or \
                             `work_group()`, and a level, several, or none"
                    }
                    false => {
                        "accepted: `prefetch(&values[i], L1)`, with a level `L1` to `L4`, `L1.nontemporal()`, \
                              several `[L1, L4]`, or none"
                    }
                };
                return self.refuse(span, accepted);
            }
        };
        let at = self.at(span);
        let group = group.map(|group| self.group(group));
        let wanted = self.wanted(wanted);
        match group {
            Some(group) => {
                quote_spanned!(span=> #record::hints::joint(#at, #group, #wanted, #properties))
            }
            None => quote_spanned!(span=> #record::hints::prefetch(#at, #wanted, #properties)),
        }
    }

    /// The group of a joint prefetch. A constant's name is passed as it is: only a group is accepted, no value of the kernel.
    fn group(&mut self, group: &Expr) -> TokenStream {
        if let Expr::Path(path) = without_parentheses(group)
            && path
                .path
                .get_ident()
                .is_none_or(|name| self.scopes.find(name).is_none())
        {
            return self.if_types_fit(path.span(), quote!(#path));
        }
        self.value(group)
    }

    /// The target of a prefetch: elements of a slice, a pointer, elements of a view.
    fn wanted(&mut self, wanted: &Expr) -> TokenStream {
        let span = wanted.span();
        let record = record_path(span);
        let at = self.at(span);
        if let Some((memory, range)) = elements(wanted) {
            let Some(memory) = self.memory(memory) else {
                return quote!(());
            };
            let first = match &range.start {
                Some(start) => self.value(start),
                None => quote_spanned!(span=> #record::literal(0)),
            };
            if let Some(count) = counted(range) {
                let count = self.value(count);
                return quote_spanned!(span=> #record::hints::elements(#at, #memory, #first, #count));
            }
            let end = match (&range.end, &range.limits) {
                (None, _) => quote_spanned!(span=> #record::len(#at, #memory)),
                (Some(end), RangeLimits::HalfOpen(_)) => self.value(end),
                (Some(end), RangeLimits::Closed(_)) => {
                    let end = self.value(end);
                    quote_spanned!(span=> #record::add(#at, #end, #record::literal(1)))
                }
            };
            return quote_spanned!(span=> #record::hints::elements_to(#at, #memory, #first, #end));
        }
        if let Some(place) = place_of(wanted).and_then(|place| self.place(place, To::Read)) {
            // The memory of an element by itself is known to the compiler.
            let memory = element(wanted)
                .map(|(memory, _)| memory)
                .filter(|memory| self.is_memory(memory));
            let memory = memory.map(|memory| {
                let memory = memory.to_token_stream();
                quote_spanned!(span=> #record::hints::global(#memory);)
            });
            return quote_spanned!(span=> { #memory #record::hints::element(#at, #place) });
        }
        if let Expr::Reference(_) | Expr::Index(_) | Expr::Lit(_) = without_parentheses(wanted) {
            return self.refuse(
                span,
                "accepted: elements of a slice, `&values[i]` or `&values[i..i + n]`, a pointer, elements of a view",
            );
        }
        self.value(wanted)
    }

    /// `global_ptr(&values[i])`.
    pub(super) fn pointer(&mut self, call: &ExprCall, function: &ExprPath) -> TokenStream {
        let span = call.span();
        let (Some((memory, index)), 1) = (call.args.first().and_then(element), call.args.len()) else {
            return self.refuse(
                span,
                "a pointer is made from an element of a slice or array: `global_ptr(&values[i])`",
            );
        };
        let Some(memory) = self.memory(memory) else {
            return quote!(());
        };
        let (at, index) = (self.at(span), self.value(index));
        let function = device_form(&function.path);
        quote_spanned!(span=> #function(#at, #memory, #index))
    }

    /// `lsc_load(p, 0, LSC_LDCC_L1C_L3C)`: the control is no value of the kernel's.
    pub(super) fn with_control(&mut self, call: &ExprCall, function: &ExprPath) -> TokenStream {
        let (at, function) = (self.at(call.span()), device_form(&function.path));
        let Some((control, values)) = call
            .args
            .iter()
            .collect::<Vec<_>>()
            .split_last()
            .map(|(last, rest)| (*last, rest.to_vec()))
        else {
            return self.refuse(
                call.span(),
                "a pointer, an element offset and a cache control are missing",
            );
        };
        let values: Vec<TokenStream> = values.into_iter().map(|value| self.value(value)).collect();
        quote_spanned!(call.span()=> #function(#at, #(#values,)* #control))
    }
}
