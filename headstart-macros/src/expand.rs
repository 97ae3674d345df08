//! The expansion of `#[kernel]` and `#[device_fn]`: the ordinary function, and a type of the same name that has the recorded
//! one.

mod calls;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, ItemFn, Result, ReturnType, parse_quote};

use crate::attributes::KernelArguments;
use crate::lower::{Lowering, record_path};
use crate::plain;
use crate::scope::Binding;
use crate::signature::{
    Parameter, ParameterKind, parameters, recorded_element, recorded_type, repaired, without_lifetimes,
};
use crate::types_fit::types_fit;
use crate::verbatim::verbatim;

/// Expands `#[kernel(...)]`.
pub fn kernel(arguments: &KernelArguments, function: &ItemFn) -> TokenStream {
    let (signature, error) = repaired(&function.sig);
    let Some(error) = error else {
        return expanded(function, recorded_kernel(arguments, function));
    };
    // The body fits the signature that was written, if any.
    let stub = stub(&ItemFn {
        sig: signature,
        ..function.clone()
    });
    match recorded_kernel(arguments, &stub) {
        Ok((recorded, _)) => expanded(&stub, Ok((recorded, Some(error)))),
        Err(_) => refused(function, &error),
    }
}

/// The function without its body: nothing is said of one that is refused but why.
fn stub(function: &ItemFn) -> ItemFn {
    let mut stub = ItemFn {
        block: parse_quote!({ ::core::unimplemented!() }),
        ..function.clone()
    };
    stub.attrs.push(parse_quote!(#[allow(unused)]));
    stub
}

/// Expands `#[device_fn]`.
pub fn device_function(function: &ItemFn) -> TokenStream {
    expanded(function, recorded_device_function(function))
}

/// What an attribute makes: the recorded items, of a body that was refused with its messages.
type Recorded = Result<(TokenStream, Option<Error>)>;

/// Where only the body is refused, all that others can name is there: nothing is said of its uses.
fn expanded(function: &ItemFn, recorded: Recorded) -> TokenStream {
    match recorded {
        Ok((recorded, error)) => {
            let Some(error) = error else {
                return together(function, &recorded);
            };
            let (together, messages) = (together(&stub(function), &recorded), error.to_compile_error());
            quote!(#together #messages)
        }
        Err(error) => refused(function, &error),
    }
}

/// A body that ran into nothing, and its messages instead of one that was refused.
fn or_messages(body: Result<TokenStream>) -> (TokenStream, Option<Error>) {
    match body {
        Ok(body) => (body, None),
        Err(error) => (quote!(::core::unimplemented!()), Some(error)),
    }
}

/// The ordinary function beside the type with the recorded one.
///
/// The type has braces so that its name is free for the function; one `use` then imports both.
fn together(function: &ItemFn, recorded: &TokenStream) -> TokenStream {
    let ordinary = verbatim(function);
    let (visibility, name) = (&function.vis, &function.sig.ident);
    let documentation = format!("The device form of [`{name}`](fn@{name}).");
    quote! {
        // These lints ask for Rust that a kernel does not have: iterators, ranges as values, `std::mem`.
        #[allow(
            dead_code,
            clippy::explicit_counter_loop,
            clippy::manual_memcpy,
            clippy::manual_range_contains,
            clippy::manual_swap,
            clippy::needless_range_loop,
            clippy::too_many_arguments
        )]
        #ordinary

        #[doc = #documentation]
        #[allow(non_camel_case_types, dead_code)]
        #visibility struct #name {}

        #[automatically_derived]
        #[allow(unused, clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]
        impl #name {
            #recorded
        }
    }
}

/// The ordinary function with the messages; the type stays away, so that nothing else is said.
fn refused(function: &ItemFn, error: &Error) -> TokenStream {
    let (ordinary, messages) = (verbatim(&stub(function)), error.to_compile_error());
    let (visibility, name) = (&function.vis, &function.sig.ident);
    quote! {
        #ordinary
        #[allow(non_camel_case_types, dead_code)]
        #visibility struct #name {}
        #messages
    }
}

