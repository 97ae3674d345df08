//! Buffers at addresses of somebody's choosing: a captured launch runs where its memory was, so that the pointers in it lead where
//! they did.
//!
//! Addresses are reserved and mapped in whole pages of the GPU. Allocations that shared a page do so again. Another process
//! has other things in the way: where an address is taken, that is said.

use std::sync::Arc;

use cudarc::driver::sys;

use super::failure::{Failure, FailureKind};
use super::gpu::Gpu;
use super::memory::Buffer;

/// Pages that are mapped where they were asked for.
pub(super) struct Region {
    start: u64,
    bytes: usize,
    handle: sys::CUmemGenericAllocationHandle,
}

/// The runs of whole pages that hold all of some ranges: start and size of each, in the order of their addresses.
fn runs(ranges: &[(u64, usize)], page: u64) -> Option<Vec<(u64, u64)>> {
    let whole = |&(start, bytes): &(u64, usize)| {
        let end = start.checked_add(bytes.max(1) as u64)?;
        Some((start - start % page, end.checked_next_multiple_of(page)?))
    };
    let mut pages: Vec<(u64, u64)> = ranges.iter().map(whole).collect::<Option<_>>()?;
    pages.sort_unstable();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (start, end) in pages {
        match runs.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => runs.push((start, end)),
        }
    }
    Some(
        runs.into_iter()
            .map(|(start, end)| (start, end - start))
            .collect(),
    )
}

impl Gpu {
    /// Takes memory at these addresses, of so many bytes each.
    ///
    /// Fails where an address is taken, or the GPU cannot map memory.
    pub fn allocate_at(&self, ranges: &[(u64, usize)]) -> Result<Vec<Buffer>, Failure> {
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        if !self.can_guard() {
            return Err(Failure::new(
                FailureKind::OldDevice,
                "this GPU or its driver cannot map memory to addresses",
            ));
        }
        self.enter()?;
        let failed = |error| Failure::of(error, "mapping global memory");
        let (_, properties) = self.properties();
        let mut page = 0;
        let wanted = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: the call reads the properties and writes one number.
        unsafe { sys::cuMemGetAllocationGranularity(&mut page, &properties, wanted) }
            .result()
            .map_err(failed)?;
        let runs = runs(ranges, page.max(1) as u64)
            .ok_or_else(|| Failure::new(FailureKind::Request, "memory beyond all addresses"))?;
        let regions: Vec<Arc<Region>> = runs
            .into_iter()
            .map(|(start, bytes)| self.region(start, bytes as usize))
            .collect::<Result<_, _>>()?;
        let buffer = |&(address, bytes): &(u64, usize)| {
            let region = regions.iter().find(|region| {
                region.start <= address && address - region.start + bytes as u64 <= region.bytes as u64
            });
            let region =
                region.ok_or_else(|| Failure::new(FailureKind::Request, "memory that is not mapped"))?;
            Ok(Buffer::in_region(self, region, address, bytes))
        };
        ranges.iter().map(buffer).collect()
    }

    fn region(&self, start: u64, bytes: usize) -> Result<Arc<Region>, Failure> {
        let failed = |error| Failure::of(error, "mapping global memory");
        let (location, properties) = self.properties();
        let (mut base, mut handle) = (0, 0);
        // SAFETY: as for guarded buffers: each call writes one value, or takes what an earlier one gave; what was done is
        // undone where a later one fails.
        unsafe {
            let reserved = sys::cuMemAddressReserve(&mut base, bytes, 0, start, 0).result();
            if reserved.is_ok() && base != start {
                let _ = sys::cuMemAddressFree(base, bytes);
            }
            if reserved.is_err() || base != start {
                return Err(Failure::new(
                    FailureKind::Request,
                    format!("the addresses from {start:#x} on are taken in this process"),
                )
                .accepted("another try, or a simulated device, such as `--device sim:h200`"));
            }
            if let Err(error) = sys::cuMemCreate(&mut handle, bytes, &properties, 0).result() {
                let _ = sys::cuMemAddressFree(base, bytes);
                let failure = failed(error);
                return Err(match failure.kind {
                    FailureKind::OutOfMemory => self.full(bytes),
                    _ => failure,
                });
            }
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
                let _ = sys::cuMemAddressFree(base, bytes);
                return Err(failed(error));
            }
        }
        Ok(Arc::new(Region { start, bytes, handle }))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // The buffer's `drop` has made the context current.
        // SAFETY: mapped once, so, and given back once.
        unsafe {
            let _ = sys::cuMemUnmap(self.start, self.bytes);
            let _ = sys::cuMemRelease(self.handle);
            let _ = sys::cuMemAddressFree(self.start, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_share_pages_are_one_run() {
        let ranges = [(0x1200, 0x100), (0x5000, 0x2000), (0x1300, 0xe00), (0x7fff, 2)];
        assert_eq!(
            runs(&ranges, 0x1000),
            Some(vec![(0x1000, 0x2000), (0x5000, 0x4000)])
        );
        assert_eq!(runs(&[(u64::MAX, 2)], 0x1000), None);
        assert_eq!(runs(&[(0x2000, 0)], 0x1000), Some(vec![(0x2000, 0x1000)]));
    }
}
