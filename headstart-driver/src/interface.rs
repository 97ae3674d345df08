//! The driver's functions, as `cuda.h` has them.
//!
//! A row has a function's arguments; the variant for programs whose null stream is each thread's own; and the name under which
//! programs of a version of CUDA, and of later ones, ask for it. What calls a function, has it in the driver's place, or answers in
//! a driver's stead is made of its row.

/// A name as a C string.
#[allow(unused_macros)]
macro_rules! name {
    ($name:ident) => {
        const { $crate::abi::c_string(concat!(stringify!($name), "\0")) }
    };
}

/// Makes a macro of each function, which hands another macro what it is given, and the types of the arguments and the variant
/// behind it: who writes the body chooses the names of the arguments. `$d` is a dollar, for the macros that are made; and the last
/// macro hands all rows on.
macro_rules! interface {
    ($d:tt $every:ident! $($name:ident($($argument:ident: $ty:ty),*) $(also $twin:ident)? $(is $base:ident since $version:literal)?;)*) => {
        $(
            #[allow(unused_macros)]
            macro_rules! $name {
                ($d then:ident! $d($d given:tt)*) => { $d then! { $d($d given)*; ($($ty),*) [$($twin)?] } };
            }
        )*

        #[allow(unused_macros)]
        macro_rules! $every {
            ($d then:ident) => {
                $d then! { $($name ($($argument: $ty),*) [$($twin)?] [$($base $version)?];)* }
            };
        }
    };
}

