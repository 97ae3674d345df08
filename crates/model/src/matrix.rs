//! Tensor cores: how long a product of matrices takes, by its size.
//!
//! The size of a product is the bytes of its left matrix for every 8 columns of the right one: `mma.m16n8k16` of halves has
//! 512, `wmma.m16n16k16` of halves 1,024. A core starts products at a rate in these bytes; a single one takes a fixed time,
//! plus its size at a slower rate. `micro/products` on an H200, 2026-11-27, driver 580.159.04, in cycles of its 1,980 MHz:
//!
//! ```text
//!                       one sub-group,     16 sub-groups,
//!                       one sum            two sums each
//! m8n8k16  of bytes               15.4               17.6
//! m16n8k8  of halves              19.2               19.0
//! m16n8k16 of halves              27.3               28.8
//! m16n8k32 of bytes               27.3               28.5
//! m8n8k4   of doubles             26.0               64.0
//! m16n8k8  of doubles             52.3              130
//!
//! warp groups             one after the        each waited
//! (m64, k16, halves)              other                for
//! n8                               19.8               54.1
//! n64                              35.2               84.9
//! n128                             70.4              127
//! n256                            141                214
//! ```
//!
//! Counted by `clock64` the products of warp groups follow each other every 18, 32, 64 and 128 cycles, and are waited for after
//! 48, 76, 115 and 195: while tensor cores work, except on doubles, the clock is lower by a tenth. (NVIDIA's paper on the H100
//! names 1.83 instead of 1.98 GHz, table 3.) The numbers here are for the time that passes; other instructions of such a kernel
//! are not slowed down. 8-bit floats, `tf32`, bytes and bits take as long as halves, for as many bytes.
//!
//! Emulated products, 4-bit integers and single bits, take some 15 times as long, which is not modelled.

use super::numbers::numbers;
use super::quantity::{BytesPerCycle, Cycles, Quantity};

numbers! {
    /// Tensor cores.
    pub struct Matrix in "matrix" {
        /// The fixed latency of a product, beside the part that depends on its size.
        start: Quantity<Cycles> = {
            nvidia: 11 because "`headstart calibrate` on an H200, 2026-11-27: m8n8k16 of bytes, one after the other, 15.4 cycles",
            intel: 11 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Bytes of the left matrix that one product gets through in a cycle.
        through: Quantity<BytesPerCycle> = {
            nvidia: 30 because "`headstart calibrate` on an H200, 2026-11-27: m16n8k16 of halves 27.3 cycles",
            intel: 30 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Bytes of left matrices that a core starts in a cycle.
        rate: Quantity<BytesPerCycle> = {
            nvidia: 286 because "`headstart calibrate` on an H200, 2026-11-27: m16n8k16 of halves by 16 sub-groups, 28.8 cycles a sub-group",
            intel: 286 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Cycles between products that a core starts, however small.
        least: Quantity<Cycles> = {
            nvidia: 1 because "`headstart calibrate` on an H200, 2026-11-27: m8n8k16 of bytes by 16 sub-groups, 17.6 cycles a sub-group",
            intel: 1 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// The fixed latency of a product of doubles, beside the part that depends on its size.
        double_start: Quantity<Cycles> = {
            nvidia: 17 because "`headstart calibrate` on an H200, 2026-11-27: m8n8k4 of doubles 26.0 cycles",
            intel: 17 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Bytes of left matrices of doubles that a core starts in a cycle.
        double_rate: Quantity<BytesPerCycle> = {
            nvidia: 126 because "`headstart calibrate` on an H200, 2026-11-27: m16n8k8 of doubles by 16 sub-groups, 130 cycles a sub-group",
            intel: 126 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Bytes of left matrices that a core starts in a cycle in products of warp groups.
        group_rate: Quantity<BytesPerCycle> = {
            nvidia: 466 because "`headstart calibrate` on an H200, 2026-11-27: m64n256k16 of halves 141 cycles",
            intel: 466 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Cycles between products that sub-groups of a warp group start, however small.
        group_least: Quantity<Cycles> = {
            nvidia: 5 because "`headstart calibrate` on an H200, 2026-11-27: m64n8k16 of halves 19.8 cycles of a warp group's four sub-groups",
            intel: 5 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// The fixed latency of a product of warp groups, up to the end of a wait for it, beside the part that depends on its size.
        group_start: Quantity<Cycles> = {
            nvidia: 39 because "`headstart calibrate` on an H200, 2026-11-27: m64n8k16 of halves, each waited for, 54.1 cycles",
            intel: 39 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Bytes of a sub-group's left matrices that one product of a warp group gets through in a cycle.
        group_through: Quantity<BytesPerCycle> = {
            nvidia: 104 because "`headstart calibrate` on an H200, 2026-11-27: m64n256k16 of halves, each waited for, 214 cycles",
            intel: 104 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Cycles between products of doubles, however small.
        double_least: Quantity<Cycles> = {
            nvidia: 4 because "`headstart calibrate` on an H200, 2026-11-27: m8n8k4 of doubles by 16 sub-groups, 64.0 cycles a sub-group",
            intel: 4 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
    }
}
