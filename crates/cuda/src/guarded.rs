//! Buffers that end at an unmapped page, so that an access beyond the end faults instead of reading other data.
//!
//! The driver's virtual-memory functions (CUDA Driver API, "Virtual Memory Management") reserve addresses, take memory, and
//! map it to some of them. What stays reserved and unmapped behind a buffer is the guard. A device or a driver without
//! these functions gets a plain buffer.

use cudarc::driver::sys;

use super::failure::{Failure, FailureKind};
use super::gpu::Gpu;
use super::memory::Buffer;

/// Alignment of buffers in timed launches: as the driver aligns plain ones, so that they begin with a cache line.
const PLAIN_ALIGNMENT: usize = 256;

/// The required functions of the library. Each is looked up when it is first called, which panics if it is not there.
const FUNCTIONS: &[&str] = &[
    "cuMemAddressFree",
    "cuMemAddressReserve",
    "cuMemCreate",
    "cuMemGetAllocationGranularity",
    "cuMemMap",
    "cuMemRelease",
    "cuMemSetAccess",
    "cuMemUnmap",
];

/// Where in its pages a buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Aligned as plain buffers are, as near to the end of its pages as that allows: for timing.
    Plain,
    /// At the end of its pages, as far as its alignment allows: for checks.
    Tight,
}

/// Memory that is mapped to some addresses.
pub(super) struct Mapping {
    /// The first address.
    base: sys::CUdeviceptr,
    /// Bytes that are mapped from there on.
    mapped: usize,
    /// Bytes of addresses that are reserved from there on: more than are mapped.
    reserved: usize,
    handle: sys::CUmemGenericAllocationHandle,
}

impl Mapping {
    /// Where a buffer of this size lies.
    pub(crate) fn address(&self, bytes: usize, align: usize, placement: Placement) -> sys::CUdeviceptr {
        let align = match placement {
            Placement::Plain => align.max(PLAIN_ALIGNMENT),
            Placement::Tight => align.max(1),
        };
        self.base + start(self.mapped, bytes, align) as u64
    }
}

/// Where a buffer starts that ends as near to the end of its pages as its alignment allows.
fn start(mapped: usize, bytes: usize, align: usize) -> usize {
    let start = mapped.saturating_sub(bytes);
    start - start % align
}

/// Whether this library has the functions.
fn has_functions() -> bool {
    FUNCTIONS.iter().all(|name| {
        // SAFETY: the symbol is looked up, and not called.
        unsafe { sys::culib().get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_ok()
    })
}

impl Gpu {
    /// Memory of this GPU that is mapped to addresses.
    pub(super) fn properties(&self) -> (sys::CUmemLocation, sys::CUmemAllocationProp) {
        let location = sys::CUmemLocation {
            type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: self.facts().ordinal as i32,
        };
        let properties = sys::CUmemAllocationProp {
            type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location,
            win32HandleMetaData: std::ptr::null_mut(),
            allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
                compressionType: 0,
                gpuDirectRDMACapable: 0,
                usage: 0,
                reserved: [0; 4],
            },
        };
        (location, properties)
    }

    /// Takes memory and maps it to addresses, readable and writable. If a later step fails, the earlier ones are undone.
    ///
    /// # Safety
    /// This many bytes of addresses from `base` on are reserved, and nothing is mapped there; both are multiples of a page. The
    /// memory is only ever seen as bytes.
    pub(super) unsafe fn map(
        &self,
        base: sys::CUdeviceptr,
        bytes: usize,
    ) -> Result<sys::CUmemGenericAllocationHandle, Failure> {
        let failed = |error| Failure::of(error, "mapping global memory");
        let (location, properties) = self.properties();
        let mut handle = 0;
        // SAFETY: each call writes one value, or takes an earlier one's result; the rest is the caller's.
        unsafe {
            sys::cuMemCreate(&mut handle, bytes, &properties, 0)
                .result()
                .map_err(failed)?;
            let access = sys::CUmemAccessDesc {
                location,
                flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            };
            let is_mapped = sys::cuMemMap(base, bytes, 0, handle, 0).result();
            let is_open = is_mapped.and_then(|()| sys::cuMemSetAccess(base, bytes, &access, 1).result());
            if let Err(error) = is_open {
                if is_mapped.is_ok() {
                    let _ = sys::cuMemUnmap(base, bytes);
                }
                let _ = sys::cuMemRelease(handle);
                return Err(failed(error));
            }
        }
        Ok(handle)
    }

    /// Whether buffers can end at a page that is not mapped.
    pub(crate) fn can_guard(&self) -> bool {
        self.0.maps_memory && has_functions()
    }

    /// Takes global memory behind which nothing is mapped, aligned to `align` bytes, a power of two; plain memory where the
    /// GPU [cannot](Gpu::can_guard).
    ///
    /// Fails with [`FailureKind::OutOfMemory`] and the amount that is free.
    pub(crate) fn allocate_guarded(&self, bytes: usize, align: usize) -> Result<Buffer, Failure> {
        if !self.can_guard() {
            return self.allocate(bytes);
        }
        self.enter()?;
        let failed = |error| Failure::of(error, "mapping global memory");
        let (_, properties) = self.properties();
        let mut page = 0;
        let wanted = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
        // SAFETY: the call reads the properties and writes one number.
        unsafe { sys::cuMemGetAllocationGranularity(&mut page, &properties, wanted) }
            .result()
            .map_err(failed)?;
        let page = page.max(1);
        let mapped = bytes.max(1).checked_next_multiple_of(page);
        let sizes = mapped.and_then(|mapped| Some((mapped, mapped.checked_add(page)?)));
        let (mapped, reserved) = sizes.ok_or_else(|| self.full(bytes))?;

        let mut base = 0;
        // SAFETY: the call writes one value.
        unsafe {
            sys::cuMemAddressReserve(&mut base, reserved, 0, 0, 0)
                .result()
                .map_err(failed)?;
        }
        // SAFETY: the addresses were just reserved, and nothing is mapped there.
        let handle = unsafe { self.map(base, mapped) }.map_err(|failure| {
            // SAFETY: nothing is mapped to them.
            let _ = unsafe { sys::cuMemAddressFree(base, reserved) };
            match failure.kind {
                FailureKind::OutOfMemory => self.full(bytes),
                _ => failure,
            }
        })?;
        let mapping = Mapping {
            base,
            mapped,
            reserved,
            handle,
        };
        Ok(Buffer::of_mapping(self, mapping, bytes, align))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // The buffer's `drop` has made the context current. Unmapping does not wait for users of the memory, so the launching code
        // waits for the end first.
        // SAFETY: mapped once, so, and given back once.
        unsafe {
            let _ = sys::cuMemUnmap(self.base, self.mapped);
            let _ = sys::cuMemRelease(self.handle);
            let _ = sys::cuMemAddressFree(self.base, self.reserved);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_end_where_their_pages_do() {
        assert_eq!(start(4096, 4096, 256), 0);
        assert_eq!(start(4096, 1000, 16), 3088, "within 15 bytes of the end");
        assert_eq!(start(4096, 1000, 256), 3072, "within 255 bytes of it");
        assert_eq!(start(4096, 1024, 16), start(4096, 1024, 256));
        assert_eq!(start(4096, 0, 16), 4096);
    }
}
