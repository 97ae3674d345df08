//! The driver's functions, as programs see them.
//!
//! Each looks at what it is passed as far as a driver does; what it is not for answers that it is not supported.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use crate::graphs::{self, Work};
use crate::launch;
use crate::modules;
use crate::state::{
    self, CUresult, Handle, INVALID_CONTEXT, INVALID_DEVICE, INVALID_HANDLE, INVALID_VALUE, NOT_FOUND,
    NOT_INITIALIZED, NOT_SUPPORTED, SUCCESS, state,
};

/// A function's name and address.
struct Export {
    name: &'static str,
    address: *const c_void,
}

// SAFETY: the address of a function is the same for all threads.
unsafe impl Sync for Export {}

/// The version that the driver says it has: 13.0.
const VERSION: c_int = 13000;

macro_rules! exported {
    ($($name:ident($($argument:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, clippy::too_many_arguments, clippy::missing_safety_doc, missing_docs)]
            pub unsafe extern "C" fn $name($($argument: $ty),*) -> CUresult {
                // SAFETY: what the program passes is as the driver's documentation says; pointers that may be null are looked
                // at first.
                #[allow(unused_unsafe)]
                unsafe { $body }
            }
        )*

        static EXPORTS: &[Export] = &[$(
            Export { name: stringify!($name), address: $name as *const c_void },
        )*];
    };
}

/// Writes an answer, unless there is no place for it.
unsafe fn answer<T>(to: *mut T, value: T) -> CUresult {
    match to.is_null() {
        true => INVALID_VALUE,
        false => {
            // SAFETY: the program's place for it.
            unsafe { to.write_unaligned(value) };
            SUCCESS
        }
    }
}

/// Writes an answer that may be an error.
unsafe fn answered<T>(to: *mut T, value: Result<T, CUresult>) -> CUresult {
    match value {
        // SAFETY: as above.
        Ok(value) => unsafe { answer(to, value) },
        Err(error) => error,
    }
}

unsafe fn name_of<'n>(name: *const c_char) -> Option<&'n str> {
    match name.is_null() {
        true => None,
        // SAFETY: a C string.
        false => unsafe { CStr::from_ptr(name) }.to_str().ok(),
    }
}

unsafe fn bytes_of<'b>(from: *const c_void, length: usize) -> &'b [u8] {
    match length {
        0 => &[],
        // SAFETY: the program has so many bytes there.
        _ => unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length) },
    }
}

unsafe fn read_to(to: *mut c_void, from: u64, length: usize) -> CUresult {
    let bytes = state().read(from, length as u64);
    match bytes {
        Ok(bytes) => {
            // SAFETY: the program has room for so many bytes.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast::<u8>(), bytes.len()) };
            state().result()
        }
        Err(error) => error,
    }
}

/// Whether a pointer is the device's.
fn is_device(address: u64) -> bool {
    state().find(address).is_some()
}

pub unsafe fn copy(to: u64, from: u64, length: usize) -> CUresult {
    // SAFETY: what is not the device's is the host's.
    unsafe {
        match (is_device(to), is_device(from)) {
            (true, true) => {
                let bytes = state().read(from, length as u64);
                bytes.map_or_else(|error| error, |bytes| state().write(to, &bytes))
            }
            (true, false) => state().write(to, bytes_of(from as *const c_void, length)),
            (false, true) => read_to(to as *mut c_void, from, length),
            (false, false) => {
                ptr::copy(from as *const u8, to as *mut u8, length);
                SUCCESS
            }
        }
    }
}

fn find_export(name: &str) -> Option<&'static Export> {
    let of = |name: &str| EXPORTS.iter().find(|own| own.name == name);
    let newest = ["_v4", "_v3", "_v2"]
        .iter()
        .find_map(|version| of(&format!("{name}{version}")));
    newest.or_else(|| of(name))
}

