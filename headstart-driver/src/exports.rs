//! The driver's functions that are looked at, as the program sees them.
//!
//! Each does the same as the driver's, and notifies the other modules. All valid arguments are passed on.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::Once;

use crate::abi::{CUresult, DevicePtr, Handle, INPUT_PTX, LaunchConfig, NodeParameters, SUCCESS};
use crate::launches::{self, Launch};
use crate::lookup::{self, Wrapper};
use crate::memory::{self, MemoryKind};
use crate::settings::{self, Mode};
use crate::{compilers, events, functions, graphs, images, real, record, replace, snapshot};

/// `CU_DEVICE_ATTRIBUTE_MPS_ENABLED`.
const MPS_ENABLED: c_int = 133;

/// Exports functions, and lists them by name.
macro_rules! exported {
    ($($name:ident($($argument:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, clippy::too_many_arguments, clippy::missing_safety_doc, missing_docs)]
            pub unsafe extern "C" fn $name($($argument: $ty),*) -> CUresult {
                // SAFETY: the program's arguments are as the driver's documentation requires; see the crate's.
                unsafe { $body }
            }
        )*

        /// All of them.
        pub static WRAPPERS: &[Wrapper] = &[$(
            Wrapper {
                name: match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name has no zeros"),
                },
                address: $name as *const c_void,
            },
        )*];
    };
}

/// The first call that found a driver: from here on the program is one that uses it.
fn first_call() {
    static FIRST: Once = Once::new();
    if settings::mode() == Mode::Off {
        return;
    }
    // SAFETY: functions without arguments, which stay.
    FIRST.call_once(|| unsafe {
        libc::atexit(at_exit);
        libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
        let mut version = 0;
        let _ = real::cuDriverGetVersion(&raw mut version);
        record::line(&["driver", &version.to_string()]);
        let mut shares = 0;
        // Of the first device: its answer holds for all.
        if settings::mode() == Mode::Exec
            && real::cuDeviceGetAttribute(&raw mut shares, MPS_ENABLED, 0) == SUCCESS
            && shares != 0
        {
            // A fault of ours would be every neighbour's.
            record::line(&["trouble", "the GPU is shared by MPS, where no kernel is replaced"]);
            settings::turn_off();
        }
    });
}

extern "C" fn at_exit() {
    // Without its last words, rather than never.
    if events::comes_free() && record::comes_free() {
        events::harvest(usize::MAX);
        record::end();
    }
}

/// In the order in which they are taken one inside the other.
extern "C" fn before_fork() {
    snapshot::hold();
    graphs::hold();
    functions::hold();
    images::hold();
    compilers::hold();
    replace::hold();
    memory::hold();
    events::hold();
    record::hold();
}

extern "C" fn after_fork() {
    record::release();
    events::release();
    memory::release();
    replace::release();
    compilers::release();
    images::release();
    functions::release();
    graphs::release();
    snapshot::release();
}

extern "C" fn in_child() {
    after_fork();
    record::forget();
    events::forget();
    // The parent's CUDA state does not work here, and a new one is another program's business.
    settings::turn_off();
}

unsafe fn module_loaded(result: CUresult, module: *mut Handle, image: *const c_void) -> CUresult {
    if result == SUCCESS && settings::mode() != Mode::Off {
        // SAFETY: the driver has taken the image and given the handle.
        unsafe {
            images::loaded(*module, images::bytes(image), false);
            replace::begin();
        }
    }
    result
}

unsafe fn library_loaded(result: CUresult, library: *mut Handle, image: *const c_void) -> CUresult {
    if result == SUCCESS && settings::mode() != Mode::Off {
        // SAFETY: the driver has taken the image and given the handle.
        unsafe {
            images::loaded(*library, images::bytes(image), true);
            replace::begin();
        }
    }
    result
}

/// A module or library is about to be unloaded: its kernels are removed first, so that nothing uses them any more.
fn unloaded(owner: Handle) {
    functions::forget(owner);
    images::unloaded(owner);
    replace::unloaded(owner);
}

/// The program has the handle of a kernel.
unsafe fn named(result: CUresult, handle: *mut Handle, owner: Handle, name: *const c_char) -> CUresult {
    if result == SUCCESS && settings::mode() != Mode::Off && !name.is_null() {
        // SAFETY: the driver has read the name and given the handle.
        let (handle, name) = unsafe { (*handle, CStr::from_ptr(name).to_string_lossy().into_owned()) };
        if let Some(known) = functions::register(handle, owner, name) {
            replace::registered(known, handle, owner);
        }
    }
    result
}

