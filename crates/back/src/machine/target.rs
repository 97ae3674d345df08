//! The device properties that lowering needs: the imitated compiler, and a few sizes.

use crate::model::hint::Form;
use crate::model::occupancy::Footprint;
use crate::model::{DeviceModel, PrefetchInstruction, Registers, Vendor};

use super::isa::{Rules, intel};
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
    /// Its habits.
    pub rules: Rules,
    /// Work-items of a full sub-group.
    pub sub_group: u32,
    /// 32-bit registers that a work-item can have.
    pub max_registers: u32,
    /// 32-bit registers of a work-item that the compiler uses freely to save time: more would leave fewer resident work-groups
    /// than the launch can use.
    pub comfortable_registers: u32,
    /// Registers of the estimate that the compiler can save by a better order.
    pub uncounted_registers: u32,
    /// Registers that leave room for as many work-groups as the launch can use: the compiler keeps to them if it can.
    pub kept_registers: u32,
    /// It can where a kernel would need this many at most.
    pub saved_at_most: u32,
    /// Bytes of a cache line: a hint covers one.
    pub line: u32,
    /// Whether prefetches do anything; if not, the compiler leaves them out.
    pub has_prefetches: bool,
    /// Whether a hint for L1 is an asynchronous copy to a scratch word.
    pub copies_to_scratch: bool,
    /// Whether functions by tables are instructions; if not, they are written out.
    pub has_tables: bool,
    /// Whether asynchronous copies are instructions; if not, each is a load and a store.
    pub has_copies: bool,
    /// What the vendor's compiler made of the kernel, where that is known.
    pub assembled: Option<Assembled>,
}

/// What the vendor's compiler made of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Assembled {
    /// 32-bit registers of a work-item.
    pub registers: u32,
    /// Bytes of a work-item that did not fit.
    pub spilled_bytes: u32,
}

/// Bytes of an instruction: 16 on NVIDIA since Volta and, uncompacted, on Intel.
pub(crate) const INSTRUCTION_BYTES: u32 = 16;

/// ptxas does not save registers below this many.
const LEAST_COMFORTABLE: u32 = 32;

/// ptxas saves up to this many registers of the estimate by a better order: `option-pricing` with rings in registers has an
/// estimate of 288, and ptxas uses 255.
const UNCOUNTED: u32 = 32;
/// In a module that serves any launch ptxas saves one eighth of them: unrolled column sums of `corpus/` have an estimate of 36,
/// and ptxas uses 32.
const ONE_UNCOUNTED_IN: u32 = 8;

/// 32-bit registers that ptxas takes besides those for the kernel's values: the stack pointer, and losses to the alignment of
/// pairs and the order of allocation. Fitted to `ptxas -v` of the plans of the documents: half of them are off by at most 17 %,
/// most by too few still.
///
/// It does without where that lets a core hold all the work-items that it can: of 179 plans that would need 33 to 38 registers here,
/// 126 have 32 at most.
pub(super) const OVERHEAD: u32 = 6;

/// With this many registers and more its limit is how many work-groups a core is to hold (`.minnctapersm`), and it saves no more
/// than that takes.
pub const LEAST_PROMISED: u32 = 64;

/// The largest ratio of counted registers to available ones that a compiler can avoid by reordering. (Of 342 plans that need
/// more here than there are, ptxas 13.0 finds room for 303 without spills, up to this ratio: it starts fewer things at once.
/// The others are compiled again, for fewer work-groups.)
const MOST_SAVED: u32 = 2;

/// Registers that the estimate does not see, and that the compiler needs besides.
const NOT_SEEN: u32 = 8;

impl Target {
    /// NVIDIA GPUs of compute capability 9.0.
    pub fn nvidia() -> Target {
        Target::new(Family::Nvidia, 32, 255, 128)
    }

    /// Intel GPUs: a thread's register file is shared by the work-items of its sub-group.
    pub fn intel(sub_group: u32, register_file_bytes: u32) -> Target {
        Target::new(
            Family::Intel,
            sub_group,
            register_file_bytes / 4 / sub_group.max(1),
            64,
        )
    }

    /// A device with this model, for sub-groups of this size.
    pub fn of(model: &DeviceModel, sub_group: u32) -> Target {
        let family = match model.vendor {
            Vendor::Nvidia => Family::Nvidia,
            Vendor::Intel => Family::Intel,
        };
        let line = u32::try_from(*model.l2.line).unwrap_or(u32::MAX);
        let registers = model.registers_per_work_item(&Footprint::new(sub_group, sub_group));
        Target {
            has_prefetches: model
                .prefetch
                .levels()
                .any(|(_, form)| form.by != PrefetchInstruction::Nothing),
            copies_to_scratch: model.prefetch.l1.by == PrefetchInstruction::ScratchCopy,
            has_tables: model.core.table_functions.value,
            has_copies: model.shared.asynchronous_copies.value,
            ..Target::new(family, sub_group, registers, line)
        }
    }

