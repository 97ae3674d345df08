//! The driver itself.
//!
//! Its functions are found by `dlsym` on the handle of `libcuda.so.1`, so that the exports of this library are never in the way,
//! and kept. One that the driver has not answers as the driver would: not found.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::{CUresult, DevicePtr, Handle, LaunchConfig, NOT_FOUND, NodeParameters, SUCCESS};

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The system's `dlsym`, once it is known. The exported one jumps there.
pub static DLSYM: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static DRIVER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Versions of the system's library in which `dlsym` is: newer systems, x86-64, aarch64.
const VERSIONS: [&CStr; 3] = [c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"];

/// Finds the system's `dlsym`, which this library hides.
pub extern "C" fn find_dlsym() -> *mut c_void {
    let known = DLSYM.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    for version in VERSIONS {
        // SAFETY: both are C strings; `dlvsym` is not hidden.
        let found = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
        if !found.is_null() {
            DLSYM.store(found, Ordering::Release);
            return found;
        }
    }
    ptr::null_mut()
}

/// The result of the system's `dlsym`.
///
/// # Safety
/// As for `dlsym`.
pub unsafe fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    let found = find_dlsym();
    if found.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: it is `dlsym`; the caller's arguments are right for it.
    unsafe { std::mem::transmute::<*mut c_void, Dlsym>(found)(handle, name) }
}

/// The driver's library; null if there is none. `load` says whether it may be loaded now.
pub fn driver(load: bool) -> *mut c_void {
    let known = DRIVER.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let flags = libc::RTLD_LAZY | if load { 0 } else { libc::RTLD_NOLOAD };
    // SAFETY: a C string; the driver's library may be loaded at any time.
    let handle = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), flags) };
    if !handle.is_null() {
        DRIVER.store(handle, Ordering::Release);
    }
    handle
}

/// The driver's function of a name; null if it has none.
pub fn symbol(name: &CStr) -> *mut c_void {
    let driver = driver(true);
    if driver.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: the handle is the driver's, the name a C string.
    unsafe { dlsym(driver, name.as_ptr()) }
}

/// Looks up a function once.
#[inline]
pub fn kept(slot: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = slot.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    let found = symbol(name);
    slot.store(found, Ordering::Relaxed);
    found
}

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `…_MINOR`.
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;

/// The compute capability of a device: 90 for 9.0; nothing if the driver does not say.
pub fn capability(device: c_int) -> Option<u32> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: places for the answers.
    let known = unsafe {
        cuDeviceGetAttribute(&raw mut major, CAPABILITY_MAJOR, device) == SUCCESS
            && cuDeviceGetAttribute(&raw mut minor, CAPABILITY_MINOR, device) == SUCCESS
    };
    u32::try_from(major * 10 + minor).ok().filter(|_| known)
}

/// Functions of the driver, each with its arguments.
macro_rules! functions {
    ($($name:ident($($argument:ident: $ty:ty),* $(,)?);)*) => {
        $(
            /// The driver's function of this name.
            ///
            /// # Safety
            /// As the driver's documentation says.
            #[allow(non_snake_case, clippy::too_many_arguments)]
            pub unsafe fn $name($($argument: $ty),*) -> CUresult {
                static SLOT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
                let name = const {
                    match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => panic!("a name has no zeros"),
                    }
                };
                let found = kept(&SLOT, name);
                if found.is_null() {
                    return NOT_FOUND;
                }
                // SAFETY: the driver's function of this name takes these arguments.
                unsafe {
                    let function: unsafe extern "C" fn($($ty),*) -> CUresult = std::mem::transmute(found);
                    function($($argument),*)
                }
            }
        )*
    };
}