unsafe fn got(result: CUresult, pointer: *const DevicePtr, bytes: usize, kind: MemoryKind) -> CUresult {
    if result == SUCCESS && settings::mode() != Mode::Off {
        // SAFETY: the driver has written the address.
        memory::allocated(unsafe { *pointer }, bytes as u64, kind);
        replace::begin();
    }
    result
}

fn gave_back(result: CUresult, pointer: DevicePtr) -> CUresult {
    if result == SUCCESS && settings::mode() != Mode::Off {
        memory::freed(pointer);
    }
    result
}

exported! {
    cuInit(flags: c_uint) {
        let result = real::cuInit(flags);
        if result == SUCCESS {
            first_call();
        }
        result
    }
    cuGetProcAddress(name: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64) {
        lookup::get_proc_address(name, function, version, flags)
    }
    cuGetProcAddress_v2(name: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64, status: *mut c_int) {
        lookup::get_proc_address_v2(name, function, version, flags, status)
    }

    cuLinkAddData_v2(
        state: Handle, kind: c_int, data: *mut c_void, bytes: usize, name: *const c_char, count: c_uint,
        options: *mut c_int, values: *mut *mut c_void,
    ) {
        let result = real::cuLinkAddData_v2(state, kind, data, bytes, name, count, options, values);
        if result == SUCCESS && settings::mode().captures() {
            let is_text = kind == INPUT_PTX && !data.is_null();
            images::link_input(state, is_text.then(|| std::slice::from_raw_parts(data.cast::<u8>(), bytes)));
        }
        result
    }
    cuLinkAddFile_v2(
        state: Handle, kind: c_int, file: *const c_char, count: c_uint, options: *mut c_int, values: *mut *mut c_void,
    ) {
        let result = real::cuLinkAddFile_v2(state, kind, file, count, options, values);
        if result == SUCCESS && settings::mode().captures() {
            images::link_input(state, None);
        }
        result
    }
    cuLinkComplete(state: Handle, image: *mut *mut c_void, bytes: *mut usize) {
        let mut length = 0;
        let place = if bytes.is_null() { &raw mut length } else { bytes };
        let result = real::cuLinkComplete(state, image, place);
        if result == SUCCESS && settings::mode().captures() && !image.is_null() {
            // As it is found when it is loaded.
            if let Some(code) = images::bytes(*image) {
                images::linked(state, code);
            }
        }
        result
    }
    cuLinkDestroy(state: Handle) {
        images::link_ends(state);
        real::cuLinkDestroy(state)
    }
    cuModuleLoad(module: *mut Handle, file: *const c_char) {
        let result = real::cuModuleLoad(module, file);
        if result == SUCCESS && settings::mode() != Mode::Off {
            images::loaded_from(*module, file, false);
            replace::begin();
        }
        result
    }
    cuModuleLoadData(module: *mut Handle, image: *const c_void) {
        module_loaded(real::cuModuleLoadData(module, image), module, image)
    }
    cuModuleLoadDataEx(
        module: *mut Handle, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void,
    ) {
        module_loaded(real::cuModuleLoadDataEx(module, image, count, options, values), module, image)
    }
    cuModuleLoadFatBinary(module: *mut Handle, image: *const c_void) {
        module_loaded(real::cuModuleLoadFatBinary(module, image), module, image)
    }
    cuModuleUnload(module: Handle) {
        if settings::mode() != Mode::Off {
            unloaded(module);
        }
        real::cuModuleUnload(module)
    }
    cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) {
        named(real::cuModuleGetFunction(function, module, name), function, module, name)
    }
    cuLibraryLoadData(
        library: *mut Handle, code: *const c_void, options: *mut c_int, values: *mut *mut c_void, count: c_uint,
        library_options: *mut c_int, library_values: *mut *mut c_void, library_count: c_uint,
    ) {
        let result = real::cuLibraryLoadData(
            library, code, options, values, count, library_options, library_values, library_count,
        );
        library_loaded(result, library, code)
    }
    cuLibraryLoadFromFile(
        library: *mut Handle, file: *const c_char, options: *mut c_int, values: *mut *mut c_void, count: c_uint,
        library_options: *mut c_int, library_values: *mut *mut c_void, library_count: c_uint,
    ) {
        let result = real::cuLibraryLoadFromFile(
            library, file, options, values, count, library_options, library_values, library_count,
        );
        if result == SUCCESS && settings::mode() != Mode::Off {
            images::loaded_from(*library, file, true);
            replace::begin();
        }
        result
    }
    cuLibraryUnload(library: Handle) {
        if settings::mode() != Mode::Off {
            unloaded(library);
        }
        real::cuLibraryUnload(library)
    }
    cuLibraryGetKernel(kernel: *mut Handle, library: Handle, name: *const c_char) {
        named(real::cuLibraryGetKernel(kernel, library, name), kernel, library, name)
    }
    cuLibraryGetModule(module: *mut Handle, library: Handle) {
        let result = real::cuLibraryGetModule(module, library);
        if result == SUCCESS && settings::mode() != Mode::Off {
            images::same(*module, library);
        }
        result
    }
    cuKernelGetFunction(function: *mut Handle, kernel: Handle) {
        let result = real::cuKernelGetFunction(function, kernel);
        if result == SUCCESS && settings::mode() != Mode::Off {
            functions::alias(*function, kernel);
        }
        result
    }
    cuFuncSetAttribute(function: Handle, attribute: c_int, value: c_int) {
        let result = real::cuFuncSetAttribute(function, attribute, value);
        if result == SUCCESS && settings::mode() == Mode::Exec && replace::is_shared_attribute(attribute) {
            replace::attribute(functions::known(function), |own| {
                let _ = real::cuFuncSetAttribute(own, attribute, value);
            });
        }
        result
    }
    cuFuncSetCacheConfig(function: Handle, config: c_int) {
        let result = real::cuFuncSetCacheConfig(function, config);
        if result == SUCCESS && settings::mode() == Mode::Exec {
            replace::attribute(functions::known(function), |own| {
                let _ = real::cuFuncSetCacheConfig(own, config);
            });
        }
        result
    }
    cuKernelSetAttribute(attribute: c_int, value: c_int, kernel: Handle, device: c_int) {
        let result = real::cuKernelSetAttribute(attribute, value, kernel, device);
        if result == SUCCESS && settings::mode() == Mode::Exec && replace::is_shared_attribute(attribute) {
            replace::attribute(functions::known(kernel), |own| {
                let _ = real::cuKernelSetAttribute(attribute, value, own, device);
            });
        }
        result
    }

    cuLaunchKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        let own = plain(function, [gx, gy, gz], [bx, by, bz], shared, stream, parameters, extra);
        launches::launch(&own, |function| {
            real::cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
        })
    }
    cuLaunchKernel_ptsz(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        let own = plain(function, [gx, gy, gz], [bx, by, bz], shared, stream, parameters, extra);
        launches::launch(&Launch { per_thread: true, ..own }, |function| {
            real::cuLaunchKernel_ptsz(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
        })
    }
    cuLaunchKernelEx(
        config: *const LaunchConfig, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        if config.is_null() {
            return real::cuLaunchKernelEx(config, function, parameters, extra);
        }
        let own = Launch::of(&*config, function, parameters, extra);
        launches::launch(&own, |function| real::cuLaunchKernelEx(config, function, parameters, extra))
    }
    cuLaunchKernelEx_ptsz(
        config: *const LaunchConfig, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        if config.is_null() {
            return real::cuLaunchKernelEx_ptsz(config, function, parameters, extra);
        }
        let own = Launch { per_thread: true, ..Launch::of(&*config, function, parameters, extra) };
        launches::launch(&own, |function| real::cuLaunchKernelEx_ptsz(config, function, parameters, extra))
    }
    cuLaunchCooperativeKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Handle, parameters: *mut *mut c_void,
    ) {
        let own = plain(function, [gx, gy, gz], [bx, by, bz], shared, stream, parameters, ptr::null_mut());
        launches::launch(&Launch { is_cooperative: true, ..own }, |function| {
            real::cuLaunchCooperativeKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters)
        })
    }
    cuLaunchCooperativeKernel_ptsz(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Handle, parameters: *mut *mut c_void,
    ) {
        let own = plain(function, [gx, gy, gz], [bx, by, bz], shared, stream, parameters, ptr::null_mut());
        launches::launch(&Launch { is_cooperative: true, per_thread: true, ..own }, |function| {
            real::cuLaunchCooperativeKernel_ptsz(function, gx, gy, gz, bx, by, bz, shared, stream, parameters)
        })
    }
    cuGraphAddKernelNode(
        node: *mut Handle, graph: Handle, after: *const Handle, count: usize, parameters: *const c_void,
    ) {
        launches::node(parameters);
        real::cuGraphAddKernelNode(node, graph, after, count, parameters)
    }
    cuGraphAddKernelNode_v2(
        node: *mut Handle, graph: Handle, after: *const Handle, count: usize, parameters: *const c_void,
    ) {
        launches::node(parameters);
        real::cuGraphAddKernelNode_v2(node, graph, after, count, parameters)
    }
    cuGraphInstantiate_v2(exec: *mut Handle, graph: Handle, node: *mut Handle, log: *mut c_char, length: usize) {
        let result = real::cuGraphInstantiate_v2(exec, graph, node, log, length);
        instantiated(result, exec, graph, 0)
    }
    cuGraphInstantiateWithFlags(exec: *mut Handle, graph: Handle, flags: u64) {
        instantiated(real::cuGraphInstantiateWithFlags(exec, graph, flags), exec, graph, flags)
    }
    cuGraphInstantiateWithParams(exec: *mut Handle, graph: Handle, parameters: *mut u64) {
        let result = real::cuGraphInstantiateWithParams(exec, graph, parameters);
        // Its flags come first.
        instantiated(result, exec, graph, parameters.as_ref().copied().unwrap_or(0))
    }
    cuGraphInstantiateWithParams_ptsz(exec: *mut Handle, graph: Handle, parameters: *mut u64) {
        let result = real::cuGraphInstantiateWithParams_ptsz(exec, graph, parameters);
        instantiated(result, exec, graph, parameters.as_ref().copied().unwrap_or(0))
    }
    cuGraphLaunch(exec: Handle, stream: Handle) {
        graphs::launch(exec, stream, false, |exec| real::cuGraphLaunch(exec, stream))
    }
    cuGraphLaunch_ptsz(exec: Handle, stream: Handle) {
        graphs::launch(exec, stream, true, |exec| real::cuGraphLaunch_ptsz(exec, stream))
    }
    cuGraphExecDestroy(exec: Handle) {
        graphs::destroyed(exec);
        real::cuGraphExecDestroy(exec)
    }
    cuGraphExecUpdate(exec: Handle, graph: Handle, node: *mut Handle, outcome: *mut c_int) {
        let result = real::cuGraphExecUpdate(exec, graph, node, outcome);
        updated(result, exec, graph)
    }
    cuGraphExecUpdate_v2(exec: Handle, graph: Handle, outcome: *mut c_void) {
        let result = real::cuGraphExecUpdate_v2(exec, graph, outcome);
        updated(result, exec, graph)
    }
    cuGraphExecKernelNodeSetParams_v2(exec: Handle, node: Handle, parameters: *const NodeParameters) {
        let result = real::cuGraphExecKernelNodeSetParams_v2(exec, node, parameters);
        match result {
            SUCCESS if !parameters.is_null() => graphs::set_parameters(exec, node, parameters),
            _ => graphs::forget(exec),
        }
        result
    }
    cuGraphExecKernelNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void) {
        let result = real::cuGraphExecKernelNodeSetParams(exec, node, parameters);
        graphs::forget(exec);
        result
    }
    cuGraphExecNodeSetParams(exec: Handle, node: Handle, parameters: *mut c_void) {
        let result = real::cuGraphExecNodeSetParams(exec, node, parameters);
        graphs::forget(exec);
        result
    }
    cuGraphExecMemcpyNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void, context: Handle) {
        let result = real::cuGraphExecMemcpyNodeSetParams(exec, node, parameters, context);
        graphs::forget(exec);
        result
    }
    cuGraphExecMemsetNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void, context: Handle) {
        let result = real::cuGraphExecMemsetNodeSetParams(exec, node, parameters, context);
        graphs::forget(exec);
        result
    }
    cuGraphExecHostNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void) {
        let result = real::cuGraphExecHostNodeSetParams(exec, node, parameters);
        graphs::forget(exec);
        result
    }
    cuGraphExecChildGraphNodeSetParams(exec: Handle, node: Handle, child: Handle) {
        let result = real::cuGraphExecChildGraphNodeSetParams(exec, node, child);
        graphs::forget(exec);
        result
    }
    cuGraphExecEventRecordNodeSetEvent(exec: Handle, node: Handle, event: Handle) {
        let result = real::cuGraphExecEventRecordNodeSetEvent(exec, node, event);
        graphs::forget(exec);
        result
    }
    cuGraphExecEventWaitNodeSetEvent(exec: Handle, node: Handle, event: Handle) {
        let result = real::cuGraphExecEventWaitNodeSetEvent(exec, node, event);
        graphs::forget(exec);
        result
    }
    cuGraphExecExternalSemaphoresSignalNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void) {
        let result = real::cuGraphExecExternalSemaphoresSignalNodeSetParams(exec, node, parameters);
        graphs::forget(exec);
        result
    }
    cuGraphExecExternalSemaphoresWaitNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void) {
        let result = real::cuGraphExecExternalSemaphoresWaitNodeSetParams(exec, node, parameters);
        graphs::forget(exec);
        result
    }
    cuGraphExecBatchMemOpNodeSetParams(exec: Handle, node: Handle, parameters: *const c_void) {
        let result = real::cuGraphExecBatchMemOpNodeSetParams(exec, node, parameters);
        graphs::forget(exec);
        result
    }
    cuGraphNodeSetEnabled(exec: Handle, node: Handle, enabled: c_uint) {
        let result = real::cuGraphNodeSetEnabled(exec, node, enabled);
        graphs::forget(exec);
        result
    }

    cuMemAlloc_v2(pointer: *mut DevicePtr, bytes: usize) {
        got(real::cuMemAlloc_v2(pointer, bytes), pointer, bytes, MemoryKind::Device)
    }
    cuMemAllocPitch_v2(pointer: *mut DevicePtr, pitch: *mut usize, width: usize, height: usize, element: c_uint) {
        let result = real::cuMemAllocPitch_v2(pointer, pitch, width, height, element);
        match result {
            SUCCESS => got(result, pointer, *pitch * height, MemoryKind::Device),
            other => other,
        }
    }
    cuMemFree_v2(pointer: DevicePtr) {
        gave_back(real::cuMemFree_v2(pointer), pointer)
    }
    cuMemAllocAsync(pointer: *mut DevicePtr, bytes: usize, stream: Handle) {
        got(real::cuMemAllocAsync(pointer, bytes, stream), pointer, bytes, MemoryKind::Device)
    }
    cuMemAllocAsync_ptsz(pointer: *mut DevicePtr, bytes: usize, stream: Handle) {
        got(real::cuMemAllocAsync_ptsz(pointer, bytes, stream), pointer, bytes, MemoryKind::Device)
    }
    cuMemAllocFromPoolAsync(pointer: *mut DevicePtr, bytes: usize, pool: Handle, stream: Handle) {
        got(real::cuMemAllocFromPoolAsync(pointer, bytes, pool, stream), pointer, bytes, MemoryKind::Device)
    }
    cuMemAllocFromPoolAsync_ptsz(pointer: *mut DevicePtr, bytes: usize, pool: Handle, stream: Handle) {
        got(real::cuMemAllocFromPoolAsync_ptsz(pointer, bytes, pool, stream), pointer, bytes, MemoryKind::Device)
    }
    cuMemFreeAsync(pointer: DevicePtr, stream: Handle) {
        gave_back(real::cuMemFreeAsync(pointer, stream), pointer)
    }
    cuMemFreeAsync_ptsz(pointer: DevicePtr, stream: Handle) {
        gave_back(real::cuMemFreeAsync_ptsz(pointer, stream), pointer)
    }
    cuMemAllocManaged(pointer: *mut DevicePtr, bytes: usize, flags: c_uint) {
        got(real::cuMemAllocManaged(pointer, bytes, flags), pointer, bytes, MemoryKind::Managed)
    }
    cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint) {
        got(real::cuMemHostAlloc(pointer, bytes, flags), pointer.cast::<DevicePtr>(), bytes, MemoryKind::Host)
    }
    cuMemAllocHost_v2(pointer: *mut *mut c_void, bytes: usize) {
        got(real::cuMemAllocHost_v2(pointer, bytes), pointer.cast::<DevicePtr>(), bytes, MemoryKind::Host)
    }
    cuMemFreeHost(pointer: *mut c_void) {
        gave_back(real::cuMemFreeHost(pointer), pointer as DevicePtr)
    }
    cuMemHostRegister_v2(pointer: *mut c_void, bytes: usize, flags: c_uint) {
        let own = pointer as DevicePtr;
        got(real::cuMemHostRegister_v2(pointer, bytes, flags), &raw const own, bytes, MemoryKind::Foreign)
    }
    cuMemHostUnregister(pointer: *mut c_void) {
        gave_back(real::cuMemHostUnregister(pointer), pointer as DevicePtr)
    }
    cuMemMap(pointer: DevicePtr, bytes: usize, offset: usize, handle: u64, flags: u64) {
        let result = real::cuMemMap(pointer, bytes, offset, handle, flags);
        // One physical allocation may be mapped twice, or be another process's: as if others wrote it.
        got(result, &raw const pointer, bytes, MemoryKind::Foreign)
    }
    cuMemUnmap(pointer: DevicePtr, bytes: usize) {
        let result = real::cuMemUnmap(pointer, bytes);
        if result == SUCCESS && settings::mode() != Mode::Off {
            memory::unmapped(pointer, bytes as u64);
        }
        result
    }

    cuStreamCreate(stream: *mut Handle, flags: c_uint) {
        let result = real::cuStreamCreate(stream, flags);
        if result == SUCCESS && settings::mode() == Mode::Capture {
            snapshot::stream_created(*stream);
        }
        result
    }
    cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, priority: c_int) {
        let result = real::cuStreamCreateWithPriority(stream, flags, priority);
        if result == SUCCESS && settings::mode() == Mode::Capture {
            snapshot::stream_created(*stream);
        }
        result
    }
    cuStreamDestroy_v2(stream: Handle) {
        if settings::mode() == Mode::Capture {
            snapshot::stream_destroyed(stream);
        }
        real::cuStreamDestroy_v2(stream)
    }
    cuCtxDestroy_v2(context: Handle) {
        leave(context);
        let result = real::cuCtxDestroy_v2(context);
        if result == SUCCESS && settings::mode() != Mode::Off {
            memory::context_ended(Some(context as usize));
        }
        result
    }
    cuDevicePrimaryCtxRelease_v2(device: c_int) {
        leave(events::context() as Handle);
        let context = primary(device);
        let result = real::cuDevicePrimaryCtxRelease_v2(device);
        // It ends with the last release.
        if result == SUCCESS && settings::mode() != Mode::Off && !is_active(device) {
            memory::context_ended(context);
        }
        result
    }
    cuDevicePrimaryCtxReset_v2(device: c_int) {
        leave(events::context() as Handle);
        let context = primary(device);
        let result = real::cuDevicePrimaryCtxReset_v2(device);
        if result == SUCCESS && settings::mode() != Mode::Off {
            memory::context_ended(context);
        }
        result
    }
}

