//! Where a launch spends its time: by load of the source, by loop, by unit of a core.
//!
//! Cycles are counted where a sub-group waits, which is where a value is used; [`LoadProfile::waited`] gives the load that it
//! waited for, by the register that was not ready.

use super::code::{Code, Coded};
use super::cost::Pipe;
use super::stalls::{InstructionProfile, StallReason};
use crate::back::machine::{Class, Control, Instruction, InstructionStep, MachineProgram, Register};
use crate::ir::{LoadId, OpKind, Place, Space};
use crate::memory::MemoryCounters;
use crate::model::DeviceModel;

/// The requests of loads and copies to the memory hierarchy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Lines that were looked up in L1.
    pub lines: u64,
    /// Sectors asked of L1.
    pub sectors: u64,
    /// Those of them that were there.
    pub l1_hits: u64,
    /// Bytes that device memory delivered.
    pub memory_bytes: u64,
}

/// The counters of one load of the source, its copies all together.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadProfile {
    /// Which load, in the kernel of [`Code::program`].
    pub load: LoadId,
    /// How often sub-groups executed it.
    pub executed: f64,
    /// For how many work-items.
    pub work_items: f64,
    /// Bytes that these asked for.
    pub bytes: f64,
    /// Lines that were looked up in L1.
    pub lines: f64,
    /// Sectors asked of L1.
    pub(crate) sectors: f64,
    /// Those of them that were there.
    pub(crate) l1_hits: f64,
    /// Bytes that device memory delivered for it.
    pub memory_bytes: f64,
    /// Cycles that sub-groups waited for its values.
    pub waited: f64,
}

/// The counters of one loop, with its inner loops.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopProfile {
    /// The source place of the loop, in the kernel of [`Code::program`].
    pub place: Place,
    /// How many loops it lies in.
    pub depth: u32,
    /// Instructions of its code.
    pub instructions: u32,
    /// Bytes of its code.
    pub bytes: u32,
    /// How often sub-groups went through its body.
    pub iterations: f64,
    /// Instructions issued in it.
    pub issued: f64,
    /// Cycles that sub-groups waited in it, by reason, in the order of [`StallReason::ALL`].
    pub stalls: [f64; StallReason::ALL.len()],
    /// The loads from global memory that lie in it.
    pub loads: Vec<LoadId>,
}

/// How busy one kind of unit was.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitProfile {
    /// Its instructions.
    pub name: &'static str,
    /// Cycles that a core's units of this kind were busy, if all cores of the device shared the work evenly.
    pub cycles: f64,
}

impl Traffic {
    /// The counters that matter here, as they stand.
    pub(super) fn so_far(counters: &MemoryCounters) -> Traffic {
        Traffic {
            lines: counters.l1_lines,
            sectors: counters.l1_sectors,
            l1_hits: counters.l1_hits,
            memory_bytes: counters.dram_read_bytes,
        }
    }

    /// Adds the counts since `before`.
    pub(super) fn add_since(&mut self, before: Traffic, counters: &MemoryCounters) {
        let now = Traffic::so_far(counters);
        self.add(Traffic {
            lines: now.lines - before.lines,
            sectors: now.sectors - before.sectors,
            l1_hits: now.l1_hits - before.l1_hits,
            memory_bytes: now.memory_bytes - before.memory_bytes,
        });
    }

    /// Adds another one's.
    pub(super) fn add(&mut self, other: Traffic) {
        self.lines += other.lines;
        self.sectors += other.sectors;
        self.l1_hits += other.l1_hits;
        self.memory_bytes += other.memory_bytes;
    }
}

/// The loads of global memory, those with the most waiting first.
pub(super) fn loads(
    program: &MachineProgram,
    profile: &[InstructionProfile],
    scale: f64,
) -> Vec<LoadProfile> {
    let mut found: Vec<LoadProfile> = Vec::new();
    for (instruction, own) in program.instructions.iter().zip(profile) {
        let Some(load) = load_of(program, instruction) else {
            continue;
        };
        let sum = entry(&mut found, load);
        sum.executed += own.issued as f64 * scale;
        sum.work_items += own.lanes as f64 * scale;
        sum.bytes += own.lanes as f64 * scale * f64::from(bytes_of(instruction));
        sum.lines += own.traffic.lines as f64 * scale;
        sum.sectors += own.traffic.sectors as f64 * scale;
        sum.l1_hits += own.traffic.l1_hits as f64 * scale;
        sum.memory_bytes += own.traffic.memory_bytes as f64 * scale;
    }
    for (at, own) in profile.iter().enumerate() {
        let waited = own.stalls[StallReason::LongScoreboard as usize];
        if waited == 0 {
            continue;
        }
        let blamed = blamed(program, at);
        for &load in &blamed {
            entry(&mut found, load).waited += waited as f64 * scale / blamed.len() as f64;
        }
    }
    found.sort_by(|one, other| other.waited.total_cmp(&one.waited));
    found
}

fn entry(found: &mut Vec<LoadProfile>, load: LoadId) -> &mut LoadProfile {
    let position = found.iter().position(|known| known.load == load);
    let position = position.unwrap_or_else(|| {
        found.push(LoadProfile {
            load,
            executed: 0.0,
            work_items: 0.0,
            bytes: 0.0,
            lines: 0.0,
            sectors: 0.0,
            l1_hits: 0.0,
            memory_bytes: 0.0,
            waited: 0.0,
        });
        found.len() - 1
    });
    &mut found[position]
}