functions! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int);
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    cuCtxGetDevice(device: *mut c_int);
    cuCtxGetCurrent(context: *mut Handle);
    cuCtxSynchronize();
    cuGetProcAddress(name: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64);
    cuGetProcAddress_v2(name: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64, status: *mut c_int);
    cuLinkAddData_v2(
        state: Handle, kind: c_int, data: *mut c_void, bytes: usize, name: *const c_char, count: c_uint,
        options: *mut c_int, values: *mut *mut c_void,
    );
    cuLinkAddFile_v2(
        state: Handle, kind: c_int, file: *const c_char, count: c_uint, options: *mut c_int, values: *mut *mut c_void,
    );
    cuLinkComplete(state: Handle, image: *mut *mut c_void, bytes: *mut usize);
    cuLinkDestroy(state: Handle);
    cuModuleLoad(module: *mut Handle, file: *const c_char);
    cuModuleLoadData(module: *mut Handle, image: *const c_void);
    cuModuleLoadDataEx(module: *mut Handle, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void);
    cuModuleLoadFatBinary(module: *mut Handle, image: *const c_void);
    cuModuleUnload(module: Handle);
    cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char);
    cuLibraryLoadData(
        library: *mut Handle, code: *const c_void, options: *mut c_int, values: *mut *mut c_void, count: c_uint,
        library_options: *mut c_int, library_values: *mut *mut c_void, library_count: c_uint,
    );
    cuLibraryLoadFromFile(
        library: *mut Handle, file: *const c_char, options: *mut c_int, values: *mut *mut c_void, count: c_uint,
        library_options: *mut c_int, library_values: *mut *mut c_void, library_count: c_uint,
    );
    cuLibraryUnload(library: Handle);
    cuLibraryGetKernel(kernel: *mut Handle, library: Handle, name: *const c_char);
    cuLibraryGetModule(module: *mut Handle, library: Handle);
    cuKernelGetFunction(function: *mut Handle, kernel: Handle);
    cuFuncLoad(function: Handle);
    cuFuncGetName(name: *mut *const c_char, function: Handle);
    cuKernelGetName(name: *mut *const c_char, kernel: Handle);
    cuFuncGetModule(module: *mut Handle, function: Handle);
    cuKernelGetLibrary(library: *mut Handle, kernel: Handle);
    cuFuncGetParamInfo(function: Handle, index: usize, offset: *mut usize, size: *mut usize);
    cuKernelGetParamInfo(kernel: Handle, index: usize, offset: *mut usize, size: *mut usize);
    cuFuncSetAttribute(function: Handle, attribute: c_int, value: c_int);
    cuFuncSetCacheConfig(function: Handle, config: c_int);
    cuKernelSetAttribute(attribute: c_int, value: c_int, kernel: Handle, device: c_int);
    cuLaunchKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    );
    cuLaunchKernel_ptsz(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    );
    cuLaunchKernelEx(config: *const LaunchConfig, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void);
    cuLaunchKernelEx_ptsz(config: *const LaunchConfig, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void);
    cuLaunchCooperativeKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Handle, parameters: *mut *mut c_void,
    );
    cuLaunchCooperativeKernel_ptsz(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Handle, parameters: *mut *mut c_void,
    );
    cuGraphAddKernelNode(node: *mut Handle, graph: Handle, after: *const Handle, count: usize, parameters: *const c_void);
    cuGraphAddKernelNode_v2(node: *mut Handle, graph: Handle, after: *const Handle, count: usize, parameters: *const c_void);
    cuGraphGetNodes(graph: Handle, nodes: *mut Handle, count: *mut usize);
    cuGraphNodeGetType(node: Handle, kind: *mut c_int);
    cuGraphKernelNodeGetAttribute(node: Handle, attribute: c_uint, value: *mut c_void);
    cuGraphKernelNodeGetParams_v2(node: Handle, parameters: *mut NodeParameters);
    cuGraphKernelNodeSetParams_v2(node: Handle, parameters: *const NodeParameters);
    cuGraphClone(clone: *mut Handle, graph: Handle);
    cuGraphNodeFindInClone(node: *mut Handle, original: Handle, clone: Handle);
    cuGraphDestroy(graph: Handle);
    cuGraphInstantiate_v2(exec: *mut Handle, graph: Handle, node: *mut Handle, log: *mut c_char, length: usize);
    cuGraphInstantiateWithFlags(exec: *mut Handle, graph: Handle, flags: u64);
    cuGraphInstantiateWithParams(exec: *mut Handle, graph: Handle, parameters: *mut u64);
    cuGraphInstantiateWithParams_ptsz(exec: *mut Handle, graph: Handle, parameters: *mut u64);
    cuGraphLaunch(exec: Handle, stream: Handle);
    cuGraphLaunch_ptsz(exec: Handle, stream: Handle);
    cuGraphExecDestroy(exec: Handle);
    cuGraphExecUpdate(exec: Handle, graph: Handle, node: *mut Handle, result: *mut c_int);
    cuGraphExecUpdate_v2(exec: Handle, graph: Handle, result: *mut c_void);
    cuGraphExecKernelNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void);
    cuGraphExecKernelNodeSetParams_v2(exec: Handle, node: Handle, parameters: *const NodeParameters);
    cuGraphExecNodeSetParams(exec: Handle, node: Handle, parameters: *mut c_void);
    cuGraphExecMemcpyNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void, context: Handle);
    cuGraphExecMemsetNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void, context: Handle);
    cuGraphExecHostNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void);
    cuGraphExecChildGraphNodeSetParams(exec: Handle, node: Handle, child: Handle);
    cuGraphExecEventRecordNodeSetEvent(exec: Handle, node: Handle, event: Handle);
    cuGraphExecEventWaitNodeSetEvent(exec: Handle, node: Handle, event: Handle);
    cuGraphExecExternalSemaphoresSignalNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void);
    cuGraphExecExternalSemaphoresWaitNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void);
    cuGraphExecBatchMemOpNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void);
    cuGraphNodeSetEnabled(exec: Handle, node: Handle, enabled: c_uint);
    cuMemAlloc_v2(pointer: *mut DevicePtr, bytes: usize);
    cuMemAllocPitch_v2(pointer: *mut DevicePtr, pitch: *mut usize, width: usize, height: usize, element: c_uint);
    cuMemFree_v2(pointer: DevicePtr);
    cuMemAllocAsync(pointer: *mut DevicePtr, bytes: usize, stream: Handle);
    cuMemAllocAsync_ptsz(pointer: *mut DevicePtr, bytes: usize, stream: Handle);
    cuMemAllocFromPoolAsync(pointer: *mut DevicePtr, bytes: usize, pool: Handle, stream: Handle);
    cuMemAllocFromPoolAsync_ptsz(pointer: *mut DevicePtr, bytes: usize, pool: Handle, stream: Handle);
    cuMemFreeAsync(pointer: DevicePtr, stream: Handle);
    cuMemFreeAsync_ptsz(pointer: DevicePtr, stream: Handle);
    cuMemAllocManaged(pointer: *mut DevicePtr, bytes: usize, flags: c_uint);
    cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemAllocHost_v2(pointer: *mut *mut c_void, bytes: usize);
    cuMemFreeHost(pointer: *mut c_void);
    cuMemHostRegister_v2(pointer: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostUnregister(pointer: *mut c_void);
    cuMemMap(pointer: DevicePtr, bytes: usize, offset: usize, handle: u64, flags: u64);
    cuMemUnmap(pointer: DevicePtr, bytes: usize);
    cuMemcpyHtoDAsync_v2(to: DevicePtr, from: *const c_void, bytes: usize, stream: Handle);
    cuMemcpyDtoH_v2(to: *mut c_void, from: DevicePtr, bytes: usize);
    cuModuleGetGlobal_v2(pointer: *mut DevicePtr, bytes: *mut usize, module: Handle, name: *const c_char);
    cuLibraryGetGlobal(pointer: *mut DevicePtr, bytes: *mut usize, library: Handle, name: *const c_char);
    cuStreamCreate(stream: *mut Handle, flags: c_uint);
    cuStreamGetCtx(stream: Handle, context: *mut Handle);
    cuStreamSynchronize(stream: Handle);
    cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, priority: c_int);
    cuStreamDestroy_v2(stream: Handle);
    cuStreamQuery(stream: Handle);
    cuStreamIsCapturing(stream: Handle, status: *mut c_int);
    cuStreamIsCapturing_ptsz(stream: Handle, status: *mut c_int);
    cuThreadExchangeStreamCaptureMode(mode: *mut c_int);
    cuEventCreate(event: *mut Handle, flags: c_uint);
    cuEventRecord(event: Handle, stream: Handle);
    cuEventRecord_ptsz(event: Handle, stream: Handle);
    cuEventQuery(event: Handle);
    cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle);
    cuCtxDestroy_v2(context: Handle);
    cuDevicePrimaryCtxRelease_v2(device: c_int);
    cuDevicePrimaryCtxReset_v2(device: c_int);
    cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int);
    cuDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: Handle, items: c_int, shared: usize);
}
