//! Tensor cores: how long a product of matrices takes, by its size.
//!
//! The size of a product is the bytes of its left matrix for every 8 columns of the right one: `mma.m16n8k16` of halves has
//! 512, `wmma.m16n16k16` of halves 1,024. A core starts products at a rate in these bytes; a single one takes a fixed time,
//! plus its size at a slower rate. Measured with dependent and independent products of one to four sub-groups on an H100,
//! 2026-11-25: halves 27.3 cycles, and 1.55 cycles per product of a core (`m16n8k16`), 18.8 and 1.08 (`m16n8k8`); bytes 14.0
//! and 1.0 (`m8n8k16`); 8-bit floats 22.5 and 1.45 (`m16n8k32`); doubles 26.0 and 4.0 (`m8n8k4`), 50.7 and 8.1 (`m16n8k8`).
//!
//! Products of warp groups (`wgmma`) that add to one sum follow each other at the rate, on an H200, 2026-11-27: `m64nNk16` of
//! halves every N / 2 cycles of a warp group, of 8 columns every 17 or 18; 8-bit floats, `tf32`, bytes and bits alike, for as
//! many bytes. Waiting for one takes 30 to 67 cycles more than that, which is not modelled.
//!
//! Emulated products, 4-bit integers and single bits, take some 15 times as long, which is not modelled.

use super::numbers::numbers;
use super::quantity::{BytesPerCycle, Cycles, Quantity};

numbers! {
    /// Tensor cores.
    pub struct Matrix in "matrix" {
        /// The fixed latency of a product, beside the part that depends on its size.
        start: Quantity<Cycles> = {
            nvidia: 10 because "fitted on an H100, 2026-11-25: mma of halves, bytes and 8-bit floats: 14.0, 18.8 and 27.3 cycles for 128, 256 and 512 bytes",
            intel: 10 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Bytes of the left matrix that one product gets through in a cycle.
        through: Quantity<BytesPerCycle> = {
            nvidia: 30 because "fitted with start; doubles alike: 26.0 and 50.7 cycles for 256 and 1,024 bytes",
            intel: 30 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Bytes of left matrices that a core starts in a cycle.
        rate: Quantity<BytesPerCycle> = {
            nvidia: 330 because "measured on an H100, 2026-11-25: m16n8k16 of halves 1.55 cycles, m16n8k32 of 8-bit floats 1.45",
            intel: 330 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Cycles between products that a core starts, however small.
        least: Quantity<Cycles> = {
            nvidia: 1 because "measured on an H100, 2026-11-25: m8n8k16 of bytes 1.0 cycles, m16n8k8 of halves 1.08",
            intel: 1 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// The fixed latency of a product of doubles, beside the part that depends on its size.
        double_start: Quantity<Cycles> = {
            nvidia: 18 because "fitted on an H100, 2026-11-25: mma of doubles: 26.0 and 50.7 cycles for 256 and 1,024 bytes",
            intel: 18 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Bytes of left matrices of doubles that a core starts in a cycle.
        double_rate: Quantity<BytesPerCycle> = {
            nvidia: 126 because "measured on an H100, 2026-11-25: m16n8k8 of doubles 8.1 cycles",
            intel: 126 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Bytes of left matrices that a core starts in a cycle in products of warp groups.
        group_rate: Quantity<BytesPerCycle> = {
            nvidia: 512 because "measured on an H200, 2026-11-27: m64n128k16 of halves 64.0 cycles of a warp group, m64n256k16 128.0",
            intel: 512 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Cycles between products that sub-groups of a warp group start, however small.
        group_least: Quantity<Cycles> = {
            nvidia: 4 because "measured on an H200, 2026-11-27: m64n8k16 of halves 17 to 18 cycles of a warp group's four sub-groups",
            intel: 4 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
        /// Cycles between products of doubles, however small.
        double_least: Quantity<Cycles> = {
            nvidia: 4 because "measured on an H100, 2026-11-25: m8n8k4 of doubles 4.0 cycles",
            intel: 4 because "not lowered to Intel's instructions: as on NVIDIA's",
        };
    }
}
