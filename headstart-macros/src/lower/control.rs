//! `if`, loops, labelled blocks, and the ways out of them.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Block, Expr, ExprBlock, ExprBreak, ExprContinue, ExprForLoop, ExprIf, ExprLoop, ExprReturn, ExprWhile,
    Pat, RangeLimits,
};

use super::{Lowering, record_path};
use crate::attributes::{LoopAttributes, none_but_lints};
use crate::diverge::{block_diverges, breaks_to, diverges};
use crate::scope::Binding;

/// The ranges that a `for` loop accepts, in words for messages.
const RANGES: &str = "a `for` loop in a kernel runs over a range; accepted: `a..b`, `a..=b`, `(a..b).step_by(s)`, \
                      `(a..b).rev()`, `(a..b).rev().step_by(s)`, `work_items(n)`";

/// A range after `for … in`, taken apart.
struct Range<'a> {
    start: &'a Expr,
    end: &'a Expr,
    inclusive: bool,
    step: Option<&'a Expr>,
    reversed: bool,
}

impl Lowering {
    /// `if c { … } else { … }`.
    pub fn conditional(&mut self, conditional: &ExprIf) -> TokenStream {
        let span = conditional.if_token.span;
        let record = record_path(span);
        if matches!(&*conditional.cond, Expr::Let(_)) {
            return self.refuse(conditional.cond.span(), "`if let` is not accepted in a kernel");
        }
        let (at, cond) = (self.at(span), self.value(&conditional.cond));
        let branch = self.fresh("branch", span);
        let then = self.block(&conditional.then_branch);
        let Some((_, otherwise)) = &conditional.else_branch else {
            return quote_spanned!(span=> {
                let #branch = #record::begin_if::<()>(#at, #cond);
                #then;
                #record::end_if(#branch)
            });
        };
        let then_value = !block_diverges(&conditional.then_branch);
        let otherwise_value = !diverges(otherwise);
        let otherwise = self.expression(otherwise);
        let yielding = |value: bool, tokens: TokenStream| {
            if value {
                let result = self.fresh("result", span);
                quote_spanned!(span=> { let #result = #tokens; #record::yield_if(#branch, #result); })
            } else {
                quote_spanned!(span=> #tokens;)
            }
        };
        let (then, otherwise) = (yielding(then_value, then), yielding(otherwise_value, otherwise));
        // With no side that completes there is no value, and nothing for the compiler to infer one from.
        let no_value = (!then_value && !otherwise_value).then(|| quote!(::<()>));
        quote_spanned!(span=> {
            let #branch = #record::begin_if #no_value (#at, #cond);
            #then
            #record::begin_else(#branch);
            #otherwise
            #record::end_if(#branch)
        })
    }

    /// `'a: { … }` and `{ … }`.
    pub fn labelled_block(&mut self, block: &ExprBlock) -> TokenStream {
        let Some(label) = &block.label else {
            return self.block(&block.block);
        };
        let span = label.name.span();
        let record = record_path(span);
        let at = self.at(span);
        let scope = self.targets.enter(Some(label), false);
        let body = self.block(&block.block);
        self.targets.leave();
        let completes = !block_diverges(&block.block);
        let no_value =
            (!completes && !breaks_to(&block.block, Some(&label.name), false)).then(|| quote!(::<()>));
        let body = if completes {
            let result = self.fresh("result", span);
            quote_spanned!(span=> let #result = #body; #record::yield_block(#scope, #result);)
        } else {
            quote_spanned!(span=> #body;)
        };
        quote_spanned!(span=> {
            let #scope = #record::begin_block #no_value (#at);
            #body
            #record::end_block(#scope)
        })
    }

    /// `loop { … }`.
    pub fn endless_loop(&mut self, endless: &ExprLoop) -> TokenStream {
        let span = endless.loop_token.span;
        let record = record_path(span);
        let Some(wishes) = self.wishes(&endless.attrs) else {
            return quote!(());
        };
        let label = endless.label.as_ref();
        let left = breaks_to(&endless.body, label.map(|label| &label.name), true);
        let no_value = (!left).then(|| quote!(::<()>));
        let (at, name) = (self.at(span), self.loop_name(label, None));
        let scope = self.targets.enter(label, true);
        let body = self.block(&endless.body);
        self.targets.leave();
        quote_spanned!(span=> {
            let #scope = #record::begin_loop #no_value (#at, #name, #wishes);
            #body;
            #record::end_loop(#scope)
        })
    }

    /// `while c { … }`.
    pub fn while_loop(&mut self, conditional: &ExprWhile) -> TokenStream {
        let span = conditional.while_token.span;
        let record = record_path(span);
        if matches!(&*conditional.cond, Expr::Let(_)) {
            return self.refuse(conditional.cond.span(), "`while let` is not accepted in a kernel");
        }
        let Some(wishes) = self.wishes(&conditional.attrs) else {
            return quote!(());
        };
        let label = conditional.label.as_ref();
        let (at, name) = (self.at(span), self.loop_name(label, None));
        let scope = self.targets.enter(label, true);
        let cond = self.value(&conditional.cond);
        let body = self.block(&conditional.body);
        self.targets.leave();
        quote_spanned!(span=> {
            let #scope = #record::begin_loop::<()>(#at, #name, #wishes);
            #record::go_on_if(#at, #scope, #cond);
            #body;
            #record::end_loop(#scope)
        })
    }

    /// `for i in a..b { … }`.
    pub fn for_loop(&mut self, counted: &ExprForLoop) -> TokenStream {
        let span = counted.for_token.span;
        let record = record_path(span);
        let Some(wishes) = self.wishes(&counted.attrs) else {
            return quote!(());
        };
        let work = work_of_group(&counted.expr);
        let range = take_apart(&counted.expr);
        if work.is_none() && range.is_none() {
            return self.refuse(counted.expr.span(), RANGES);
        }
        let label = counted.label.as_ref();
        let range_span = counted.expr.span();
        let (at, range_at) = (self.at(span), self.at(range_span));
        let tokens = match (work, range) {
            (Some(count), _) => {
                let count = self.value(count);
                quote_spanned!(range_span=> #record::work_items(#range_at, #count))
            }
            (None, Some(range)) => self.range(range_span, &range),
            (None, None) => return quote!(()),
        };
        let tokens = self.if_types_fit(range_span, tokens);
        let (counter, binding) = match &*counted.pat {
            Pat::Wild(_) => (None, Binding::Value),
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => match name.mutability {
                Some(_) => (Some(name.ident.clone()), Binding::Variable),
                None => (Some(name.ident.clone()), Binding::Value),
            },
            other => return self.refuse(other.span(), "the counter of a `for` loop is a plain name or `_`"),
        };
        let name = self.loop_name(label, counter.as_ref());
        let scope = self.targets.enter(label, true);
        self.scopes.enter();
        let declaration = counter.map(|counter| {
            self.scopes.declare(&counter, binding);
            let text = counter.to_string();
            match binding {
                Binding::Variable => quote_spanned!(counter.span()=>
                    let #counter = #record::variable(#text, #record::counter(#scope));
                ),
                _ => quote_spanned!(counter.span()=>
                    let #counter = #record::named(#text, #record::counter(#scope));
                ),
            }
        });
        let body = self.block(&counted.body);
        self.scopes.leave();
        self.targets.leave();
        let after = work.map(|_| quote_spanned!(range_span=> #record::after_work_items(#range_at);));
        quote_spanned!(span=> {
            let #scope = #record::begin_for(#at, #name, #wishes, #tokens);
            #declaration
            #body;
            #record::end_loop(#scope);
            #after
        })
    }

    /// A range of numbers.
    fn range(&mut self, span: Span, range: &Range<'_>) -> TokenStream {
        let record = record_path(span);
        let at = self.at(span);
        let (start, end) = (self.value(range.start), self.value(range.end));
        let inclusive = range.inclusive;
        let mut tokens = quote_spanned!(span=> #record::range(#at, #start, #end, #inclusive));
        if range.reversed {
            tokens.extend(quote_spanned!(span=> .rev()));
        }
        if let Some(step) = range.step {
            let step = self.value(step);
            tokens.extend(quote_spanned!(span=> .step_by(#step)));
        }
        tokens
    }

    /// The name of a loop in plans: its label, or else the name of its counter.
    fn loop_name(&self, label: Option<&syn::Label>, counter: Option<&Ident>) -> String {
        match (label, counter) {
            (Some(label), _) => label.name.ident.to_string(),
            (None, Some(counter)) => counter.to_string(),
            (None, None) => String::new(),
        }
    }

    fn wishes(&mut self, attributes: &[syn::Attribute]) -> Option<TokenStream> {
        match LoopAttributes::read(attributes) {
            Ok(read) => Some(read.tokens()),
            Err(error) => {
                self.refuse_with(error);
                None
            }
        }
    }

    /// `break`, with or without label and value.
    pub fn leave_loop(&mut self, leave: &ExprBreak) -> TokenStream {
        if let Err(error) = none_but_lints(&leave.attrs) {
            return self.refuse_with(error);
        }
        let span = leave.break_token.span;
        let record = record_path(span);
        let Some(handle) = self
            .targets
            .find(leave.label.as_ref())
            .map(|target| target.handle.clone())
        else {
            // The ordinary copy has the compiler's own message.
            return quote!(());
        };
        let at = self.at(span);
        let value = match &leave.expr {
            Some(value) => self.value(value),
            None => quote!(()),
        };
        quote_spanned!(span=> #record::leave(#at, #handle, #value))
    }

    /// `continue`, with or without label.
    pub fn next_iteration(&mut self, next: &ExprContinue) -> TokenStream {
        let span = next.continue_token.span;
        let record = record_path(span);
        let Some(handle) = self
            .targets
            .find(next.label.as_ref())
            .map(|target| target.handle.clone())
        else {
            return quote!(());
        };
        let at = self.at(span);
        quote_spanned!(span=> #record::next_iteration(#at, #handle))
    }

    /// `return`: ends the work-item, or leaves the device function.
    pub fn end_function(&mut self, end: &ExprReturn) -> TokenStream {
        let span = end.return_token.span;
        let record = record_path(span);
        let at = self.at(span);
        let value = match &end.expr {
            Some(value) => self.value(value),
            None => quote!(()),
        };
        match &self.function {
            Some(function) => quote_spanned!(span=> #record::leave(#at, #function, #value)),
            None => quote_spanned!(span=> { let () = #value; #record::end_work_item(#at) }),
        }
    }

    /// The body of a device function, whose value leaves through its handle.
    pub fn function_body(mut self, function: &Ident, body: &Block) -> syn::Result<TokenStream> {
        let record = record_path(function.span());
        let completes = !block_diverges(body);
        let result = self.fresh("result", function.span());
        self.function = Some(function.clone());
        let tokens = self.body(body)?;
        Ok(if completes {
            quote!(let #result = #tokens; #record::yield_block(#function, #result);)
        } else {
            quote!(#tokens;)
        })
    }
}

/// The count of `work_items(count)`.
fn work_of_group(expression: &Expr) -> Option<&Expr> {
    match expression {
        Expr::Paren(inner) => work_of_group(&inner.expr),
        Expr::Group(inner) => work_of_group(&inner.expr),
        Expr::Call(call) => match &*call.func {
            Expr::Path(path) if path.path.is_ident("work_items") && call.args.len() == 1 => call.args.first(),
            _ => None,
        },
        _ => None,
    }
}

/// Takes `(a..b).rev().step_by(s)` apart; nothing if it is no range that a loop can run over.
///
/// `.step_by(s).rev()` starts at an end that needs a division to find, so it is left out.
fn take_apart(expression: &Expr) -> Option<Range<'_>> {
    match expression {
        Expr::Paren(inner) => take_apart(&inner.expr),
        Expr::Group(inner) => take_apart(&inner.expr),
        Expr::Range(range) => Some(Range {
            start: range.start.as_deref()?,
            end: range.end.as_deref()?,
            inclusive: matches!(range.limits, RangeLimits::Closed(_)),
            step: None,
            reversed: false,
        }),
        Expr::MethodCall(call) if call.turbofish.is_none() => {
            let mut range = take_apart(&call.receiver)?;
            match (call.method.to_string().as_str(), call.args.len()) {
                ("rev", 0) if range.step.is_none() && !range.reversed => range.reversed = true,
                ("step_by", 1) if range.step.is_none() => range.step = call.args.first(),
                _ => return None,
            }
            Some(range)
        }
        _ => None,
    }
}
