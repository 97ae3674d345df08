//! Devices and contexts.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

use super::{Export, answer};
use crate::abi::{CUresult, Handle, INVALID_CONTEXT, INVALID_DEVICE, INVALID_VALUE, SUCCESS};
use crate::state::{self, state};

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
        // Unsupported attributes: managed memory, peers, virtual memory, and unknown ones.
        _ => 0,
    })
}

exported! {
    cuDeviceGetCount(count) { answer(count, 1) }
    cuDeviceGet(device: *mut c_int, ordinal: c_int) {
        match ordinal {
            0 => answer(device, 0),
            _ => INVALID_DEVICE,
        }
    }
    cuDeviceGetName(name, length, device) {
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
    cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) { answer(uuid, *b"headstart-tests\0") }
    cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) { cuDeviceGetUuid(uuid, device) }
    cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) {
        use headstart::device::Device;
        answer(bytes, state().device.description().memory_bytes as usize)
    }
    cuDeviceGetAttribute(value, which, device) {
        match (device, attribute(which)) {
            (0, Some(own)) => answer(value, own),
            _ => INVALID_VALUE,
        }
    }
    cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: c_int) {
        let _ = answer(major, 9);
        answer(minor, 0)
    }
    cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) { answer(can, 0) }
    cuDeviceGetDefaultMemPool(pool: *mut Handle, device: c_int) { answer(pool, state::primary()) }
    cuDeviceGetMemPool(pool: *mut Handle, device: c_int) { answer(pool, state::primary()) }

    cuCtxCreate_v2(context: *mut Handle, flags: c_uint, device: c_int) {
        let own = state::handle();
        state::push(own);
        answer(context, own)
    }
    cuCtxCreate_v4(context: *mut Handle, parameters: *const c_void, flags: c_uint, device: c_int) {
        cuCtxCreate_v2(context, flags, device)
    }
    cuCtxDestroy_v2(context) {
        if state::current() == context {
            state::pop();
        }
        SUCCESS
    }
    cuCtxGetCurrent(context) { answer(context, state::current()) }
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
    cuCtxGetDevice(device) {
        match state::current().is_null() {
            true => INVALID_CONTEXT,
            false => answer(device, 0),
        }
    }
    cuCtxGetFlags(flags: *mut c_uint) { answer(flags, 0) }
    cuCtxGetApiVersion(context: Handle, version: *mut c_uint) { answer(version, 13_000) }
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        if !least.is_null() {
            *least = 0;
        }
        if !greatest.is_null() {
            *greatest = 0;
        }
        SUCCESS
    }
    cuCtxGetLimit(value: *mut usize, limit: c_int) { answer(value, 1 << 20) }
    cuCtxSetLimit(limit: c_int, value: usize) { SUCCESS }
    cuCtxGetCacheConfig(config: *mut c_int) { answer(config, 0) }
    cuCtxSetCacheConfig(config: c_int) { SUCCESS }
    cuCtxSynchronize() { state().result() }
    cuDevicePrimaryCtxRetain(context, device) {
        match device {
            0 => answer(context, state::primary()),
            _ => INVALID_DEVICE,
        }
    }
    cuDevicePrimaryCtxRelease_v2(device) { SUCCESS }
    cuDevicePrimaryCtxReset_v2(device) { SUCCESS }
    cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint) { SUCCESS }
    cuDevicePrimaryCtxGetState(device, flags, active) {
        if !flags.is_null() {
            *flags = 0;
        }
        answer(active, 1)
    }
}
