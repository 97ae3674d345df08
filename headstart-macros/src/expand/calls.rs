//! The functions that call a kernel: `reference`, `compile`, `arguments`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ItemFn;
use syn::spanned::Spanned;

use super::mixed;
use crate::attributes::KernelArguments;
use crate::signature::{
    Parameter, ParameterKind, as_arguments, atomic_scalar, vector_scalar, without_constants,
    without_lifetimes,
};

/// The ways to call a kernel: on the CPU, and on a device with arguments that the compiler checks.
pub fn calls(arguments: &KernelArguments, function: &ItemFn, parameters: &[Parameter]) -> TokenStream {
    let lang = quote!(::headstart::facade::lang);
    let runtime = quote!(::headstart::facade);
    let name = &function.sig.ident;
    let generics = without_lifetimes(&function.sig.generics);
    let (parameters_of, _, clause) = generics.split_for_impl();
    let generic_arguments = as_arguments(&generics);
    let turbofish = (!generic_arguments.is_empty()).then(|| quote!(::<#(#generic_arguments),*>));

    let Passing {
        types,
        buffers,
        steps,
        ordinary,
        passed,
        constants,
        constant_names,
    } = passing(parameters);
    let (device, geometry, required) = (mixed("device"), mixed("geometry"), mixed("required"));
    let tuned_arguments = mixed("arguments");
    let work_group = arguments.work_group.as_deref().unwrap_or_default();
    let sub_group = match &arguments.sub_group {
        Some(size) => quote!(::core::option::Option::Some((#size) as u64)),
        None => quote!(::core::option::Option::None),
    };
    // Lengths and sizes never show in the parameters, so they are not to be written.
    let types_only = without_constants(&generics);
    let (types_of, _, types_clause) = types_only.split_for_impl();
    quote! {
        /// Runs the kernel on the CPU, one work-item after the other.
        ///
        /// # Errors
        /// The geometry is empty or not the one that the kernel requires, or the kernel has barriers.
        pub fn reference #parameters_of (
            #geometry: #lang::geometry::Geometry,
            #(#ordinary),*
        ) -> ::headstart::facade::Result<()> #clause {
            let #required = #lang::reference::Required { group: &[#((#work_group) as u64),*], sub_group: #sub_group };
            #lang::reference::run(#geometry, &#required, || #name #turbofish (#(#passed),*))
        }

        /// Makes the kernel ready to launch on a device.
        ///
        /// # Errors
        /// The kernel cannot be built, or the device cannot run it.
        pub fn compile #parameters_of (
            #device: &dyn ::headstart::facade::device::Device,
            #(#constants),*
        ) -> ::headstart::facade::Result<#runtime::launch::Compiled<fn(#(#types),*)>> #clause {
            #runtime::launch::Compiled::new(#device, Self::kernel #turbofish (#(#constant_names),*)?)
        }

        /// Makes the kernel ready to launch on a device over a range of work-items, in work-groups that the runtime
        /// picks.
        ///
        /// # Errors
        /// The kernel cannot be built, needs work-groups of its own, or the device cannot run it.
        pub fn over_range #parameters_of (
            #device: &dyn ::headstart::facade::device::Device,
            #(#constants),*
        ) -> ::headstart::facade::Result<#runtime::over_range::OverRange<fn(#(#types),*)>> #clause {
            #runtime::over_range::OverRange::new(#device, Self::kernel #turbofish (#(#constant_names),*)?)
        }

        ::headstart::facade::where_kernels_are_tuned! {
            /// The best form of the kernel for a launch with these arguments, which are read and left as they are: found
            /// once, remembered after. See `headstart::tune::tuned_launch`.
            ///
            /// # Errors
            /// The device tells no times, an input was not written, or the plain kernel goes wrong.
            pub fn tuned #parameters_of (
                #device: &dyn ::headstart::facade::device::Device,
                #geometry: #lang::geometry::Geometry,
                #tuned_arguments: #runtime::launch::Arguments<fn(#(#types),*)>,
                #(#constants),*
            ) -> ::headstart::facade::Result<::headstart::facade::Best<fn(#(#types),*)>> #clause {
                ::headstart::facade::tuned_launch(
                    #device,
                    Self::kernel #turbofish (#(#constant_names),*)?,
                    #geometry,
                    &#tuned_arguments,
                )
            }
        }

        /// Arguments for a launch.
        pub fn arguments #types_of (#(#buffers),*) -> #runtime::launch::Arguments<fn(#(#types),*)> #types_clause {
            #runtime::launch::Arguments::none() #(#steps)*
        }
    }
}

