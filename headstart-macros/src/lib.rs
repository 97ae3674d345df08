//! The attributes of Headstart's kernel language: `#[kernel]` and `#[device_fn]`.
//!
//! The language itself is described in `headstart::front::lang`. Here is its syntax: which Rust is accepted,
//! and how it becomes calls into that module. A body is emitted twice: as it stands, so that the compiler
//! checks it and a CPU can run it; and rewritten into calls that write the IR (see `lower`).

mod attributes;
mod data;
mod diverge;
mod expand;
mod lower;
mod methods;
mod plain;
mod scope;
mod signature;
mod types_fit;
mod verbatim;

use proc_macro::TokenStream;
use syn::parse_macro_input;

/// Makes a function a kernel: `NAME::kernel()` builds its IR, `NAME::reference(…)` runs it on the CPU,
/// `NAME::launch(…)` runs it on a device, and `NAME(…)` is still the function.
///
/// Arguments: `work_group = SIZE` or `work_group = (X, Y, Z)`, and `sub_group = SIZE`: sizes that a launch must
/// have. They may use the kernel's const generics and its `#[constant]` parameters. `accuracy = Accuracy::OpenCl` allows devices
/// to be off by a few units in the last place in quotients and square roots of `f32`, as OpenCL and DPC++ build them.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = parse_macro_input!(arguments as attributes::KernelArguments);
    let function = parse_macro_input!(item as syn::ItemFn);
    expand::kernel(&arguments, &function).into()
}

/// Makes a function callable from kernels and from other device functions. It is inlined where it is called.
#[proc_macro_attribute]
pub fn device_fn(arguments: TokenStream, item: TokenStream) -> TokenStream {
    parse_macro_input!(arguments as syn::parse::Nothing);
    let function = parse_macro_input!(item as syn::ItemFn);
    expand::device_function(&function).into()
}

/// Makes a struct one that kernels compute with and keep in memory: its fields are scalars, vectors `[T; N]`, or
/// such structs. It must be `Clone` and `Copy`.
#[proc_macro_derive(Data)]
pub fn data(item: TokenStream) -> TokenStream {
    data::derive(&parse_macro_input!(item as syn::DeriveInput)).into()
}