unsafe fn launched(
    stream: Handle,
    function: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    let function = match modules::function(function) {
        Ok(function) => function,
        Err(error) => return error,
    };
    // SAFETY: the caller's.
    let parameters = unsafe { launch::parameters(function, parameters, extra) };
    let work = Work::Launch {
        function,
        grid,
        block,
        shared_bytes: shared,
        parameters,
    };
    // SAFETY: a launch has no address of the host.
    unsafe { graphs::submit(stream, work) }
}

fn attribute(attribute: c_int) -> Option<c_int> {
    use headstart::device::Device;
    let state = state();
    let description = state.device.description();
    let [x, y, z] = description.max_group_dimensions.map(|size| size as c_int);
    Some(match attribute {
        1 => description.max_group_size as c_int,
        2 => x,
        3 => y,
        4 => z,
        5 => c_int::MAX,
        6 | 7 => 65_535,
        8 => 48 << 10,
        9 => 64 << 10,
        10 => description.default_sub_group_size as c_int,
        11 => c_int::MAX,
        12 | 82 => 65_536,
        13 | 36 => 1_500_000,
        14 => 512,
        15 | 19 | 31 | 41 => 1,
        16 => description.cores.max(1) as c_int,
        37 => 4096,
        38 => 50 << 20,
        39 => 2048,
        40 => 2,
        75 => 9,
        76 => 0,
        78 | 79 | 80 | 95 => 1,
        81 => 228 << 10,
        97 => description.max_shared_bytes as c_int,
        106 => 32,
        111 => 1 << 10,
        115 => 1,
        // What it does not have: managed memory, peers, virtual memory, and what is not known here.
        _ => 0,
    })
}

/// `CUlaunchConfig`.
#[repr(C)]
pub struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: Handle,
    attributes: *const c_void,
    attribute_count: c_uint,
}