interface! {
    $ every_function!

    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int);
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    cuCtxGetDevice(device: *mut c_int);
    cuCtxGetCurrent(context: *mut Handle);
    cuCtxSynchronize();
    cuGetProcAddress(name: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64);
    cuGetProcAddress_v2(
        name: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64, status: *mut c_int
    ) is cuGetProcAddress since 12000;
    cuLinkAddData_v2(
        state: Handle, kind: c_int, data: *mut c_void, bytes: usize, name: *const c_char, count: c_uint,
        options: *mut c_int, values: *mut *mut c_void
    ) is cuLinkAddData since 6050;
    cuLinkAddFile_v2(
        state: Handle, kind: c_int, file: *const c_char, count: c_uint, options: *mut c_int, values: *mut *mut c_void
    ) is cuLinkAddFile since 6050;
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
        library_options: *mut c_int, library_values: *mut *mut c_void, library_count: c_uint
    );
    cuLibraryLoadFromFile(
        library: *mut Handle, file: *const c_char, options: *mut c_int, values: *mut *mut c_void, count: c_uint,
        library_options: *mut c_int, library_values: *mut *mut c_void, library_count: c_uint
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
        stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void
    ) also cuLaunchKernel_ptsz;
    cuLaunchKernelEx(
        config: *const LaunchConfig, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void
    ) also cuLaunchKernelEx_ptsz;
    cuLaunchCooperativeKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Handle, parameters: *mut *mut c_void
    ) also cuLaunchCooperativeKernel_ptsz;
    cuGraphAddKernelNode(node: *mut Handle, graph: Handle, after: *const Handle, count: usize, parameters: *const c_void);
    cuGraphAddKernelNode_v2(
        node: *mut Handle, graph: Handle, after: *const Handle, count: usize, parameters: *const NodeParameters
    ) is cuGraphAddKernelNode since 12000;
    cuGraphGetNodes(graph: Handle, nodes: *mut Handle, count: *mut usize);
    cuGraphNodeGetType(node: Handle, kind: *mut c_int);
    cuGraphKernelNodeGetAttribute(node: Handle, attribute: c_uint, value: *mut c_void);
    cuGraphKernelNodeGetParams_v2(node: Handle, parameters: *mut NodeParameters);
    cuGraphKernelNodeSetParams_v2(node: Handle, parameters: *const NodeParameters);
    cuGraphClone(clone: *mut Handle, graph: Handle);
    cuGraphNodeFindInClone(node: *mut Handle, original: Handle, clone: Handle);
    cuGraphDestroy(graph: Handle);
    cuGraphInstantiate_v2(exec: *mut Handle, graph: Handle, node: *mut Handle, log: *mut c_char, length: usize);
    cuGraphInstantiateWithFlags(exec: *mut Handle, graph: Handle, flags: u64) is cuGraphInstantiate since 12000;
    cuGraphInstantiateWithParams(exec: *mut Handle, graph: Handle, parameters: *mut u64) also cuGraphInstantiateWithParams_ptsz;
    cuGraphLaunch(exec: Handle, stream: Handle) also cuGraphLaunch_ptsz;
    cuGraphExecDestroy(exec: Handle);
    cuGraphExecUpdate(exec: Handle, graph: Handle, node: *mut Handle, result: *mut c_int);
    cuGraphExecUpdate_v2(exec: Handle, graph: Handle, result: *mut c_void) is cuGraphExecUpdate since 12000;
    cuGraphExecKernelNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void);
    cuGraphExecKernelNodeSetParams_v2(
        exec: Handle, node: Handle, parameters: *const NodeParameters
    ) is cuGraphExecKernelNodeSetParams since 12000;
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
    cuMemAlloc_v2(pointer: *mut DevicePtr, bytes: usize) is cuMemAlloc since 3020;
    cuMemAllocPitch_v2(
        pointer: *mut DevicePtr, pitch: *mut usize, width: usize, height: usize, element: c_uint
    ) is cuMemAllocPitch since 3020;
    cuMemFree_v2(pointer: DevicePtr) is cuMemFree since 3020;
    cuMemAllocAsync(pointer: *mut DevicePtr, bytes: usize, stream: Handle) also cuMemAllocAsync_ptsz;
    cuMemAllocFromPoolAsync(
        pointer: *mut DevicePtr, bytes: usize, pool: Handle, stream: Handle
    ) also cuMemAllocFromPoolAsync_ptsz;
    cuMemFreeAsync(pointer: DevicePtr, stream: Handle) also cuMemFreeAsync_ptsz;
    cuMemAllocManaged(pointer: *mut DevicePtr, bytes: usize, flags: c_uint);
    cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemAllocHost_v2(pointer: *mut *mut c_void, bytes: usize) is cuMemAllocHost since 3020;
    cuMemFreeHost(pointer: *mut c_void);
    cuMemHostRegister_v2(pointer: *mut c_void, bytes: usize, flags: c_uint) is cuMemHostRegister since 6050;
    cuMemHostUnregister(pointer: *mut c_void);
    cuMemMap(pointer: DevicePtr, bytes: usize, offset: usize, handle: u64, flags: u64);
    cuMemUnmap(pointer: DevicePtr, bytes: usize);
    cuMemcpyHtoDAsync_v2(to: DevicePtr, from: *const c_void, bytes: usize, stream: Handle);
    cuMemcpyDtoH_v2(to: *mut c_void, from: DevicePtr, bytes: usize);
    cuModuleGetGlobal_v2(
        pointer: *mut DevicePtr, bytes: *mut usize, module: Handle, name: *const c_char
    ) is cuModuleGetGlobal since 3020;
    cuLibraryGetGlobal(pointer: *mut DevicePtr, bytes: *mut usize, library: Handle, name: *const c_char);
    cuStreamCreate(stream: *mut Handle, flags: c_uint);
    cuStreamGetCtx(stream: Handle, context: *mut Handle);
    cuStreamSynchronize(stream: Handle);
    cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, priority: c_int);
    cuStreamDestroy_v2(stream: Handle) is cuStreamDestroy since 4000;
    cuStreamQuery(stream: Handle);
    cuStreamIsCapturing(stream: Handle, status: *mut c_int) also cuStreamIsCapturing_ptsz;
    cuThreadExchangeStreamCaptureMode(mode: *mut c_int);
    cuEventCreate(event: *mut Handle, flags: c_uint);
    cuEventRecord(event: Handle, stream: Handle) also cuEventRecord_ptsz;
    cuEventQuery(event: Handle);
    cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle);
    cuCtxDestroy_v2(context: Handle) is cuCtxDestroy since 4000;
    cuDevicePrimaryCtxRelease_v2(device: c_int) is cuDevicePrimaryCtxRelease since 11000;
    cuDevicePrimaryCtxReset_v2(device: c_int) is cuDevicePrimaryCtxReset since 11000;
    cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int);
    cuDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: Handle, items: c_int, shared: usize);
}
