//! Kernels in Rust, compiled by rustc for `nvptx64-nvidia-cuda`. `corpus/make` has the command.
//!
//! `core` for that target is a download of its own. These kernels bring the little of it that they need, so that the
//! compiler alone makes them.

#![feature(
    no_core,
    lang_items,
    intrinsics,
    rustc_attrs,
    auto_traits,
    abi_ptx,
    abi_unadjusted,
    link_llvm_intrinsics
)]
#![no_core]
#![crate_type = "lib"]
#![allow(internal_features, improper_ctypes_definitions)]

/// With raw pointers, which nothing checks.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn rust_gather(
    indices: *const u32,
    values: *const f32,
    result: *mut f32,
    items: u32,
) {
    let id = group_id() * group_size() + local_id();
    let total = group_count() * group_size();
    let mut sum = 0.0;
    let mut j = 0;
    while j < items {
        unsafe {
            let index = *offset(indices, (j * total + id) as usize);
            sum = sum + *offset(values, index as usize);
        }
        j = j + 1;
    }
    unsafe { *offset(result, id as usize) = sum };
}

/// With slices: each access is checked, and traps where it is out of bounds.
#[unsafe(no_mangle)]
pub extern "ptx-kernel" fn rust_spmv(rows: &[u32], columns: &[u32], a: &[f32], x: &[f32], y: &mut [f32]) {
    let row = (group_id() * group_size() + local_id()) as usize;
    if row < length(y) {
        let mut sum = 0.0;
        let mut k = rows[row] as usize;
        let end = rows[row + 1] as usize;
        while k < end {
            sum = sum + a[k] * x[columns[k] as usize];
            k = k + 1;
        }
        y[row] = sum;
    }
}

// What `core::arch::nvptx` calls `_thread_idx_x` and so on.
unsafe extern "unadjusted" {
    #[link_name = "llvm.nvvm.read.ptx.sreg.tid.x"]
    safe fn local_id() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.ctaid.x"]
    safe fn group_id() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.ntid.x"]
    safe fn group_size() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.nctaid.x"]
    safe fn group_count() -> u32;
    #[link_name = "llvm.trap"]
    safe fn trap() -> !;
}

// From here on as in `core`.

#[rustc_intrinsic]
const unsafe fn offset<P, D>(pointer: P, count: D) -> P;
#[rustc_intrinsic]
const fn ptr_metadata<P: PointeeSized, M>(pointer: *const P) -> M;

fn length<T>(slice: &[T]) -> usize {
    ptr_metadata(slice as *const [T])
}

#[lang = "panic_bounds_check"]
#[inline]
fn panic_bounds_check(_index: usize, _length: usize) -> ! {
    trap()
}

/// What a check says where it fails; nothing reads it here.
#[lang = "panic_location"]
pub struct Location<'a> {
    pub file: &'a str,
    pub line: u32,
    pub column: u32,
}

#[lang = "pointee_sized"]
pub trait PointeeSized {}
#[lang = "meta_sized"]
pub trait MetaSized: PointeeSized {}
#[lang = "sized"]
pub trait Sized: MetaSized {}
#[lang = "freeze"]
pub unsafe auto trait Freeze {}
#[lang = "destruct"]
pub trait Destruct {}
#[lang = "copy"]
pub trait Copy {}
impl Copy for u32 {}
impl Copy for usize {}
impl Copy for f32 {}
impl<T: PointeeSized> Copy for *const T {}
impl<T: PointeeSized> Copy for *mut T {}
impl<T: PointeeSized> Copy for &T {}
#[lang = "legacy_receiver"]
pub trait LegacyReceiver {}
impl<T: PointeeSized> LegacyReceiver for &T {}
impl<T: PointeeSized> LegacyReceiver for &mut T {}

#[lang = "add"]
pub trait Add<Rhs = Self> {
    type Output;
    fn add(self, rhs: Rhs) -> Self::Output;
}
#[lang = "mul"]
pub trait Mul<Rhs = Self> {
    type Output;
    fn mul(self, rhs: Rhs) -> Self::Output;
}
#[lang = "eq"]
pub trait PartialEq<Rhs: PointeeSized = Self> {
    fn eq(&self, other: &Rhs) -> bool;
    fn ne(&self, other: &Rhs) -> bool;
}
#[lang = "partial_ord"]
pub trait PartialOrd<Rhs: PointeeSized = Self> {
    fn lt(&self, other: &Rhs) -> bool;
    fn le(&self, other: &Rhs) -> bool;
    fn gt(&self, other: &Rhs) -> bool;
    fn ge(&self, other: &Rhs) -> bool;
}
macro_rules! arithmetic {
    ($($type:ident)*) => {$(
        impl Add for $type {
            type Output = $type;
            fn add(self, rhs: $type) -> $type {
                self + rhs
            }
        }
        impl Mul for $type {
            type Output = $type;
            fn mul(self, rhs: $type) -> $type {
                self * rhs
            }
        }
        impl PartialOrd for $type {
            fn lt(&self, other: &$type) -> bool {
                *self < *other
            }
            fn le(&self, other: &$type) -> bool {
                *self <= *other
            }
            fn gt(&self, other: &$type) -> bool {
                *self > *other
            }
            fn ge(&self, other: &$type) -> bool {
                *self >= *other
            }
        }
    )*};
}
arithmetic!(u32 usize f32);

#[lang = "index"]
pub trait Index<I: PointeeSized> {
    type Output: MetaSized;
    fn index(&self, index: I) -> &Self::Output;
}
impl<T> Index<usize> for [T] {
    type Output = T;
    fn index(&self, index: usize) -> &T {
        &self[index]
    }
}
#[lang = "index_mut"]
pub trait IndexMut<I: PointeeSized>: Index<I> {
    fn index_mut(&mut self, index: I) -> &mut Self::Output;
}
impl<T> IndexMut<usize> for [T] {
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self[index]
    }
}
