//! Modules, libraries, functions and kernels.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::{Export, answer, answered, name_of};
use crate::abi::{CUresult, DevicePtr, FILE_NOT_FOUND, Handle, INVALID_VALUE, SUCCESS};
use crate::modules;
use crate::state::state;

exported! {
    cuModuleLoadData(module, image) { answered(module, modules::load(image)) }
    cuModuleLoadDataEx(module, image, count, options, values) { answered(module, modules::load(image)) }
    cuModuleLoadFatBinary(module, image) { answered(module, modules::load(image)) }
    cuModuleLoad(module, file) {
        let Some(name) = name_of(file) else { return INVALID_VALUE };
        match std::fs::read(name) {
            Ok(bytes) => answered(module, modules::load_bytes(&bytes)),
            Err(_) => FILE_NOT_FOUND,
        }
    }
    cuModuleUnload(module) { modules::unload(module).map_or_else(|error| error, |()| SUCCESS) }
    cuModuleGetLoadingMode(mode: *mut c_int) { answer(mode, 1) }
    cuModuleGetFunction(function, module, name) {
        let Some(name) = name_of(name) else { return INVALID_VALUE };
        answered(function, modules::module(module).and_then(|module| module.function(name)))
    }
    cuModuleGetFunctionCount(count: *mut c_uint, module: Handle) {
        answered(count, modules::module(module).map(|module| module.entries().len() as c_uint))
    }
    cuModuleGetGlobal_v2(address, bytes, module, name) {
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
    cuLibraryLoadData(library, code, options, values, count, library_options, library_values, library_count) {
        answered(library, modules::load(code))
    }
    cuLibraryLoadFromFile(library, file, options, values, count, library_options, library_values, library_count) {
        cuModuleLoad(library, file)
    }
    cuLibraryUnload(library) { cuModuleUnload(library) }
    cuLibraryGetKernel(kernel, library, name) { cuModuleGetFunction(kernel, library, name) }
    cuLibraryGetKernelCount(count: *mut c_uint, library: Handle) { cuModuleGetFunctionCount(count, library) }
    cuLibraryGetModule(module, library) { answered(module, modules::module(library).map(modules::handle_of)) }
    cuLibraryGetGlobal(address, bytes, library, name) { cuModuleGetGlobal_v2(address, bytes, library, name) }
    cuKernelGetFunction(function, kernel) { answered(function, modules::function(kernel).map(|_| kernel)) }
    cuKernelGetLibrary(library, kernel) {
        answered(library, modules::function(kernel).map(|own| modules::handle_of(own.module)))
    }
    cuKernelGetName(name, kernel) { answered(name, modules::function(kernel).map(|own| own.name.as_ptr())) }
    cuFuncGetName(name, function) { cuKernelGetName(name, function) }
    cuFuncGetModule(module, function) { cuKernelGetLibrary(module, function) }
    cuFuncLoad(function) { modules::function(function).map_or_else(|error| error, |_| SUCCESS) }
    cuFuncIsLoaded(loaded: *mut c_int, function: Handle) { answer(loaded, 1) }
    cuFuncGetParamInfo(function, index, offset, size) {
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
    cuKernelGetParamInfo(kernel, index, offset, size) { cuFuncGetParamInfo(kernel, index, offset, size) }
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
        cuFuncGetAttribute(value, which, kernel)
    }
    cuFuncSetAttribute(function, which, value) {
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
    cuKernelSetAttribute(which, value, kernel, device) { cuFuncSetAttribute(kernel, which, value) }
    cuFuncSetCacheConfig(function, config) { modules::function(function).map_or_else(|error| error, |_| SUCCESS) }
    cuKernelSetCacheConfig(kernel: Handle, config: c_int, device: c_int) { cuFuncSetCacheConfig(kernel, config) }
    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, size, shared) {
        let (Ok(size @ 1..), Ok(shared)) = (u32::try_from(size), u32::try_from(shared)) else {
            return INVALID_VALUE;
        };
        let own = modules::function(function);
        answered(blocks, own.and_then(|own| own.resident_groups(size, shared)).map(|groups| groups as c_int))
    }
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int, function: Handle, size: c_int, shared: usize, flags: c_uint,
    ) {
        cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, size, shared)
    }
}
