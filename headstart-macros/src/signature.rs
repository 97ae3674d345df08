//! Parameters, generics and types of kernels and device functions.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, FnArg, GenericArgument, GenericParam, Generics, Pat, PathArguments, Result,
    ReturnType, Signature, Type, WherePredicate, parse_quote,
};

use crate::lower::record_path;
use crate::methods::SCALARS;

/// A parameter, as it was declared.
pub struct Parameter {
    /// Its name.
    pub name: Ident,
    /// Whether it was declared `mut`.
    pub mutable: bool,
    /// Its kind.
    pub kind: ParameterKind,
}

/// The kind of a parameter.
pub enum ParameterKind {
    /// `&[T]` or `&mut [T]`.
    Slice {
        /// `T`.
        element: Type,
        /// Whether it is `&mut`.
        mutable: bool,
    },
    /// `&[T; N]` or `&mut [T; N]`; device functions only.
    Array {
        /// `T`.
        element: Type,
        /// `N`.
        length: Box<Expr>,
    },
    /// `View2<T, Access>`; in device functions behind a reference, too.
    View(Box<View>),
    /// `&mut T` of a value; device functions only.
    Reference(Type),
    /// A scalar, vector or struct; a tuple of them in device functions.
    Scalar(Type),
    /// `#[constant]`: a scalar whose value is known when the kernel is built; kernels only.
    Constant(Type),
}

/// `View1`, `View2` or `View3` of elements, and the permitted accesses.
pub struct View {
    /// How many dimensions.
    pub dimensions: usize,
    /// `T`.
    pub element: Type,
    /// `ReadOnly`, `WriteOnly` or `ReadWrite`; the last if there is none.
    pub access: Option<Type>,
}

impl View {
    /// The view that a type is by its name.
    fn of(ty: &Type) -> Option<View> {
        let Type::Path(path) = ty else { return None };
        let last = path.path.segments.last()?;
        let dimensions = ["View1", "View2", "View3"]
            .iter()
            .position(|name| last.ident == name)?
            + 1;
        let PathArguments::AngleBracketed(angle) = &last.arguments else {
            return None;
        };
        let mut types = angle.args.iter().filter_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty.clone()),
            _ => None,
        });
        Some(View {
            dimensions,
            element: types.next()?,
            access: types.next(),
        })
    }

    /// The permitted accesses, as a type.
    pub fn access(&self) -> TokenStream {
        match &self.access {
            Some(access) => quote!(#access),
            None => quote!(::headstart::facade::lang::view::ReadWrite),
        }
    }
}

/// Whether the attribute marks a parameter whose value is fixed when the kernel is built.
pub fn is_constant(attribute: &Attribute) -> bool {
    attribute.path().is_ident("constant")
}

/// Reads the parameters, and refuses signatures that a kernel (or device function) cannot have.
pub fn parameters(signature: &Signature, is_kernel: bool) -> Result<Vec<Parameter>> {
    let refused = [
        signature.asyncness.map(|token| (token.span(), "async")),
        signature.unsafety.map(|token| (token.span(), "unsafe")),
        signature.abi.as_ref().map(|abi| (abi.span(), "extern")),
        signature
            .variadic
            .as_ref()
            .map(|variadic| (variadic.span(), "variadic")),
    ];
    if let Some((span, word)) = refused.into_iter().flatten().next() {
        return Err(Error::new(
            span,
            format!("a kernel's function cannot be {word}; accepted: a plain `fn`"),
        ));
    }
    signature
        .inputs
        .iter()
        .map(|input| parameter(input, is_kernel))
        .collect()
}

fn parameter(input: &FnArg, is_kernel: bool) -> Result<Parameter> {
    let accepted = if is_kernel {
        "accepted: `&[T]`, `&mut [T]`, `&[Atomic<T>]`, a scalar, vector or struct, or `#[constant]` and a scalar"
    } else {
        "accepted: `&[T]`, `&mut [T]`, `&[T; N]`, `&mut [T; N]`, `&mut T`, a scalar, vector, struct, or a tuple of them"
    };
    let FnArg::Typed(typed) = input else {
        return Err(Error::new(
            input.span(),
            format!("`self` cannot be a kernel parameter; {accepted}"),
        ));
    };
    let Pat::Ident(pattern) = &*typed.pat else {
        return Err(Error::new(
            typed.pat.span(),
            "a parameter here has a plain name, not a pattern",
        ));
    };
    if pattern.by_ref.is_some() || pattern.subpat.is_some() {
        return Err(Error::new(
            pattern.span(),
            "a parameter here has a plain name, not a pattern",
        ));
    }
    let constant = typed.attrs.iter().any(is_constant);
    if let Some(other) = typed.attrs.iter().find(|attribute| !is_constant(attribute)) {
        return Err(Error::new(
            other.span(),
            "the only attribute of a parameter is `#[constant]`",
        ));
    }
    let kind = match kind(&typed.ty, is_kernel) {
        Some(ParameterKind::Scalar(ty)) if constant && is_kernel => ParameterKind::Constant(ty),
        Some(kind) if !constant => kind,
        _ if constant && !is_kernel => {
            return Err(Error::new(
                typed.span(),
                "`#[constant]` is for kernels; a device function has const generics",
            ));
        }
        _ => {
            return Err(Error::new(
                typed.ty.span(),
                format!("a parameter cannot have this type; {accepted}"),
            ));
        }
    };
    if let ParameterKind::Slice { element, .. } | ParameterKind::Scalar(element) = &kind
        && is_foreign(element)
    {
        return Err(not_data(element));
    }
    Ok(Parameter {
        name: pattern.ident.clone(),
        mutable: pattern.mutability.is_some(),
        kind,
    })
}

