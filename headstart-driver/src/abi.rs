//! Types of the driver's interface, as `cuda.h` has them: handles, results, and the structures that are looked into.

use std::ffi::{CStr, c_int, c_uint, c_void};

/// `CUresult`.
pub type CUresult = c_int;
/// `CUfunction`, `CUkernel`, `CUmodule`, `CUlibrary`, `CUstream`, `CUevent`, `CUcontext`, `CUgraph` and others: pointers that
/// mean something to the driver alone.
pub type Handle = *mut c_void;
/// `CUdeviceptr`.
pub type DevicePtr = u64;

/// Results of the driver. Most are for who answers in its stead.
macro_rules! results {
    ($($name:ident = $code:literal;)*) => {
        $(#[allow(dead_code)] pub const $name: CUresult = $code;)*

        /// What a result is called.
        #[allow(dead_code)]
        pub fn result_name(code: CUresult) -> &'static CStr {
            match code {
                SUCCESS => c"CUDA_SUCCESS",
                $($name => const { c_string(concat!("CUDA_ERROR_", stringify!($name), "\0")) },)*
                _ => c"CUDA_ERROR_UNKNOWN",
            }
        }
    };
}

/// `CUDA_SUCCESS`.
pub const SUCCESS: CUresult = 0;
results! {
    INVALID_VALUE = 1;
    OUT_OF_MEMORY = 2;
    NOT_INITIALIZED = 3;
    INVALID_DEVICE = 101;
    INVALID_IMAGE = 200;
    INVALID_CONTEXT = 201;
    NO_BINARY_FOR_GPU = 209;
    FILE_NOT_FOUND = 301;
    INVALID_HANDLE = 400;
    NOT_FOUND = 500;
    NOT_READY = 600;
    ILLEGAL_ADDRESS = 700;
    LAUNCH_FAILED = 719;
    NOT_SUPPORTED = 801;
    GRAPH_EXEC_UPDATE_FAILURE = 910;
}

/// A text that ends with its only zero.
pub const fn c_string(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("it has one zero, at its end"),
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared_bytes: c_uint,
    pub stream: Handle,
    pub attributes: *const LaunchAttribute,
    pub attribute_count: c_uint,
}

/// `CUlaunchAttribute`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchAttribute {
    pub id: c_uint,
    pub padding: c_uint,
    pub value: [u64; 8],
}

/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
pub const ATTRIBUTE_COOPERATIVE: c_uint = 2;
/// `CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`.
pub const ATTRIBUTE_CARVEOUT: c_uint = 14;

/// The part that all versions of `CUDA_KERNEL_NODE_PARAMS` begin with.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelNode {
    pub function: Handle,
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared_bytes: c_uint,
    pub parameters: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NodeParameters {
    pub node: KernelNode,
    pub kernel: Handle,
    pub context: Handle,
}

/// `CU_JIT_INPUT_PTX`.
pub const INPUT_PTX: c_int = 1;

/// `CU_LAUNCH_PARAM_END`, `…_BUFFER_POINTER`, `…_BUFFER_SIZE`: the entries of `extra`.
const EXTRA_END: usize = 0;
const EXTRA_BUFFER: usize = 1;
const EXTRA_SIZE: usize = 2;

/// The parameters of a launch in one piece, if they are passed so.
///
/// # Safety
/// The driver takes these.
pub unsafe fn packed<'p>(parameters: *mut *mut c_void, extra: *mut *mut c_void) -> Option<&'p [u8]> {
    if !parameters.is_null() || extra.is_null() {
        return None;
    }
    let (mut buffer, mut size) = (std::ptr::null::<u8>(), None);
    let mut at = extra;
    // SAFETY: a list of pairs of a name and a pointer, with a name at its end.
    unsafe {
        loop {
            match (*at) as usize {
                EXTRA_BUFFER => buffer = (*at.add(1)).cast(),
                EXTRA_SIZE => size = (*at.add(1)).cast::<usize>().as_ref().copied(),
                EXTRA_END => break,
                _ => return None,
            }
            at = at.add(2);
        }
        (!buffer.is_null()).then(|| std::slice::from_raw_parts(buffer, size.unwrap_or(0)))
    }
}

/// Magic number of `__fatBinC_Wrapper_t`, which points to a fat binary.
pub const FAT_WRAPPER: u32 = 0x4662_43b1;
/// Magic number of a fat binary.
pub const FAT_BINARY: u32 = 0xba55_ed50;
