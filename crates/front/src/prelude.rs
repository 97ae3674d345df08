//! Everything that a kernel's source needs: `use headstart::prelude::*;`.

pub use crate::ir::Accuracy;
pub use crate::lang::approximate::{
    approximate_cos, approximate_div, approximate_exp2, approximate_log2, approximate_recip,
    approximate_rsqrt, approximate_sin, approximate_sqrt, approximate_tanh,
};
pub use crate::lang::atomic::{Atomic, AtomicInteger, AtomicScalar, Ordering, Scope, Within, fence};
pub use crate::lang::block::{sub_group_load, sub_group_load_block, sub_group_store, sub_group_store_block};
pub use crate::lang::data::Data;
pub use crate::lang::dot::{dot4_i8, dot4_i8_u8, dot4_u8};
pub use crate::lang::geometry::Geometry;
pub use crate::lang::hint::{
    L1, L1_NT, L2, L2_NT, L3, L3_NT, L4, L4_NT, SYCL_EXT_ONEAPI_PREFETCH, joint_prefetch, prefetch, shared,
    sub_group, work_group,
};
pub use crate::lang::lsc::{
    LSC_LDCC_DEFAULT, LSC_LDCC_L1C_L3C, LSC_LDCC_L1C_L3UC, LSC_LDCC_L1IAR_L3C, LSC_LDCC_L1S_L3C,
    LSC_LDCC_L1S_L3UC, LSC_LDCC_L1UC_L3C, LSC_LDCC_L1UC_L3UC, lsc_load, lsc_prefetch_uchar,
    lsc_prefetch_uint, lsc_prefetch_uint2, lsc_prefetch_uint3, lsc_prefetch_uint4, lsc_prefetch_uint8,
    lsc_prefetch_ulong, lsc_prefetch_ulong2, lsc_prefetch_ulong3, lsc_prefetch_ulong4, lsc_prefetch_ulong8,
    lsc_prefetch_ushort,
};
pub use crate::lang::pipeline::{pipeline_commit, pipeline_memcpy_async, pipeline_wait_prior};
pub use crate::lang::pointer::{Ptr, generic_ptr, global_ptr, private_ptr, shared_ptr};
pub use crate::lang::scalar::{Float, Half, Integer, Number, Scalar, Signed};
pub use crate::lang::select::select;
pub use crate::lang::sub_group::{
    group_exclusive_scan_add, group_inclusive_scan_add, group_reduce_add, group_reduce_max, group_reduce_min,
    sub_group_all, sub_group_any, sub_group_ballot, sub_group_barrier, sub_group_broadcast,
    sub_group_exclusive_scan_add, sub_group_inclusive_scan_add, sub_group_inclusive_scan_max,
    sub_group_inclusive_scan_min, sub_group_reduce_add, sub_group_reduce_and, sub_group_reduce_max,
    sub_group_reduce_min, sub_group_reduce_or, sub_group_reduce_xor, sub_group_shuffle,
    sub_group_shuffle_down, sub_group_shuffle_up, sub_group_shuffle_xor,
};
pub use crate::lang::view::{ReadOnly, ReadWrite, View1, View2, View3, WriteOnly};
pub use crate::lang::work_item::{
    barrier, global_id, global_id_y, global_id_z, global_size, group_count, group_count_y, group_count_z,
    group_id, group_id_y, group_id_z, group_size, group_size_y, group_size_z, local_id, local_id_y,
    local_id_z, max_sub_group_size, named_barrier, sub_group_count, sub_group_id, sub_group_local_id,
    sub_group_size, work_items,
};
pub use half::{bf16, f16};
pub use headstart_macros::{Data, device_fn, kernel};
