//! Types of the driver's interface, as `cuda.h` has them: handles, results, and the structures that are looked into.

use std::ffi::{c_int, c_uint, c_void};

/// `CUresult`.
pub type CUresult = c_int;
/// `CUfunction`, `CUkernel`, `CUmodule`, `CUlibrary`, `CUstream`, `CUevent`, `CUcontext`, `CUgraph` and others: pointers that
/// mean something to the driver alone.
pub type Handle = *mut c_void;
/// `CUdeviceptr`.
pub type DevicePtr = u64;

/// `CUDA_SUCCESS`.
pub const SUCCESS: CUresult = 0;
/// `CUDA_ERROR_NOT_FOUND`: the answer for a function that the driver does not have.
pub const NOT_FOUND: CUresult = 500;
/// `CUDA_ERROR_NOT_READY`.
pub const NOT_READY: CUresult = 600;

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
pub const EXTRA_END: usize = 0;
pub const EXTRA_BUFFER: usize = 1;
pub const EXTRA_SIZE: usize = 2;

/// Magic number of `__fatBinC_Wrapper_t`, which points to a fat binary.
pub const FAT_WRAPPER: u32 = 0x4662_43b1;
/// Magic number of a fat binary.
pub const FAT_BINARY: u32 = 0xba55_ed50;