/// How the parameters are passed, each by what its kind is.
#[derive(Default)]
struct Passing {
    /// Of a launch on a device: the types of its arguments, the parameters of the function that takes them, what it does
    /// with each.
    types: Vec<TokenStream>,
    buffers: Vec<TokenStream>,
    steps: Vec<TokenStream>,
    /// On the CPU: the parameters, and what the kernel gets.
    ordinary: Vec<TokenStream>,
    passed: Vec<TokenStream>,
    /// What is known when the kernel is built.
    constants: Vec<TokenStream>,
    constant_names: Vec<TokenStream>,
}

impl Passing {
    fn on_device(&mut self, ty: TokenStream, buffer: TokenStream, step: TokenStream) {
        self.types.push(ty);
        self.buffers.push(buffer);
        self.steps.push(step);
    }

    fn on_cpu(&mut self, ordinary: TokenStream, passed: TokenStream) {
        self.ordinary.push(ordinary);
        self.passed.push(passed);
    }
}

fn passing(parameters: &[Parameter]) -> Passing {
    let mut passing = Passing::default();
    for Parameter { name, kind, .. } in parameters {
        match kind {
            ParameterKind::Slice { element, mutable } => {
                let (ty, passed) = match mutable {
                    true => (quote!(&mut [#element]), quote!(&mut *#name)),
                    false => (quote!(&[#element]), quote!(#name)),
                };
                passing.on_cpu(quote!(#name: #ty), passed);
                // Atomic elements lie in a plain buffer, which nothing else may reach meanwhile.
                let atomic = atomic_scalar(element).filter(|_| !mutable);
                let scalar = atomic.unwrap_or_else(|| vector_scalar(element));
                let (exclusive, method) = match *mutable || atomic.is_some() {
                    true => (quote!(mut), quote_spanned!(element.span()=> slice_mut)),
                    false => (quote!(), quote_spanned!(element.span()=> slice)),
                };
                let buffer = quote!(#name: &#exclusive ::headstart::facade::device::TypedBuffer<#scalar>);
                passing.on_device(ty, buffer, quote_spanned!(element.span()=> .#method(#name)));
            }
            ParameterKind::View(view) => {
                let (element, dimensions, access) = (&view.element, view.dimensions, view.access());
                let ty = quote!(::headstart::facade::lang::view::View<'_, #element, #dimensions, #access>);
                passing.on_cpu(quote!(mut #name: #ty), quote!(#name.reborrow()));
                // What is written through is borrowed mutably, so that no other argument can be the same.
                let is_read = view.access.as_ref().is_some_and(is_read_only);
                let buffer = if is_read {
                    quote!(BufferView)
                } else {
                    quote!(BufferViewMut)
                };
                let buffer = quote!(#name: ::headstart::facade::device::#buffer<'_, #element, #dimensions>);
                passing.on_device(ty, buffer, quote!(.view(&#name)));
            }
            ParameterKind::Constant(ty) => {
                passing.constants.push(quote!(#name: #ty));
                passing.constant_names.push(quote!(#name));
                passing.on_cpu(quote!(#name: #ty), quote!(#name));
            }
            // Kernels have no others.
            ParameterKind::Scalar(ty)
            | ParameterKind::Reference(ty)
            | ParameterKind::Array { element: ty, .. } => {
                let step = quote_spanned!(ty.span()=> .value(#name));
                passing.on_device(quote!(#ty), quote!(#name: #ty), step);
                passing.on_cpu(quote!(#name: #ty), quote!(#name));
            }
        }
    }
    passing
}

/// Whether a view's access is `ReadOnly`, by its name.
fn is_read_only(access: &syn::Type) -> bool {
    matches!(access, syn::Type::Path(path)
        if path.path.segments.last().is_some_and(|last| last.ident == "ReadOnly"))
}
