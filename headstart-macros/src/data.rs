//! `#[derive(Data)]`: a struct that kernels compute with.
//!
//! Before: `struct Body { mass: f32, at: [f32; 2] }`. After, in short:
//! ```text
//! struct BodyRecorded { mass: Recorded<f32>, at: [Recorded<f32>; 2] }   // what stands for it in a kernel
//! struct BodyPlaces { mass: Place<…>, at: Place<…> }                    // where its fields are
//! impl Layout for BodyRecorded …  impl Values …  impl Placed …  impl Fields …
//! impl Item for Body …  impl Data for Body { type Recorded = BodyRecorded; }
//! ```
//! The new structs stand in a block of their own, where no other name can meet theirs.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, FieldsNamed, Generics, Result, Type};

use crate::signature::recorded_type;

/// Expands `#[derive(Data)]`.
pub fn derive(input: &DeriveInput) -> TokenStream {
    derived(input).unwrap_or_else(|error| error.to_compile_error())
}

/// The fields of a struct that kernels can compute with.
fn fields_of(input: &DeriveInput) -> Result<&FieldsNamed> {
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        _ => {
            return Err(Error::new(
                input.ident.span(),
                "`Data` is for structs with named fields",
            ));
        }
    };
    let Fields::Named(fields) = fields else {
        return Err(Error::new(
            input.ident.span(),
            "`Data` is for structs with named fields: `struct Body { mass: f32 }`",
        ));
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new(
            input.generics.span(),
            "a struct with `Data` has no generics: its place in memory is fixed",
        ));
    }
    if fields.named.is_empty() {
        return Err(Error::new(input.ident.span(), "a struct with `Data` has a field"));
    }
    Ok(fields)
}

fn derived(input: &DeriveInput) -> Result<TokenStream> {
    let fields = fields_of(input)?;
    let names: Vec<&Ident> = fields
        .named
        .iter()
        .filter_map(|field| field.ident.as_ref())
        .collect();
    let types: Vec<&Type> = fields.named.iter().map(|field| &field.ty).collect();
    let recorded = types
        .iter()
        .map(|ty| recorded_type(ty, &Generics::default()))
        .collect::<Result<Vec<_>>>()?;
    let name = &input.ident;
    let text: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    let offsets: Vec<Ident> = (0..names.len())
        .map(|number| format_ident!("OFFSET_{number}"))
        .collect();
    // Each field starts behind the one before, at a multiple of its own alignment.
    let ends = std::iter::once(quote!(0u32)).chain(
        offsets
            .iter()
            .zip(&recorded)
            .map(|(offset, ty)| quote!(Recorded::#offset + <#ty as Layout>::SIZE)),
    );
    let ends: Vec<TokenStream> = ends.collect();
    let (befores, end) = (&ends[..names.len()], &ends[names.len()]);
    let checks = types.iter().map(|ty| {
        quote_spanned!(ty.span()=> const _: fn() = || { fn is_data<T: ::headstart::facade::Data>() {} is_data::<#ty>(); };)
    });
    Ok(quote! {
        #[allow(unused, clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]
        const _: () = {
            use ::headstart::facade::Item;
            use ::headstart::facade::record::placed::{self, Fields, Layout, Leaf, Place, Placed};
            use ::headstart::facade::record::Values;
            use ::headstart::facade::ir::{Type, Value};

            #(#checks)*

            #[derive(Clone, Copy)]
            pub struct Recorded { #(pub #names: #recorded),* }

            pub struct Places { #(pub #names: Place<#recorded>),* }

            impl Recorded {
                #(const #offsets: u32 = placed::field_offset(#befores, <#recorded as Layout>::ALIGN);)*
            }

            impl Layout for Recorded {
                const ALIGN: u32 = placed::struct_alignment(&[#(<#recorded as Layout>::ALIGN),*]);
                const SIZE: u32 = placed::field_offset(#end, Self::ALIGN);
                const UNIT: Type = placed::struct_unit(&[#(<#recorded as Layout>::UNIT),*], Self::ALIGN);
            }

            impl Values for Recorded {
                fn types(types: &mut ::std::vec::Vec<Type>) {
                    #(<#recorded as Values>::types(types);)*
                }

                fn parts(self, parts: &mut ::std::vec::Vec<Value>) {
                    #(self.#names.parts(parts);)*
                }

                fn from_parts(parts: &mut dyn ::core::iter::Iterator<Item = Value>) -> Self {
                    Recorded { #(#names: <#recorded as Values>::from_parts(parts)),* }
                }
            }

            impl Placed for Recorded {
                fn leaves(start: u32, leaves: &mut ::std::vec::Vec<Leaf>) {
                    #(<#recorded as Placed>::leaves(start + Self::#offsets, leaves);)*
                }

                fn names(path: &str, names: &mut ::std::vec::Vec<::std::string::String>) {
                    #(<#recorded as Placed>::names(&::std::format!("{path}_{}", #text), names);)*
                }
            }

            impl Fields for Recorded {
                type Places = Places;

                fn places(of: Place<Self>) -> Places {
                    Places { #(#names: of.part(Self::#offsets)),* }
                }
            }

            impl Item for #name {
                const UNIT: Type = <Recorded as Layout>::UNIT;
                const BYTES: usize = <Recorded as Layout>::SIZE as usize;

                fn write(&self, bytes: &mut [u8]) {
                    #(Item::write(&self.#names, &mut bytes[Recorded::#offsets as usize..]);)*
                }

                fn read(bytes: &[u8]) -> Self {
                    #name { #(#names: Item::read(&bytes[Recorded::#offsets as usize..])),* }
                }
            }

            impl ::headstart::facade::Data for #name {
                type Recorded = Recorded;
            }
        };
    })
}