/// Whether a device's primary context is there, as far as the driver says.
fn is_active(device: c_int) -> bool {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: places for the answers.
    let result = unsafe { real::cuDevicePrimaryCtxGetState(device, &raw mut flags, &raw mut active) };
    result == SUCCESS && active != 0
}

/// A device's primary context, if it is there; none if the driver does not say.
fn primary(device: c_int) -> Option<usize> {
    if settings::mode() == Mode::Off || !is_active(device) {
        return None;
    }
    let mut context = ptr::null_mut();
    // SAFETY: a place for a handle. The context stays: it is retained once more, and released.
    unsafe {
        if real::cuDevicePrimaryCtxRetain(&raw mut context, device) != SUCCESS {
            return None;
        }
        let _ = real::cuDevicePrimaryCtxRelease_v2(device);
    }
    Some(context as usize)
}

unsafe fn instantiated(result: CUresult, exec: *mut Handle, graph: Handle, flags: u64) -> CUresult {
    if result == SUCCESS && !exec.is_null() {
        // SAFETY: the driver has given the handle.
        unsafe { graphs::instantiated(*exec, graph, flags) };
    }
    result
}

unsafe fn updated(result: CUresult, exec: Handle, graph: Handle) -> CUresult {
    match result {
        // SAFETY: the driver has accepted the graph.
        SUCCESS => unsafe { graphs::updated(exec, graph) },
        // What it has changed before it failed is not known.
        _ => graphs::forget(exec),
    }
    result
}

/// A context may end: times of launches in it are taken while they can be.
fn leave(context: Handle) {
    if matches!(settings::mode(), Mode::List | Mode::Exec) && !context.is_null() {
        // SAFETY: the context is current, or nothing is waited for that matters.
        let _ = unsafe { real::cuCtxSynchronize() };
        events::leave(context);
    }
    if settings::mode() != Mode::Off {
        let libraries = images::forget_modules();
        functions::forget_modules(&libraries);
        graphs::forget_all();
        replace::forget_modules(&libraries);
    }
}

/// The arguments of the plain kinds of launch.
fn plain(
    handle: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: Handle,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Launch {
    Launch {
        handle,
        grid,
        block,
        shared_bytes,
        stream,
        per_thread: false,
        is_cooperative: false,
        is_node: false,
        parameters,
        extra,
        attributes: ptr::null(),
        attribute_count: 0,
    }
}