/// Bytes that a load or copy reads for each work-item.
pub(super) fn bytes_of(instruction: &Instruction) -> u32 {
    match instruction.class {
        Class::Load { bytes, .. } | Class::AsyncCopy { bytes } => bytes.into(),
        _ => 0,
    }
}

/// The load of global memory that an instruction carries out.
pub(super) fn load_of(program: &MachineProgram, instruction: &Instruction) -> Option<LoadId> {
    match instruction.class {
        Class::Load { space, .. } if space != Space::Shared && space != Space::Private => {}
        Class::AsyncCopy { .. } => {}
        _ => return None,
    }
    program.steps_of(instruction).iter().find_map(|step| match step {
        InstructionStep::Op(op) => match op.kind {
            OpKind::Load { id, .. } | OpKind::Copy { id, .. } => Some(id),
            _ => None,
        },
        InstructionStep::Assign(_) => None,
    })
}

/// The loads whose values an instruction uses: those that a wait before it is for.
fn blamed(program: &MachineProgram, at: usize) -> Vec<LoadId> {
    let mut blamed = Vec::new();
    for register in program.instructions[at].uses.iter() {
        if let Some(load) = definer(program, at, register)
            && !blamed.contains(&load)
        {
            blamed.push(load);
        }
    }
    blamed
}

/// The load that defines a register for an instruction: the nearest one before it or, if there is none, the last one of the
/// program, which a loop brings back. Other definitions of the register (a loop's initial value) take no time that is
/// attributed to loads.
fn definer(program: &MachineProgram, at: usize, register: Register) -> Option<LoadId> {
    let instructions = &program.instructions;
    let load = |position: usize| {
        let instruction = &instructions[position];
        let defines = instruction.defines.iter().any(|own| own == register);
        defines.then(|| load_of(program, instruction)).flatten()
    };
    let before = (0..at).rev().find_map(load);
    before.or_else(|| (at..instructions.len()).rev().find_map(load))
}

/// The loops, in the order of the program.
pub(super) fn loops(
    program: &MachineProgram,
    profile: &[InstructionProfile],
    scale: f64,
) -> Vec<LoopProfile> {
    let mut loops: Vec<LoopProfile> = Vec::new();
    // Those that are open, innermost last, each with the index of its end.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (at, (instruction, own)) in program.instructions.iter().zip(profile).enumerate() {
        while open.last().is_some_and(|&(_, end)| at > end) {
            open.pop();
        }
        if let Control::Loop { end, .. } = instruction.control {
            open.push((loops.len(), end as usize));
            loops.push(LoopProfile {
                place: instruction.place,
                depth: open.len() as u32 - 1,
                instructions: 0,
                bytes: 0,
                iterations: 0.0,
                issued: 0.0,
                stalls: [0.0; StallReason::ALL.len()],
                loads: Vec::new(),
            });
            continue;
        }
        let issued = own.issued as f64 * scale;
        for (level, &(index, _)) in open.iter().enumerate() {
            let sum = &mut loops[index];
            sum.instructions += u32::from(instruction.class != Class::None);
            sum.bytes += instruction.bytes;
            sum.issued += issued;
            if level + 1 == open.len() {
                sum.iterations = sum.iterations.max(issued);
            }
            for (sum, &own) in sum.stalls.iter_mut().zip(&own.stalls) {
                *sum += own as f64 * scale;
            }
            if let Some(load) = load_of(program, instruction)
                && !sum.loads.contains(&load)
            {
                sum.loads.push(load);
            }
        }
    }
    loops
}

/// How long each kind of unit was busy, the busiest first; those that did nothing are left out.
pub(super) fn units(
    model: &DeviceModel,
    code: &Code,
    profile: &[InstructionProfile],
    scale: f64,
) -> Vec<UnitProfile> {
    let (cores, schedulers) = (f64::from(*model.core.count), f64::from(*model.core.schedulers));
    let of = |pipe: Pipe, name: &'static str, a_core: f64| {
        let busy = |(coded, own): (&Coded, &InstructionProfile)| own.issued as f64 * coded.interval;
        let instructions = code.instructions.iter().zip(profile);
        let cycles: f64 = instructions
            .filter(|(coded, _)| coded.pipe == pipe)
            .map(busy)
            .sum();
        UnitProfile {
            name,
            cycles: cycles * scale / (cores * a_core),
        }
    };
    let issued: u64 = profile.iter().map(|own| own.issued).sum();
    let mut units = vec![
        UnitProfile {
            name: "issue of instructions",
            cycles: issued as f64 * scale / (cores * schedulers),
        },
        of(Pipe::Integer, "integer arithmetic", schedulers),
        of(Pipe::Float, "32-bit floating point", schedulers),
        of(Pipe::Double, "64-bit floating point", schedulers),
        of(Pipe::Special, "special functions and conversions", schedulers),
        of(Pipe::Matrix, "products of matrices", schedulers),
        of(Pipe::Memory, "loads and stores", 1.0),
    ];
    units.retain(|unit| unit.cycles > 0.0);
    units.sort_by(|one, other| other.cycles.total_cmp(&one.cycles));
    units
}