fn kind(ty: &Type, is_kernel: bool) -> Option<ParameterKind> {
    match ty {
        Type::Paren(inner) => kind(&inner.elem, is_kernel),
        Type::Group(inner) => kind(&inner.elem, is_kernel),
        Type::Reference(reference) => {
            let mutable = reference.mutability.is_some();
            match &*reference.elem {
                Type::Slice(slice) => Some(ParameterKind::Slice {
                    element: (*slice.elem).clone(),
                    mutable,
                }),
                Type::Array(array) if !is_kernel => Some(ParameterKind::Array {
                    element: (*array.elem).clone(),
                    length: Box::new(array.len.clone()),
                }),
                view if !is_kernel && View::of(view).is_some() => {
                    View::of(view).map(Box::new).map(ParameterKind::View)
                }
                scalar @ Type::Path(_) if !is_kernel && mutable => {
                    Some(ParameterKind::Reference(scalar.clone()))
                }
                _ => None,
            }
        }
        view if View::of(view).is_some() => View::of(view).map(Box::new).map(ParameterKind::View),
        owner if of_vector(owner).is_some() => None,
        Type::Path(_) | Type::Array(_) => Some(ParameterKind::Scalar(ty.clone())),
        Type::Tuple(tuple) if !is_kernel && !tuple.elems.is_empty() => {
            Some(ParameterKind::Scalar(ty.clone()))
        }
        _ => None,
    }
}

/// A kernel's signature without what a kernel cannot have, and the message about it: what uses the kernel is then said to be
/// right or wrong, and nothing else is said of this mistake.
pub fn repaired(signature: &Signature) -> (Signature, Option<Error>) {
    let mut repaired = signature.clone();
    (repaired.asyncness, repaired.unsafety, repaired.abi) = (None, None, None);
    let mut error = parameters(signature, true).err();
    if let ReturnType::Type(_, ty) = &signature.output {
        let message = "a kernel returns nothing; it writes its results to `&mut [T]` parameters";
        error = Some(Error::new(ty.span(), message));
        repaired.output = ReturnType::Default;
    }
    for input in &mut repaired.inputs {
        if let FnArg::Typed(typed) = input
            && kind(&typed.ty, true).is_none()
            && let Some(meant) = memory_of(&typed.ty)
        {
            *typed.ty = meant;
        }
    }
    (repaired, error)
}