    /// The form of its prefetches. The timer has no bulk ones: their lines, divided over the sub-group, move the same bytes.
    pub(crate) fn prefetches(&self) -> Form {
        let form = match self.family {
            Family::Nvidia => Form::nvidia(false),
            Family::Intel => Form::intel(self.sub_group),
        };
        Form {
            line: self.line,
            piece: form.piece.min(self.line),
            has_any: self.has_prefetches,
            ..form
        }
    }

    fn new(family: Family, sub_group: u32, max_registers: u32, line: u32) -> Target {
        let comfortable_registers = match family {
            Family::Nvidia => max_registers.saturating_sub(NOT_SEEN),
            Family::Intel => max_registers * intel::COMFORTABLE.0 / intel::COMFORTABLE.1,
        };
        Target {
            family,
            rules: family.rules(),
            sub_group,
            max_registers,
            comfortable_registers,
            uncounted_registers: UNCOUNTED,
            kept_registers: max_registers,
            saved_at_most: 0,
            line,
            has_prefetches: true,
            copies_to_scratch: false,
            has_tables: family == Family::Nvidia,
            has_copies: family == Family::Nvidia,
            assembled: None,
        }
    }

    /// The same for a launch of which a core can use `groups` work-groups of `group` work-items at
    /// once: registers that would keep one of them out are not taken to save time. Intel's threads
    /// have their registers in any case.
    #[must_use]
    pub(crate) fn for_groups(self, model: &DeviceModel, groups: u32, group: u32) -> Target {
        if let Registers::Pooled(registers) = &model.registers {
            let whole = group.next_multiple_of(self.sub_group.max(1));
            let items = groups.max(1).saturating_mul(whole).max(1);
            return self.for_registers(*registers.per_core / items / 8 * 8);
        }
        self
    }

    /// The same for a compiler that may use this many registers of a work-item. Its limit is a number of work-groups that a core is
    /// to hold, or the number of registers ([`Target::held_to`]). (ptxas 13.0 makes the same code of either for all of 102 plans of `corpus/`.)
    #[must_use]
    pub(crate) fn for_registers(mut self, registers: u32) -> Target {
        // A model may have fewer than the least.
        let kept = registers.max(LEAST_COMFORTABLE);
        self.comfortable_registers = kept.min(self.comfortable_registers);
        self.kept_registers = kept.min(self.max_registers);
        self.saved_at_most = match registers >= LEAST_PROMISED {
            true => self.kept_registers * MOST_SAVED,
            false => self.kept_registers + OVERHEAD,
        };
        self
    }

    /// The same for a compiler with this limit (`.maxnreg`): what does not fit is spilled, however much that costs.
    #[must_use]
    pub(crate) fn held_to(self, registers: u32) -> Target {
        let target = self.for_registers(registers);
        Target {
            max_registers: registers.min(self.max_registers),
            ..target
        }
    }

    /// The same for a compiler whose code is known: its numbers stand in the place of the estimate.
    #[must_use]
    pub(crate) fn as_assembled(self, assembled: Assembled) -> Target {
        match assembled.spilled_bytes {
            0 => self.for_registers(assembled.registers),
            _ => self.held_to(assembled.registers),
        }
    }

    /// The same for a module that does not say how many work-groups a core is to hold. The compiler leaves room for as many
    /// work-groups of `group` work-items as a core can hold. Intel's threads have their registers in any case.
    #[must_use]
    pub(crate) fn for_any_launch(self, model: &DeviceModel, group: u32) -> Target {
        if !matches!(model.registers, Registers::Pooled(_)) {
            return self;
        }
        let most = *model.core.sub_groups * self.sub_group / group.max(1);
        let target = self.for_groups(model, most.max(1), group);
        Target {
            uncounted_registers: target.comfortable_registers / ONE_UNCOUNTED_IN,
            ..target
        }
    }

    /// The same where each sub-group has twice the registers (Intel's large register file).
    #[must_use]
    pub fn with_large_registers(mut self) -> Target {
        let more = self.max_registers;
        self.max_registers += more;
        self.comfortable_registers += more;
        self.kept_registers += more;
        self
    }

    /// The resources of a work-group of `group` work-items with a program's registers.
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
    pub(crate) fn assumed_latency(&self, class: Class) -> u32 {
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
            Class::Atomic {
                space: crate::ir::Space::Shared,
                ..
            } => 60,
            Class::Load { .. } | Class::Atomic { .. } => 500,
            Class::Shuffle => 24,
            Class::Matrix { .. } => 30,
            Class::Fence => 200,
            Class::Wait => 20,
            Class::Branch | Class::Reconverge | Class::Barrier | Class::Exit => 8,
            Class::Store { .. } | Class::AsyncCopy { .. } | Class::Commit | Class::Prefetch => 4,
        }
    }
}
