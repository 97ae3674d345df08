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

/// What a function does beside the driver's own, `$real`.
macro_rules! treatment {
    ($real:path, $per_thread:literal, after $body:block, $($own:ident),*) => {{
        let result = $real($($own),*);
        if result == SUCCESS && settings::mode() != Mode::Off $body
        result
    }};
    ($real:path, $per_thread:literal, before $body:block, $($own:ident),*) => {{
        if settings::mode() != Mode::Off $body
        $real($($own),*)
    }};
    ($real:path, $per_thread:literal, (always $result:ident) $body:block, $($own:ident),*) => {{
        let $result = $real($($own),*);
        $body
        $result
    }};
    ($real:path, $per_thread:literal, (instead $own_real:ident, $is_own:tt) $body:block, $($own:ident),*) => {{
        let ($own_real, $is_own) = ($real, $per_thread);
        $body
    }};
}

/// Exports a function, and its variant with a null stream of each thread's own.
macro_rules! export {
    ($name:ident $own:tt $treatment:tt $body:block; $types:tt []) => {
        export! { @ $name false $own $treatment $body $types }
    };
    ($name:ident $own:tt $treatment:tt $body:block; $types:tt [$twin:ident]) => {
        export! { @ $name false $own $treatment $body $types }
        export! { @ $twin true $own $treatment $body $types }
    };
    (@ $name:ident $per_thread:literal ($($own:ident),*) $treatment:tt $body:block ($($ty:ty),*)) => {
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::missing_safety_doc, missing_docs)]
        pub unsafe extern "C" fn $name($($own: $ty),*) -> CUresult {
            // SAFETY: the program's arguments are as the driver's documentation requires; see the crate's.
            unsafe { treatment!(real::$name, $per_thread, $treatment $body, $($own),*) }
        }
    };
}

/// A function, and its variant, as they are found by name.
macro_rules! listed {
    ($name:ident; $types:tt [$($twin:ident)?]) => {
        &[Wrapper::new(name!($name), $name as *const c_void) $(, Wrapper::new(name!($twin), $twin as *const c_void))?]
    };
}

/// Exports functions, and lists them by name. One calls the driver's and does something `after` it, where it succeeded and the
/// library is not off; or `before` it, where that is not off; or `always` after it; or something `instead`, which calls it itself.
macro_rules! exported {
    (@ $($name:ident),+ => $own:tt $treatment:tt $body:block) => {
        $($name! { export! $name $own $treatment $body })+
    };
    ($($($name:ident),+($($own:ident),*) $treatment:tt $body:block)*) => {
        $(exported! { @ $($name),+ => ($($own),*) $treatment $body })*

        /// All of them.
        pub static WRAPPERS: &[&[Wrapper]] = &[$($($name! { listed! $name }),+),*];
    };
}

