//! What lowering has to know of a device: which compiler it imitates, and a few sizes.

use crate::device::model::occupancy::Footprint;

use super::program::Class;

/// Whose compiler is imitated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// ptxas for sm_80 and sm_90.
    Nvidia,
    /// IGC for Xe.
    Intel,
}

/// The device that a kernel is lowered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Whose compiler is imitated.
    pub family: Family,
    /// Work-items of a full sub-group.
    pub sub_group: u32,
    /// 32-bit registers that a work-item can have.
    pub max_registers: u32,
    /// Bytes of a cache line: a hint covers one.
    pub line: u32,
}

/// Bytes of an instruction: 16 on NVIDIA since Volta and, uncompacted, on Intel.
pub const INSTRUCTION_BYTES: u32 = 16;

impl Target {
    /// NVIDIA GPUs of compute capability 8.0 and 9.0.
    pub fn nvidia() -> Target {
        Target {
            family: Family::Nvidia,
            sub_group: 32,
            max_registers: 255,
            line: 128,
        }
    }

    /// Intel GPUs: a thread's register file is shared by the work-items of its sub-group.
    pub fn intel(sub_group: u32, register_file_bytes: u32) -> Target {
        let max_registers = register_file_bytes / 4 / sub_group.max(1);
        Target {
            family: Family::Intel,
            sub_group,
            max_registers,
            line: 64,
        }
    }

    /// What a work-group of `group` work-items occupies with a program's registers.
    pub fn footprint(&self, group: u32, registers: u32, shared: u32, barrier: bool) -> Footprint {
        Footprint {
            registers,
            shared,
            barrier,
            ..Footprint::new(group, self.sub_group)
        }
    }

    /// Cycles until a result can be used, as the scheduler assumes. Only their order of magnitude
    /// matters: long ones are started early. The timer has its own, from the device's model.
    pub fn assumed_latency(&self, class: Class) -> u32 {
        match class {
            Class::None => 0,
            Class::Int32 | Class::Int64 | Class::Fp32 | Class::Fp16 => 4,
            Class::IntMultiply => 5,
            Class::Fp64 => 8,
            Class::Special | Class::Convert => 18,
            Class::ReadId | Class::LoadConstant => 30,
            Class::Load {
                space: crate::ir::Space::Shared,
                ..
            } => 30,
            Class::Load { .. } => 500,
            Class::Wait => 20,
            Class::Branch | Class::Reconverge | Class::Barrier | Class::Exit => 8,
            Class::Store { .. } | Class::AsyncCopy { .. } | Class::Commit | Class::Prefetch => 4,
        }
    }
}