/// The slice that was meant by a vector or a reference to a vector or a scalar.
fn memory_of(ty: &Type) -> Option<Type> {
    match ty {
        Type::Reference(reference) => {
            let (lifetime, mutable) = (&reference.lifetime, &reference.mutability);
            let element = match &*reference.elem {
                scalar @ Type::Path(path) if is_scalar(path, &Generics::default()) => scalar,
                other => of_vector(other)?,
            };
            Some(parse_quote!(& #lifetime #mutable [#element]))
        }
        owner => of_vector(owner).map(|element| parse_quote!(&[#element])),
    }
}

/// The `T` of `Vec<T>`: a kernel's memory is a slice.
fn of_vector(ty: &Type) -> Option<&Type> {
    argument_of(ty, "Vec")
}

/// The `T` of an element `Atomic<T>`.
pub fn atomic_scalar(element: &Type) -> Option<&Type> {
    argument_of(element, "Atomic")
}

/// The `T` of `NAME<T>`.
fn argument_of<'t>(ty: &'t Type, name: &str) -> Option<&'t Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    match &last.arguments {
        PathArguments::AngleBracketed(angle) => match angle.args.first() {
            Some(GenericArgument::Type(scalar)) => Some(scalar),
            _ => None,
        },
        _ => None,
    }
}

/// The contents of a buffer of such elements: the `T` of a vector `[T; N]`, or the element itself.
pub fn vector_scalar(element: &Type) -> &Type {
    match element {
        Type::Array(array) => &array.elem,
        scalar => scalar,
    }
}

/// The type of a recorded value whose ordinary type is `ty`: `Recorded<f32>` for `f32`, tuples and vectors part by
/// part. A type by another name is looked up in its trait; a generic one is a scalar, and said to be, for a caller's
/// types cannot be inferred through a trait.
pub fn recorded_type(ty: &Type, generics: &Generics) -> Result<TokenStream> {
    let record = record_path(ty.span());
    match ty {
        Type::Paren(inner) => recorded_type(&inner.elem, generics),
        Type::Group(inner) => recorded_type(&inner.elem, generics),
        Type::Infer(_) => Ok(quote!(#ty)),
        foreign if is_foreign(foreign) => Err(not_data(ty)),
        Type::Path(path) if is_scalar(path, generics) => {
            Ok(quote_spanned!(ty.span()=> #record::Recorded<#ty>))
        }
        // A pointer is a value, but none that memory holds.
        Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Ptr") => {
            Ok(quote_spanned!(ty.span()=> #record::Recorded<#ty>))
        }
        Type::Path(_) => Ok(quote_spanned!(ty.span()=> #record::Of<#ty>)),
        Type::Array(array) => {
            let (part, length) = (recorded_type(&array.elem, generics)?, &array.len);
            Ok(quote_spanned!(ty.span()=> [#part; #length]))
        }
        Type::Tuple(tuple) => {
            let parts = tuple
                .elems
                .iter()
                .map(|part| recorded_type(part, generics))
                .collect::<Result<Vec<_>>>()?;
            Ok(quote_spanned!(ty.span()=> (#(#parts,)*)))
        }
        _ => Err(not_data(ty)),
    }
}

fn not_data(ty: &Type) -> Error {
    Error::new(
        ty.span(),
        "a kernel cannot compute with values of this type; accepted: integers, `f32`, `f64`, `bool`, vectors \
         `[T; N]`, structs with `#[derive(Data)]`, and tuples of them",
    )
}

/// Whether a type is one of Rust's that kernels do not have. The compiler would say so, once for each use.
fn is_foreign(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    let names = ["u128", "i128", "char", "String"];
    of_vector(ty).is_some() || names.iter().any(|name| path.path.is_ident(name))
}

/// Whether a type is a scalar by its name, or a generic parameter.
fn is_scalar(path: &syn::TypePath, generics: &Generics) -> bool {
    path.path.get_ident().is_some_and(|name| {
        SCALARS.iter().any(|known| name == known) || generics.type_params().any(|param| param.ident == *name)
    })
}

/// The recorded form of the elements of a slice or array.
pub fn recorded_element(ty: &Type, generics: &Generics) -> Result<TokenStream> {
    let record = record_path(ty.span());
    if let Some(scalar) = atomic_scalar(ty) {
        return Ok(quote_spanned!(ty.span()=> #record::AtomicElement<#scalar>));
    }
    match ty {
        Type::Path(path) if !is_scalar(path, generics) => {
            Ok(quote_spanned!(ty.span()=> #record::ElementOf<#ty>))
        }
        _ => recorded_type(ty, generics),
    }
}

/// The generics of the recorded copy: lifetimes are gone, for the recorded copy borrows nothing.
pub fn without_lifetimes(generics: &Generics) -> Generics {
    let mut kept = generics.clone();
    kept.params = generics
        .params
        .iter()
        .filter(|parameter| !matches!(parameter, GenericParam::Lifetime(_)))
        .cloned()
        .collect();
    if let Some(clause) = &mut kept.where_clause {
        clause.predicates = clause
            .predicates
            .iter()
            .filter(|predicate| !matches!(predicate, WherePredicate::Lifetime(_)))
            .cloned()
            .collect();
    }
    kept
}

/// The generics less the constants.
pub fn without_constants(generics: &Generics) -> Generics {
    let mut kept = generics.clone();
    kept.params = generics
        .params
        .iter()
        .filter(|parameter| !matches!(parameter, GenericParam::Const(_)))
        .cloned()
        .collect();
    kept
}

/// The generic parameters as arguments, to call another function with the same ones: `T, N`.
pub fn as_arguments(generics: &Generics) -> Vec<&Ident> {
    generics
        .params
        .iter()
        .filter_map(|parameter| match parameter {
            GenericParam::Type(parameter) => Some(&parameter.ident),
            GenericParam::Const(parameter) => Some(&parameter.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect()
}

/// The path of the recorded form of a function: `a::helper::<T>` becomes `a::helper::device::<T>`.
///
/// Every device function, ours included, is a function and a type of the same name; the type has the
/// recorded form.
pub fn device_form(path: &syn::Path) -> syn::Path {
    let mut device = path.clone();
    let arguments = match device.segments.last_mut() {
        Some(last) => std::mem::replace(&mut last.arguments, PathArguments::None),
        None => PathArguments::None,
    };
    let arguments = match arguments {
        PathArguments::AngleBracketed(mut angle) => {
            angle.args = angle
                .args
                .into_iter()
                .filter(|argument| !matches!(argument, GenericArgument::Lifetime(_)))
                .collect();
            angle.colon2_token = Some(syn::Token![::](Span::mixed_site()));
            PathArguments::AngleBracketed(angle)
        }
        other => other,
    };
    let span = path.span();
    device.segments.push(syn::PathSegment {
        ident: Ident::new("device", span),
        arguments,
    });
    device
}
