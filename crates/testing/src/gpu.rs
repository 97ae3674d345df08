//! A GPU that need not be there.

use crate::device::cuda::gpu::GpuFacts;

/// An H200's properties, as its driver reports them.
pub fn h200() -> GpuFacts {
    GpuFacts {
        ordinal: 0,
        name: "NVIDIA H200".into(),
        capability: (9, 0),
        driver: 13000,
        cores: 132,
        clock_khz: 1_980_000,
        memory_bytes: 1 << 37,
        l2_bytes: 60 << 20,
        shared_bytes_per_group: 227 << 10,
        shared_bytes_per_core: 228 << 10,
        registers_per_core: 65536,
        work_items_per_core: 2048,
        sub_group: 32,
    }
}