exported! {
    cuInit(flags: c_uint) {
        match flags {
            0 => SUCCESS,
            _ => INVALID_VALUE,
        }
    }
    cuDriverGetVersion(version: *mut c_int) { answer(version, VERSION) }
    cuGetProcAddress_v2(
        name: *const c_char, function: *mut *const c_void, version: c_int, flags: u64, status: *mut c_int,
    ) {
        let _ = (version, flags);
        let found = name_of(name).and_then(find_export);
        if !status.is_null() {
            // CU_GET_PROC_ADDRESS_SUCCESS or …_SYMBOL_NOT_FOUND.
            *status = c_int::from(found.is_none());
        }
        match found {
            Some(own) => answer(function, own.address),
            None => {
                let _ = answer(function, ptr::null());
                NOT_FOUND
            }
        }
    }
    cuGetProcAddress(name: *const c_char, function: *mut *const c_void, version: c_int, flags: u64) {
        cuGetProcAddress_v2(name, function, version, flags, ptr::null_mut())
    }
    cuGetExportTable(table: *mut *const c_void, id: *const c_void) {
        let _ = id;
        let _ = answer(table, ptr::null());
        NOT_FOUND
    }
    cuGetErrorName(error: CUresult, text: *mut *const c_char) { answer(text, error_name(error).as_ptr()) }
    cuGetErrorString(error: CUresult, text: *mut *const c_char) { answer(text, error_name(error).as_ptr()) }

    cuDeviceGetCount(count: *mut c_int) { answer(count, 1) }
    cuDeviceGet(device: *mut c_int, ordinal: c_int) {
        match ordinal {
            0 => answer(device, 0),
            _ => INVALID_DEVICE,
        }
    }
    cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int) {
        use headstart::device::Device;
        if device != 0 || name.is_null() || length < 1 {
            return INVALID_VALUE;
        }
        let title = state().device.description().title.clone();
        let bytes = &title.as_bytes()[..title.len().min(length as usize - 1)];
        ptr::copy_nonoverlapping(bytes.as_ptr().cast(), name, bytes.len());
        *name.add(bytes.len()) = 0;
        SUCCESS
    }
    cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) {
        let _ = device;
        answer(uuid, *b"headstart-tests\0")
    }
    cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) { cuDeviceGetUuid(uuid, device) }
    cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) {
        use headstart::device::Device;
        let _ = device;
        answer(bytes, state().device.description().memory_bytes as usize)
    }
    cuDeviceGetAttribute(value: *mut c_int, which: c_int, device: c_int) {
        match (device, attribute(which)) {
            (0, Some(own)) => answer(value, own),
            _ => INVALID_VALUE,
        }
    }
    cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: c_int) {
        let _ = device;
        let _ = answer(major, 9);
        answer(minor, 0)
    }
    cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) {
        let _ = (device, peer);
        answer(can, 0)
    }
    cuDeviceGetDefaultMemPool(pool: *mut Handle, device: c_int) {
        let _ = device;
        answer(pool, state::primary())
    }
    cuDeviceGetMemPool(pool: *mut Handle, device: c_int) {
        let _ = device;
        answer(pool, state::primary())
    }

    cuCtxCreate_v2(context: *mut Handle, flags: c_uint, device: c_int) {
        let _ = (flags, device);
        let own = state::handle();
        state::push(own);
        answer(context, own)
    }
    cuCtxCreate_v4(context: *mut Handle, parameters: *const c_void, flags: c_uint, device: c_int) {
        let _ = parameters;
        cuCtxCreate_v2(context, flags, device)
    }
    cuCtxDestroy_v2(context: Handle) {
        if state::current() == context {
            state::pop();
        }
        SUCCESS
    }
    cuCtxGetCurrent(context: *mut Handle) { answer(context, state::current()) }
    cuCtxSetCurrent(context: Handle) {
        state::set_current(context);
        SUCCESS
    }
    cuCtxPushCurrent_v2(context: Handle) {
        state::push(context);
        SUCCESS
    }
    cuCtxPopCurrent_v2(context: *mut Handle) {
        let own = state::pop();
        if !context.is_null() {
            *context = own;
        }
        match own.is_null() {
            true => INVALID_CONTEXT,
            false => SUCCESS,
        }
    }
    cuCtxGetDevice(device: *mut c_int) {
        match state::current().is_null() {
            true => INVALID_CONTEXT,
            false => answer(device, 0),
        }
    }
    cuCtxGetFlags(flags: *mut c_uint) { answer(flags, 0) }
    cuCtxGetApiVersion(context: Handle, version: *mut c_uint) {
        let _ = context;
        answer(version, 13_000)
    }
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        if !least.is_null() {
            *least = 0;
        }
        if !greatest.is_null() {
            *greatest = 0;
        }
        SUCCESS
    }
    cuCtxGetLimit(value: *mut usize, limit: c_int) {
        let _ = limit;
        answer(value, 1 << 20)
    }
    cuCtxSetLimit(limit: c_int, value: usize) {
        let _ = (limit, value);
        SUCCESS
    }
    cuCtxGetCacheConfig(config: *mut c_int) { answer(config, 0) }
    cuCtxSetCacheConfig(config: c_int) {
        let _ = config;
        SUCCESS
    }
    cuCtxSynchronize() { state().result() }
    cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) {
        match device {
            0 => answer(context, state::primary()),
            _ => INVALID_DEVICE,
        }
    }
    cuDevicePrimaryCtxRelease_v2(device: c_int) {
        let _ = device;
        SUCCESS
    }
    cuDevicePrimaryCtxReset_v2(device: c_int) {
        let _ = device;
        SUCCESS
    }
    cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint) {
        let _ = (device, flags);
        SUCCESS
    }
    cuDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int) {
        let _ = device;
        if !flags.is_null() {
            *flags = 0;
        }
        answer(active, 1)
    }

    cuModuleLoadData(module: *mut Handle, image: *const c_void) { answered(module, modules::load(image)) }
    cuModuleLoadDataEx(
        module: *mut Handle, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void,
    ) {
        let _ = (count, options, values);
        answered(module, modules::load(image))
    }
    cuModuleLoadFatBinary(module: *mut Handle, image: *const c_void) { answered(module, modules::load(image)) }
    cuModuleLoad(module: *mut Handle, file: *const c_char) {
        let Some(name) = name_of(file) else { return INVALID_VALUE };
        match std::fs::read(name) {
            Ok(bytes) => answered(module, modules::load_bytes(&bytes)),
            // CUDA_ERROR_FILE_NOT_FOUND
            Err(_) => 301,
        }
    }
    cuModuleUnload(module: Handle) { modules::unload(module).map_or_else(|error| error, |()| SUCCESS) }
    cuModuleGetLoadingMode(mode: *mut c_int) { answer(mode, 1) }
    cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) {
        let Some(name) = name_of(name) else { return INVALID_VALUE };
        answered(function, modules::module(module).and_then(|module| module.function(name)))
    }
    cuModuleGetFunctionCount(count: *mut c_uint, module: Handle) {
        answered(count, modules::module(module).map(|module| module.entries().len() as c_uint))
    }
    cuModuleGetGlobal_v2(address: *mut u64, bytes: *mut usize, module: Handle, name: *const c_char) {
        let Some(name) = name_of(name) else { return INVALID_VALUE };
        let module = match modules::module(module) {
            Ok(module) => module,
            Err(error) => return error,
        };
        let found = module.variable(&mut state(), name);
        match found {
            Ok((start, size)) => {
                if !address.is_null() {
                    *address = start;
                }
                if !bytes.is_null() {
                    *bytes = size as usize;
                }
                SUCCESS
            }
            Err(error) => error,
        }
    }
    cuLibraryLoadData(
        library: *mut Handle, code: *const c_void, options: *mut c_int, values: *mut *mut c_void, count: c_uint,
        library_options: *mut c_int, library_values: *mut *mut c_void, library_count: c_uint,
    ) {
        let _ = (options, values, count, library_options, library_values, library_count);
        answered(library, modules::load(code))
    }
    cuLibraryLoadFromFile(
        library: *mut Handle, file: *const c_char, options: *mut c_int, values: *mut *mut c_void, count: c_uint,
        library_options: *mut c_int, library_values: *mut *mut c_void, library_count: c_uint,
    ) {
        let _ = (options, values, count, library_options, library_values, library_count);
        cuModuleLoad(library, file)
    }
    cuLibraryUnload(library: Handle) { cuModuleUnload(library) }
    cuLibraryGetKernel(kernel: *mut Handle, library: Handle, name: *const c_char) {
        cuModuleGetFunction(kernel, library, name)
    }
    cuLibraryGetKernelCount(count: *mut c_uint, library: Handle) { cuModuleGetFunctionCount(count, library) }
    cuLibraryGetModule(module: *mut Handle, library: Handle) {
        answered(module, modules::module(library).map(modules::handle_of))
    }
    cuLibraryGetGlobal(address: *mut u64, bytes: *mut usize, library: Handle, name: *const c_char) {
        cuModuleGetGlobal_v2(address, bytes, library, name)
    }
    cuKernelGetFunction(function: *mut Handle, kernel: Handle) {
        answered(function, modules::function(kernel).map(|_| kernel))
    }
    cuKernelGetLibrary(library: *mut Handle, kernel: Handle) {
        answered(library, modules::function(kernel).map(|own| modules::handle_of(own.module)))
    }
    cuKernelGetName(name: *mut *const c_char, kernel: Handle) {
        answered(name, modules::function(kernel).map(|own| own.name.as_ptr()))
    }
    cuFuncGetName(name: *mut *const c_char, function: Handle) { cuKernelGetName(name, function) }
    cuFuncGetModule(module: *mut Handle, function: Handle) { cuKernelGetLibrary(module, function) }
    cuFuncLoad(function: Handle) { modules::function(function).map_or_else(|error| error, |_| SUCCESS) }
    cuFuncIsLoaded(loaded: *mut c_int, function: Handle) {
        let _ = function;
        answer(loaded, 1)
    }
    cuFuncGetParamInfo(function: Handle, index: usize, offset: *mut usize, size: *mut usize) {
        let own = match modules::function(function) {
            Ok(own) => own,
            Err(error) => return error,
        };
        let Some(&(start, bytes)) = own.layout.get(index) else { return INVALID_VALUE };
        if !size.is_null() {
            *size = bytes as usize;
        }
        answer(offset, start as usize)
    }
    cuKernelGetParamInfo(kernel: Handle, index: usize, offset: *mut usize, size: *mut usize) {
        cuFuncGetParamInfo(kernel, index, offset, size)
    }
    cuFuncGetAttribute(value: *mut c_int, which: c_int, function: Handle) {
        let own = match modules::function(function) {
            Ok(own) => own,
            Err(error) => return error,
        };
        let set = own.attributes.lock().ok().and_then(|all| all.get(&which).copied());
        answer(value, set.unwrap_or(match which {
            0 => 1024,
            1 => own.shared_bytes as c_int,
            4 => 32,
            5 | 6 => 90,
            8 => 48 << 10,
            _ => 0,
        }))
    }
    cuKernelGetAttribute(value: *mut c_int, which: c_int, kernel: Handle, device: c_int) {
        let _ = device;
        cuFuncGetAttribute(value, which, kernel)
    }
    cuFuncSetAttribute(function: Handle, which: c_int, value: c_int) {
        match modules::function(function) {
            Ok(own) => {
                if let Ok(mut all) = own.attributes.lock() {
                    all.insert(which, value);
                }
                SUCCESS
            }
            Err(error) => error,
        }
    }
    cuKernelSetAttribute(which: c_int, value: c_int, kernel: Handle, device: c_int) {
        let _ = device;
        cuFuncSetAttribute(kernel, which, value)
    }
    cuFuncSetCacheConfig(function: Handle, config: c_int) {
        let _ = config;
        modules::function(function).map_or_else(|error| error, |_| SUCCESS)
    }
    cuKernelSetCacheConfig(kernel: Handle, config: c_int, device: c_int) {
        let _ = device;
        cuFuncSetCacheConfig(kernel, config)
    }
    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: Handle, size: c_int, shared: usize) {
        let _ = shared;
        match (modules::function(function), size) {
            (Ok(_), 1..) => answer(blocks, (2048 / size).clamp(1, 32)),
            _ => INVALID_VALUE,
        }
    }
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int, function: Handle, size: c_int, shared: usize, flags: c_uint,
    ) {
        let _ = flags;
        cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, size, shared)
    }

    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        use headstart::device::Device;
        let bytes = state().device.description().memory_bytes as usize;
        let _ = answer(free, bytes);
        answer(total, bytes)
    }
    cuMemAlloc_v2(address: *mut u64, bytes: usize) {
        let own = state().allocate(bytes as u64);
        answered(address, own)
    }
    cuMemAllocPitch_v2(address: *mut u64, pitch: *mut usize, width: usize, height: usize, element: c_uint) {
        let _ = element;
        let row = width.next_multiple_of(512);
        if answer(pitch, row) != SUCCESS {
            return INVALID_VALUE;
        }
        let own = state().allocate((row * height) as u64);
        answered(address, own)
    }
    cuMemFree_v2(address: u64) { state().free(address) }
    cuMemAllocAsync(address: *mut u64, bytes: usize, stream: Handle) {
        let _ = stream;
        cuMemAlloc_v2(address, bytes)
    }
    cuMemAllocFromPoolAsync(address: *mut u64, bytes: usize, pool: Handle, stream: Handle) {
        let _ = (pool, stream);
        cuMemAlloc_v2(address, bytes)
    }
    cuMemFreeAsync(address: u64, stream: Handle) {
        let _ = stream;
        cuMemFree_v2(address)
    }
    cuMemAllocManaged(address: *mut u64, bytes: usize, flags: c_uint) {
        let _ = (address, bytes, flags);
        NOT_SUPPORTED
    }
    cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint) {
        // The device does not reach it.
        match flags & 2 {
            0 => {
                let room: Box<[u64]> = vec![0; bytes.div_ceil(8).max(1)].into_boxed_slice();
                answer(address, Box::into_raw(room).cast())
            }
            _ => NOT_SUPPORTED,
        }
    }
    cuMemAllocHost_v2(address: *mut *mut c_void, bytes: usize) { cuMemHostAlloc(address, bytes, 0) }
    cuMemFreeHost(address: *mut c_void) {
        // Its size is not kept: what a test program gives back is little.
        let _ = address;
        SUCCESS
    }
    cuMemGetAddressRange_v2(base: *mut u64, bytes: *mut usize, address: u64) {
        let state = state();
        let Some((start, buffer, _)) = state.find(address) else { return INVALID_VALUE };
        if !bytes.is_null() {
            *bytes = buffer.bytes() as usize;
        }
        answer(base, start)
    }
    cuPointerGetAttribute(value: *mut c_void, which: c_int, address: u64) {
        if !is_device(address) {
            return INVALID_VALUE;
        }
        match which {
            // The kind of memory: the device's.
            2 => answer(value.cast::<c_uint>(), 2),
            3 => answer(value.cast::<u64>(), address),
            8 => answer(value.cast::<c_uint>(), 0),
            9 => answer(value.cast::<c_int>(), 0),
            _ => NOT_SUPPORTED,
        }
    }
    cuMemcpyHtoD_v2(to: u64, from: *const c_void, length: usize) { state().write(to, bytes_of(from, length)) }
    cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, length: usize, stream: Handle) {
        graphs::submit(stream, Work::Copy { to, from: from as u64, length })
    }
    cuMemcpyDtoH_v2(to: *mut c_void, from: u64, length: usize) { read_to(to, from, length) }
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, length: usize, stream: Handle) {
        graphs::submit(stream, Work::Copy { to: to as u64, from, length })
    }
    cuMemcpyDtoD_v2(to: u64, from: u64, length: usize) { copy(to, from, length) }
    cuMemcpyDtoDAsync_v2(to: u64, from: u64, length: usize, stream: Handle) {
        graphs::submit(stream, Work::Copy { to, from, length })
    }
    cuMemcpy(to: u64, from: u64, length: usize) { copy(to, from, length) }
    cuMemcpyAsync(to: u64, from: u64, length: usize, stream: Handle) {
        graphs::submit(stream, Work::Copy { to, from, length })
    }
    cuMemsetD8_v2(to: u64, value: u8, count: usize) { state().fill(to, &[value], count as u64) }
    cuMemsetD16_v2(to: u64, value: u16, count: usize) { state().fill(to, &value.to_le_bytes(), count as u64) }
    cuMemsetD32_v2(to: u64, value: c_uint, count: usize) { state().fill(to, &value.to_le_bytes(), count as u64) }
    cuMemsetD8Async(to: u64, value: u8, count: usize, stream: Handle) {
        graphs::submit(stream, Work::Fill { to, value: vec![value], count: count as u64 })
    }
    cuMemsetD32Async(to: u64, value: c_uint, count: usize, stream: Handle) {
        graphs::submit(stream, Work::Fill { to, value: value.to_le_bytes().to_vec(), count: count as u64 })
    }

    cuStreamCreate(stream: *mut Handle, flags: c_uint) {
        let _ = flags;
        answer(stream, state::handle())
    }
    cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, priority: c_int) {
        let _ = priority;
        cuStreamCreate(stream, flags)
    }
    cuStreamDestroy_v2(stream: Handle) {
        let _ = stream;
        SUCCESS
    }
    cuStreamSynchronize(stream: Handle) {
        let _ = stream;
        state().result()
    }
    cuStreamQuery(stream: Handle) {
        let _ = stream;
        state().result()
    }
    cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) {
        let _ = (stream, event, flags);
        SUCCESS
    }
    cuStreamIsCapturing(stream: Handle, status: *mut c_int) {
        answer(status, c_int::from(graphs::is_captured(stream)))
    }
    cuStreamBeginCapture_v2(stream: Handle, mode: c_int) {
        let _ = mode;
        graphs::begin(stream)
    }
    cuStreamEndCapture(stream: Handle, graph: *mut Handle) { answered(graph, graphs::end(stream)) }
    cuGraphInstantiateWithFlags(exec: *mut Handle, graph: Handle, flags: u64) {
        let _ = flags;
        answered(exec, graphs::instantiate(graph))
    }
    cuGraphLaunch(exec: Handle, stream: Handle) {
        let _ = stream;
        graphs::launch(exec)
    }
    cuGraphExecDestroy(exec: Handle) { graphs::destroy(exec) }
    cuGraphDestroy(graph: Handle) { graphs::destroy(graph) }
    cuThreadExchangeStreamCaptureMode(mode: *mut c_int) {
        let _ = mode;
        SUCCESS
    }
    cuEventCreate(event: *mut Handle, flags: c_uint) {
        let _ = flags;
        answer(event, Box::into_raw(Box::new(-1f64)).cast())
    }
    cuEventDestroy_v2(event: Handle) {
        // Others may still ask for it: events are small.
        match event.is_null() {
            true => INVALID_HANDLE,
            false => SUCCESS,
        }
    }
    cuEventRecord(event: Handle, stream: Handle) {
        let _ = stream;
        let now = state().now_ns();
        answer(event.cast::<f64>(), now)
    }
    cuEventQuery(event: Handle) {
        let _ = event;
        state().result()
    }
    cuEventSynchronize(event: Handle) {
        let _ = event;
        state().result()
    }
    cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) {
        if start.is_null() || end.is_null() {
            return INVALID_HANDLE;
        }
        let (start, end) = (*start.cast::<f64>(), *end.cast::<f64>());
        match start < 0.0 || end < 0.0 {
            true => INVALID_HANDLE,
            false => answer(milliseconds, ((end - start) * 1e-6) as f32),
        }
    }
    cuEventElapsedTime_v2(milliseconds: *mut f32, start: Handle, end: Handle) {
        cuEventElapsedTime(milliseconds, start, end)
    }

    cuLaunchKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        launched(stream, function, [gx, gy, gz], [bx, by, bz], shared, parameters, extra)
    }
    cuLaunchKernelEx(
        config: *const LaunchConfig, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        match config.as_ref() {
            Some(own) => launched(own.stream, function, own.grid, own.block, own.shared_bytes, parameters, extra),
            None => INVALID_VALUE,
        }
    }
    cuLaunchCooperativeKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Handle, parameters: *mut *mut c_void,
    ) {
        launched(stream, function, [gx, gy, gz], [bx, by, bz], shared, parameters, ptr::null_mut())
    }
}

fn error_name(error: CUresult) -> &'static CStr {
    match error {
        SUCCESS => c"CUDA_SUCCESS",
        INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        state::OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
        NOT_INITIALIZED => c"CUDA_ERROR_NOT_INITIALIZED",
        INVALID_DEVICE => c"CUDA_ERROR_INVALID_DEVICE",
        state::INVALID_IMAGE => c"CUDA_ERROR_INVALID_IMAGE",
        INVALID_CONTEXT => c"CUDA_ERROR_INVALID_CONTEXT",
        state::NO_BINARY => c"CUDA_ERROR_NO_BINARY_FOR_GPU",
        INVALID_HANDLE => c"CUDA_ERROR_INVALID_HANDLE",
        NOT_FOUND => c"CUDA_ERROR_NOT_FOUND",
        state::ILLEGAL_ADDRESS => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        state::LAUNCH_FAILED => c"CUDA_ERROR_LAUNCH_FAILED",
        NOT_SUPPORTED => c"CUDA_ERROR_NOT_SUPPORTED",
        _ => c"CUDA_ERROR_UNKNOWN",
    }
}