/// The first call that found a driver: from here on the program is one that uses it.
fn first_call() {
    static FIRST: Once = Once::new();
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

/// # Safety
/// The driver has taken the image.
unsafe fn loaded(owner: Handle, image: *const c_void, is_library: bool) {
    // SAFETY: the caller's.
    unsafe { images::loaded(owner, images::bytes(image), is_library) };
    replace::begin();
}

unsafe fn loaded_from(owner: Handle, file: *const c_char, is_library: bool) {
    // SAFETY: the driver has read the name.
    unsafe { images::loaded_from(owner, file, is_library) };
    replace::begin();
}

/// A module or library is about to be unloaded: its kernels are removed first, so that nothing uses them any more.
fn unloaded(owner: Handle) {
    functions::forget(owner);
    images::unloaded(owner);
    replace::unloaded(owner);
}

/// The program has the handle of a kernel.
unsafe fn named(handle: Handle, owner: Handle, name: *const c_char) {
    if name.is_null() {
        return;
    }
    // SAFETY: the driver has read the name.
    let name = unsafe { CStr::from_ptr(name).to_string_lossy().into_owned() };
    if let Some(known) = functions::register(handle, owner, name) {
        replace::registered(known, handle, owner);
    }
}

fn got(start: DevicePtr, bytes: usize, kind: MemoryKind) {
    memory::allocated(start, bytes as u64, kind);
    replace::begin();
}

exported! {
    cuInit(flags) after { first_call() }
    cuGetProcAddress(name, function, version, flags) after { lookup::answer(name, function, version, flags) }
    cuGetProcAddress_v2(name, function, version, flags, status) after { lookup::answer(name, function, version, flags) }

    cuLinkAddData_v2(state, kind, data, bytes, name, count, options, values) after {
        let is_text = kind == INPUT_PTX && !data.is_null();
        images::link_input(state, is_text.then(|| std::slice::from_raw_parts(data.cast::<u8>(), bytes)));
    }
    cuLinkAddFile_v2(state, kind, file, count, options, values) after { images::link_input(state, None) }
    cuLinkComplete(state, image, bytes) (instead real, _) {
        let mut length = 0;
        let place = if bytes.is_null() { &raw mut length } else { bytes };
        let result = real(state, image, place);
        if result == SUCCESS && settings::mode().captures() && !image.is_null() {
            // As it is found when it is loaded.
            if let Some(code) = images::bytes(*image) {
                images::linked(state, code);
            }
        }
        result
    }
    cuLinkDestroy(state) before { images::link_ends(state) }
    cuModuleLoad(module, file) after { loaded_from(*module, file, false) }
    cuModuleLoadData, cuModuleLoadFatBinary(module, image) after { loaded(*module, image, false) }
    cuModuleLoadDataEx(module, image, count, options, values) after { loaded(*module, image, false) }
    cuModuleUnload, cuLibraryUnload(owner) before { unloaded(owner) }
    cuModuleGetFunction, cuLibraryGetKernel(handle, owner, name) after { named(*handle, owner, name) }
    cuLibraryLoadData(library, code, options, values, count, own_options, own_values, own_count) after {
        loaded(*library, code, true);
    }
    cuLibraryLoadFromFile(library, file, options, values, count, own_options, own_values, own_count) after {
        loaded_from(*library, file, true);
    }
    cuLibraryGetModule(module, library) after { images::same(*module, library) }
    cuKernelGetFunction(function, kernel) after { functions::alias(*function, kernel) }
    cuFuncSetAttribute(function, attribute, value) after {
        if replace::is_shared_attribute(attribute) {
            replace::attribute(function, |own| real::cuFuncSetAttribute(own, attribute, value));
        }
    }
    cuFuncSetCacheConfig(function, config) after {
        replace::attribute(function, |own| real::cuFuncSetCacheConfig(own, config));
    }
    cuKernelSetAttribute(attribute, value, kernel, device) after {
        if replace::is_shared_attribute(attribute) {
            replace::attribute(kernel, |own| real::cuKernelSetAttribute(attribute, value, own, device));
        }
    }

    cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra) (instead real, per_thread) {
        let mut own = plain(function, [gx, gy, gz], [bx, by, bz], shared, stream, parameters, extra);
        own.per_thread = per_thread;
        launches::launch(&own, |function| {
            real(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
        })
    }
    cuLaunchKernelEx(config, function, parameters, extra) (instead real, per_thread) {
        if config.is_null() {
            return real(config, function, parameters, extra);
        }
        let mut own = Launch::of(&*config, function, parameters, extra);
        own.per_thread = per_thread;
        launches::launch(&own, |function| real(config, function, parameters, extra))
    }
    cuLaunchCooperativeKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters) (instead real, per_thread) {
        let mut own = plain(function, [gx, gy, gz], [bx, by, bz], shared, stream, parameters, ptr::null_mut());
        (own.is_cooperative, own.per_thread) = (true, per_thread);
        launches::launch(&own, |function| {
            real(function, gx, gy, gz, bx, by, bz, shared, stream, parameters)
        })
    }
    cuGraphAddKernelNode, cuGraphAddKernelNode_v2(node, graph, after, count, parameters) before {
        launches::node(parameters.cast());
    }
    cuGraphInstantiate_v2(exec, graph, node, log, length) after { graphs::instantiated(*exec, graph, 0) }
    cuGraphInstantiateWithFlags(exec, graph, flags) after { graphs::instantiated(*exec, graph, flags) }
    cuGraphInstantiateWithParams(exec, graph, parameters) after {
        // Its flags come first.
        graphs::instantiated(*exec, graph, parameters.as_ref().copied().unwrap_or(0));
    }
    cuGraphLaunch(exec, stream) (instead real, per_thread) {
        graphs::launch(exec, stream, per_thread, |exec| real(exec, stream))
    }
    cuGraphExecDestroy(exec) before { graphs::destroyed(exec) }
    cuGraphExecUpdate(exec, graph, node, outcome) (always result) { updated(result, exec, graph) }
    cuGraphExecUpdate_v2(exec, graph, outcome) (always result) { updated(result, exec, graph) }
    cuGraphExecKernelNodeSetParams_v2(exec, node, parameters) (always result) {
        match result {
            SUCCESS if !parameters.is_null() => graphs::set_parameters(exec, node, parameters),
            _ => graphs::forget(exec),
        }
    }
    cuGraphExecKernelNodeSetParams, cuGraphExecNodeSetParams, cuGraphExecHostNodeSetParams,
    cuGraphExecExternalSemaphoresSignalNodeSetParams, cuGraphExecExternalSemaphoresWaitNodeSetParams,
    cuGraphExecBatchMemOpNodeSetParams, cuGraphExecChildGraphNodeSetParams, cuGraphExecEventRecordNodeSetEvent,
    cuGraphExecEventWaitNodeSetEvent(exec, node, given) (always _result) { graphs::forget(exec) }
    cuGraphExecMemcpyNodeSetParams, cuGraphExecMemsetNodeSetParams(exec, node, given, context) (always _result) {
        graphs::forget(exec);
    }
    cuGraphNodeSetEnabled(exec, node, enabled) (always _result) { graphs::forget(exec) }

    cuMemAlloc_v2(pointer, bytes) after { got(*pointer, bytes, MemoryKind::Device) }
    cuMemAllocPitch_v2(pointer, pitch, width, height, element) after {
        got(*pointer, *pitch * height, MemoryKind::Device);
    }
    cuMemAllocAsync(pointer, bytes, stream) after { got(*pointer, bytes, MemoryKind::Device) }
    cuMemAllocFromPoolAsync(pointer, bytes, pool, stream) after { got(*pointer, bytes, MemoryKind::Device) }
    cuMemAllocManaged(pointer, bytes, flags) after { got(*pointer, bytes, MemoryKind::Managed) }
    cuMemHostAlloc(pointer, bytes, flags) after { got(*pointer as DevicePtr, bytes, MemoryKind::Host) }
    cuMemAllocHost_v2(pointer, bytes) after { got(*pointer as DevicePtr, bytes, MemoryKind::Host) }
    cuMemHostRegister_v2(pointer, bytes, flags) after { got(pointer as DevicePtr, bytes, MemoryKind::Foreign) }
    // One physical allocation may be mapped twice, or be another process's: as if others wrote it.
    cuMemMap(pointer, bytes, offset, handle, flags) after { got(pointer, bytes, MemoryKind::Foreign) }
    cuMemFree_v2(pointer) after { memory::freed(pointer) }
    cuMemFreeAsync(pointer, stream) after { memory::freed(pointer) }
    cuMemFreeHost, cuMemHostUnregister(pointer) after { memory::freed(pointer as DevicePtr) }
    cuMemUnmap(pointer, bytes) after { memory::unmapped(pointer, bytes as u64) }

    cuStreamCreate(stream, flags) after { snapshot::stream_created(*stream) }
    cuStreamCreateWithPriority(stream, flags, priority) after { snapshot::stream_created(*stream) }
    cuStreamDestroy_v2(stream) before { snapshot::stream_destroyed(stream) }
    cuCtxDestroy_v2(context) (instead real, _) {
        leave(context);
        ended(real(context), Some(context as usize), || true)
    }
    cuDevicePrimaryCtxRelease_v2(device) (instead real, _) {
        leave(events::context() as Handle);
        let context = primary(device);
        // It ends with the last release.
        ended(real(device), context, || !is_active(device))
    }
    cuDevicePrimaryCtxReset_v2(device) (instead real, _) {
        leave(events::context() as Handle);
        let context = primary(device);
        ended(real(device), context, || true)
    }
}

/// A context that may have ended: with it ends what is in it.
fn ended(result: CUresult, context: Option<usize>, is_over: impl FnOnce() -> bool) -> CUresult {
    if result == SUCCESS && settings::mode() != Mode::Off && is_over() {
        memory::context_ended(context);
    }
    result
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

unsafe fn updated(result: CUresult, exec: Handle, graph: Handle) {
    match result {
        // SAFETY: the driver has accepted the graph.
        SUCCESS => unsafe { graphs::updated(exec, graph) },
        // What it has changed before it failed is not known.
        _ => graphs::forget(exec),
    }
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
