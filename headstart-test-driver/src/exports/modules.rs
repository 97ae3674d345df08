//! Modules, libraries, functions and kernels.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::{Export, answer, answered, name_of};
use crate::modules;
use crate::state::{CUresult, Handle, INVALID_VALUE, SUCCESS, state};

exported! {
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
        let (Ok(size @ 1..), Ok(shared)) = (u32::try_from(size), u32::try_from(shared)) else {
            return INVALID_VALUE;
        };
        let own = modules::function(function);
        answered(blocks, own.and_then(|own| own.resident_groups(size, shared)).map(|groups| groups as c_int))
    }
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int, function: Handle, size: c_int, shared: usize, flags: c_uint,
    ) {
        let _ = flags;
        cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, size, shared)
    }
}