fn recorded_kernel(arguments: &KernelArguments, function: &ItemFn) -> Recorded {
    let signature = &function.sig;
    let parameters = parameters(signature, true)?;
    let mut lowering = Lowering::new(None, &signature.generics);
    lowering.plain = plain::beside(function);
    let types_fit = types_fit(function);
    lowering.knows_types_fit = types_fit.is_some();
    let (record, text) = (record_path(signature.ident.span()), signature.ident.to_string());
    let mut declarations = Vec::new();
    let mut constants = Vec::new();
    for Parameter { name, mutable, kind } in &parameters {
        let text = name.to_string();
        let span = name.span();
        let made = match kind {
            ParameterKind::Slice { element, mutable } => {
                lowering.scopes.declare(name, Binding::Memory);
                let function = if *mutable {
                    format_ident!("slice_mut")
                } else {
                    format_ident!("slice")
                };
                let length = length_name(&text, &parameters);
                // Errors of the element are reported at the element.
                let record = record_path(element.span());
                let made = quote_spanned!(element.span()=> #record::#function::<#element>(#text, #length));
                declarations.push(quote_spanned!(span=> let #name = #made;));
                continue;
            }
            ParameterKind::Scalar(ty) => {
                let others = parameters.iter().map(|other| other.name.to_string());
                let record = record_path(ty.span());
                quote_spanned!(ty.span()=> #record::parameter::<#ty>(#text, &[#(#others),*]))
            }
            ParameterKind::View(view) => {
                lowering.scopes.declare(name, Binding::View);
                let (element, dimensions, access) = (&view.element, view.dimensions, view.access());
                let length = length_name(&text, &parameters);
                let others = parameters.iter().map(|other| other.name.to_string());
                declarations.push(quote_spanned!(span=>
                    let #name = #record::views::view::<#element, #dimensions, #access>(#text, #length, &[#(#others),*]);
                ));
                continue;
            }
            ParameterKind::Constant(ty) => {
                constants.push(quote!(#name: #ty));
                quote_spanned!(ty.span()=> #record::literal::<#ty>(#name))
            }
            ParameterKind::Array { .. } | ParameterKind::Reference(_) => {
                return Err(Error::new(span, "a kernel has no parameters of this type"));
            }
        };
        declarations.push(declare(&mut lowering, name, *mutable, made));
    }
    let work_group = arguments
        .work_group
        .as_ref()
        .map(|sizes| quote!(#record::require_work_group(&[#((#sizes) as u64),*]);));
    let sub_group = arguments
        .sub_group
        .as_ref()
        .map(|size| quote!(#record::require_sub_group((#size) as u64);));
    let accuracy = arguments
        .accuracy
        .as_ref()
        .map(|accuracy| quote!(#record::allow_accuracy(#accuracy);));
    let body = lowering.body(&function.block);
    let types_fit = types_fit.filter(|_| body.is_ok());
    let (body, error) = or_messages(body.map(|body| {
        quote! {
            #record::kernel(#text, ::core::file!(), || {
                // Sizes and constants may use the constant parameters, which the next lines hide.
                #work_group
                #sub_group
                #accuracy
                #(#declarations)*
                #body;
            })
        }
    }));

    let generics = without_lifetimes(&signature.generics);
    let (parameters_of, _, clause) = generics.split_for_impl();
    let name = &signature.ident;
    let documentation = format!("Builds the IR of [`{name}`](fn@{name}).");
    let calls = calls::calls(arguments, function, &parameters);
    let items = quote! {
        #types_fit

        #calls

        #[doc = #documentation]
        ///
        /// # Errors
        /// A size in an attribute is zero or too large, a plan on a loop cannot be read, or a device function
        /// calls itself.
        pub fn kernel #parameters_of (#(#constants),*) -> ::headstart::facade::Result<::headstart::facade::Kernel> #clause {
            #body
        }
    };
    Ok((items, error))
}

/// A name for a slice's length that no parameter has.
fn length_name(slice: &str, parameters: &[Parameter]) -> String {
    let mut name = format!("{slice}_length");
    while parameters.iter().any(|parameter| parameter.name == name) {
        name.push('_');
    }
    name
}

/// A name that no name of the user's can meet.
fn mixed(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

fn recorded_device_function(function: &ItemFn) -> Recorded {
    let signature = &function.sig;
    let handle = mixed("function");
    let generics = &signature.generics;
    let mut lowering = Lowering::new(Some(handle.clone()), generics);
    lowering.plain = plain::beside(function);
    let types_fit = types_fit(function);
    lowering.knows_types_fit = types_fit.is_some();
    let record = record_path(signature.ident.span());
    let mut inputs = Vec::new();
    let mut declarations = Vec::new();
    for Parameter { name, mutable, kind } in &parameters(signature, false)? {
        match kind {
            ParameterKind::Slice { element, .. } => {
                lowering.scopes.declare(name, Binding::Memory);
                let element = recorded_element(element, generics)?;
                inputs.push(quote_spanned!(name.span()=> #name: impl #record::AsMemory<#element>));
                declarations
                    .push(quote_spanned!(name.span()=> let #name = #record::AsMemory::memory(#name);));
            }
            ParameterKind::Array { element, length } => {
                lowering.scopes.declare(name, Binding::Memory);
                let element = recorded_element(element, generics)?;
                inputs.push(quote_spanned!(name.span()=> #name: #record::Array<#element, { #length }>));
            }
            ParameterKind::View(view) => {
                lowering.scopes.declare(name, Binding::View);
                let (dimensions, access) = (view.dimensions, view.access());
                let element = recorded_element(&view.element, generics)?;
                inputs.push(
                    quote_spanned!(name.span()=> #name: #record::views::View<#element, #dimensions, #access>),
                );
            }
            ParameterKind::Reference(ty) => {
                lowering.scopes.declare(name, Binding::Reference);
                let ty = recorded_type(ty, generics)?;
                inputs.push(quote_spanned!(name.span()=> #name: #record::Variable<#ty>));
            }
            ParameterKind::Scalar(ty) | ParameterKind::Constant(ty) => {
                let ty = recorded_type(ty, generics)?;
                inputs.push(quote_spanned!(name.span()=> #name: #ty));
                declarations.push(declare(&mut lowering, name, *mutable, quote!(#name)));
            }
        }
    }
    let output = match &signature.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => recorded_type(ty, generics)?,
    };
    let body = lowering.function_body(&handle, &function.block);
    let types_fit = types_fit.filter(|_| body.is_ok());
    let (text, call) = (signature.ident.to_string(), mixed("call"));
    let (body, error) = or_messages(body.map(|body| {
        quote! {
            let ::core::option::Option::Some(#handle) =
                #record::enter_function::<#output>(#call, #text, ::core::file!(), ::core::line!())
            else {
                return #record::absent();
            };
            #(#declarations)*
            #body
            #record::leave_function(#handle)
        }
    }));
    let generics = without_lifetimes(&signature.generics);
    let (parameters_of, _, clause) = generics.split_for_impl();
    let items = quote! {
        #types_fit

        #[doc(hidden)]
        pub fn device #parameters_of (#call: #record::At, #(#inputs),*) -> #output #clause {
            #body
        }
    };
    Ok((items, error))
}

/// Binds a scalar parameter's name to a value, or to a variable if it is `mut`.
fn declare(lowering: &mut Lowering, name: &Ident, mutable: bool, made: TokenStream) -> TokenStream {
    let record = record_path(name.span());
    let text = name.to_string();
    let made = lowering.if_types_fit(name.span(), made);
    if mutable {
        lowering.scopes.declare(name, Binding::Variable);
        quote_spanned!(name.span()=> let #name = #record::variable(#text, #made);)
    } else {
        lowering.scopes.declare(name, Binding::Value);
        quote_spanned!(name.span()=> let #name = #made;)
    }
}

#[cfg(test)]
mod tests;
