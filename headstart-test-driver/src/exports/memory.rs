//! Allocations, copies and fills.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Export, answer, answered, bytes_of};
use crate::abi::{CUresult, DevicePtr, Handle, INVALID_VALUE, NOT_SUPPORTED, SUCCESS};
use crate::graphs::{self, Work};
use crate::state::state;

/// The requested capacity of the pool. The pool keeps nothing, and returns the value that was set.
static RELEASE_THRESHOLD: AtomicU64 = AtomicU64::new(0);

unsafe fn read_to(to: *mut c_void, from: u64, length: usize) -> CUresult {
    let bytes = state().read(from, length as u64);
    match bytes {
        Ok(bytes) => {
            // SAFETY: the program has room for this many bytes.
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
    // SAFETY: memory that is not the device's is the host's.
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

exported! {
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        use headstart::device::Device;
        let bytes = state().device.description().memory_bytes as usize;
        let _ = answer(free, bytes);
        answer(total, bytes)
    }
    cuMemAlloc_v2(address, bytes) {
        let own = state().allocate(bytes as u64);
        answered(address, own)
    }
    cuMemAllocPitch_v2(address, pitch, width, height, element) {
        let row = width.next_multiple_of(512);
        if answer(pitch, row) != SUCCESS {
            return INVALID_VALUE;
        }
        let own = state().allocate((row * height) as u64);
        answered(address, own)
    }
    cuMemFree_v2(address) { state().free(address) }
    cuMemAllocAsync(address, bytes, stream) { cuMemAlloc_v2(address, bytes) }
    cuMemAllocFromPoolAsync(address, bytes, pool, stream) { cuMemAlloc_v2(address, bytes) }
    cuMemPoolGetAttribute(pool: Handle, which: c_int, value: *mut c_void) {
        match which {
            // Which memory may be used again: none waits.
            1..=3 => answer(value.cast::<c_int>(), 1),
            4 => answer(value.cast::<u64>(), RELEASE_THRESHOLD.load(Ordering::Relaxed)),
            5..=8 => answer(value.cast::<u64>(), 0),
            _ => INVALID_VALUE,
        }
    }
    cuMemPoolSetAttribute(pool: Handle, which: c_int, value: *const c_void) {
        match which {
            _ if value.is_null() => INVALID_VALUE,
            1..=3 | 6 | 8 => SUCCESS,
            4 => {
                RELEASE_THRESHOLD.store(value.cast::<u64>().read_unaligned(), Ordering::Relaxed);
                SUCCESS
            }
            _ => INVALID_VALUE,
        }
    }
    cuMemFreeAsync(address, stream) { cuMemFree_v2(address) }
    cuMemAllocManaged(address, bytes, flags) { NOT_SUPPORTED }
    cuMemHostAlloc(address, bytes, flags) {
        // The device does not reach it.
        match flags & 2 {
            0 => {
                let room: Box<[u64]> = vec![0; bytes.div_ceil(8).max(1)].into_boxed_slice();
                answer(address, Box::into_raw(room).cast())
            }
            _ => NOT_SUPPORTED,
        }
    }
    cuMemAllocHost_v2(address, bytes) { cuMemHostAlloc(address, bytes, 0) }
    cuMemFreeHost(address) {
        // Its size is not kept: test programs free little.
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
    cuMemcpyHtoDAsync_v2(to, from, length, stream) {
        graphs::submit(stream, Work::Copy { to, from: from as u64, length })
    }
    cuMemcpyDtoH_v2(to, from, length) { read_to(to, from, length) }
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
}
