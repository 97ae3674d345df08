//! Machine programs compute what their kernels compute.
//!
//! Every kernel in `tests/in` is lowered, and the program is run as its documentation says, on the
//! functional engine's operations, with the program's own slots; outputs are compared, bit by bit, with
//! those of the functional engine on the kernel itself. So are those of the cleaned kernel.

mod common;

use std::sync::Arc;

use headstart::back::machine::{Class, Control, InstructionStep, MachineProgram, Target, lower};
use headstart::device::sim::functional::{
    BufferMemory, CompiledKernel, Groups, LaneOp, LaunchState, Mask, Options, Registers, Slot, SubGroup,
    WorkGroup,
};
use headstart::ir::{Kernel, Value};
use headstart::prefetch::{self, apply};
use headstart::tune::Workload;
use headstart_testing::{self as testing, Case, derived_are_right};

fn contents(memories: &[Arc<BufferMemory>]) -> Vec<Vec<u8>> {
    let read = |memory: &Arc<BufferMemory>| {
        let mut bytes = vec![0; memory.bytes() as usize];
        memory.copy_out(0, &mut bytes).unwrap();
        bytes
    };
    memories.iter().map(read).collect()
}

const SUB_GROUP: u32 = 32;

/// What the functional engine makes of a kernel, or why it stops.
fn interpreted(workload: &Workload, kernel: &Kernel) -> headstart::Result<Vec<Vec<u8>>> {
    let (launch, memories) = testing::bind(workload).expect("the buffers are small");
    let compiled = CompiledKernel::new(Arc::new(kernel.clone()));
    compiled.run(&launch, SUB_GROUP, Options::FAST, &Groups::All)?;
    Ok(contents(&memories))
}

/// The lanes that wait in an open scope.
#[derive(Clone, Copy, Default)]
struct Waiting {
    otherwise: Option<Mask>,
    left: Option<Mask>,
    next: Option<Mask>,
}

fn joined(some: Option<Mask>, more: Mask) -> Option<Mask> {
    Some(some.map_or(more, |some| some.or(more)))
}

/// A program ready to run: its steps on slots.
struct Executable<'p> {
    program: &'p MachineProgram,
    /// Constants come behind the program's own slots.
    constants: Vec<(Slot, u64)>,
    steps: Vec<Executed>,
    slots: u32,
}

enum Executed {
    Op(LaneOp),
    Assign(Vec<(Slot, Slot)>),
    /// A barrier; a sub-group waits there.
    Nothing,
}

impl<'p> Executable<'p> {
    fn new(program: &'p MachineProgram) -> Executable<'p> {
        let mut executable = Executable {
            program,
            constants: Vec::new(),
            steps: Vec::new(),
            slots: program.slot_count,
        };
        for step in &program.steps {
            let step = match step {
                InstructionStep::Op(op) => LaneOp::new(&program.kernel, op, |value| executable.slot(value))
                    .map_or(Executed::Nothing, Executed::Op),
                InstructionStep::Assign(pairs) => {
                    let pair = |&(to, from): &(Value, Value)| (executable.slot(to), executable.slot(from));
                    Executed::Assign(pairs.iter().map(pair).collect())
                }
            };
            executable.steps.push(step);
        }
        executable
    }

    fn slot(&mut self, value: Value) -> Slot {
        if let Some(bits) = self.program.kernel.as_constant(value) {
            if let Some((slot, _)) = self.constants.iter().find(|(_, known)| *known == bits) {
                return *slot;
            }
            self.constants.push((Slot(self.slots), bits));
            self.slots += 1;
            return Slot(self.slots - 1);
        }
        Slot(
            self.program.slots[value]
                .expect("a value that a step names has a slot")
                .as_u32(),
        )
    }

    fn registers(&self, arguments: &[u64]) -> Registers {
        let mut registers = Registers::new(self.slots, 32);
        for &(slot, bits) in &self.constants {
            registers.broadcast(slot, bits);
        }
        for (param, &bits) in self.program.kernel.params.iter().zip(arguments) {
            if let Some(slot) = self.program.slots[param.value] {
                registers.broadcast(Slot(slot.as_u32()), bits);
            }
        }
        registers
    }

    /// Runs a sub-group to its end, or to the next barrier.
    fn run(&self, runner: &mut Runner, group: &mut WorkGroup<'_>) -> headstart::Result<()> {
        let instructions = &self.program.instructions;
        while runner.at < instructions.len() {
            let instruction = &instructions[runner.at];
            runner.at += 1;
            let mut mask = runner.active;
            if let Some(guard) = instruction.guard {
                let slot = Slot(self.program.slots[guard.value].unwrap().as_u32());
                let holds = runner.registers.truth(slot, mask);
                mask = if guard.holds { holds } else { mask.without(holds) };
            }
            for step in &self.steps[instruction.steps.start as usize..instruction.steps.end as usize] {
                match step {
                    Executed::Op(op) => {
                        group.execute(op, &mut runner.registers, &runner.sub_group, mask)?;
                    }
                    Executed::Assign(pairs) => runner.registers.assign(pairs, mask),
                    Executed::Nothing => {}
                }
            }
            self.obey(instruction.control, runner);
            if instruction.class == Class::Barrier {
                return Ok(());
            }
        }
        runner.ended = true;
        Ok(())
    }

    fn obey(&self, control: Control, runner: &mut Runner) {
        let active = runner.active;
        match control {
            Control::Next => {}
            Control::Block { .. } | Control::Loop { .. } => runner.scopes.push(Waiting::default()),
            Control::If { cond, .. } => {
                let slot = Slot(self.program.slots[cond].unwrap().as_u32());
                let holds = runner.registers.truth(slot, active);
                let otherwise = Some(active.without(holds));
                runner.scopes.push(Waiting {
                    otherwise,
                    ..Waiting::default()
                });
                runner.active = holds;
            }
            Control::Else { .. } => {
                let scope = runner.scopes.last_mut().unwrap();
                runner.active = scope.otherwise.take().unwrap();
            }
            Control::End { .. } => runner.active = runner.scopes.pop().unwrap().left.unwrap_or(Mask::NONE),
            Control::EndLoop { body, .. } => {
                let scope = runner.scopes.last_mut().unwrap();
                match scope.next.take() {
                    Some(next) if !next.is_empty() => {
                        runner.active = next;
                        runner.at = body as usize;
                    }
                    _ => runner.active = runner.scopes.pop().unwrap().left.unwrap_or(Mask::NONE),
                }
            }
            Control::Break { depth } => {
                let scope = &mut runner.scopes[depth as usize];
                scope.left = joined(scope.left, active);
                runner.active = Mask::NONE;
            }
            Control::Continue { depth } => {
                let scope = &mut runner.scopes[depth as usize];
                scope.next = joined(scope.next, active);
                runner.active = Mask::NONE;
            }
            Control::Return => runner.active = Mask::NONE,
        }
    }
}

struct Runner {
    sub_group: SubGroup,
    registers: Registers,
    active: Mask,
    scopes: Vec<Waiting>,
    at: usize,
    ended: bool,
}

/// What a program makes of a launch, or why it stops.
fn executed(workload: &Workload, program: &MachineProgram) -> headstart::Result<Vec<Vec<u8>>> {
    let (launch, memories) = testing::bind(workload).expect("the buffers are small");
    let state = LaunchState::new(&program.kernel, &launch, SUB_GROUP, Options::FAST)?;
    let executable = Executable::new(program);
    let mut group = WorkGroup::new(&state)?;
    for number in 0..launch.group_count() {
        group.begin(number);
        let mut runners: Vec<Runner> = (0..state.sub_groups())
            .map(|number| {
                let sub_group = group.sub_group(number);
                Runner {
                    active: sub_group.mask(),
                    sub_group,
                    registers: executable.registers(state.arguments()),
                    scopes: Vec::new(),
                    at: 0,
                    ended: false,
                }
            })
            .collect();
        while runners.iter().any(|runner| !runner.ended) {
            for runner in runners.iter_mut().filter(|runner| !runner.ended) {
                executable.run(runner, &mut group)?;
            }
            group.barrier();
        }
    }
    Ok(contents(&memories))
}

/// How a kernel's programs differ from it, if one does.
fn difference(workload: &Workload, kernel: &Kernel) -> Option<String> {
    let right = match interpreted(workload, kernel) {
        Ok(right) => right,
        // A kernel made smaller may be wrong itself.
        Err(_) => return None,
    };
    for target in [Target::nvidia(), Target::intel(SUB_GROUP, 8 * 1024)] {
        let program = lower(kernel, &target);
        let runs = [
            ("cleaned kernel", interpreted(workload, &program.kernel)),
            ("program", executed(workload, &program)),
        ];
        for (what, outcome) in runs {
            match outcome {
                Ok(outputs) if outputs == right => {}
                Ok(_) => return Some(format!("the {what} for {:?} differs", target.family)),
                Err(error) => return Some(format!("the {what} for {:?} stops: {error}", target.family)),
            }
        }
    }
    None
}

#[test]
fn programs_compute_what_their_kernels_compute() {
    let mut kernels = 0;
    for case in Case::all().expect("the kernels are well written") {
        for plan in &case.plans {
            let Ok(applied) = apply(&case.workload.kernel, plan, &prefetch::PlanTarget::default()) else {
                continue;
            };
            let difference = difference(&case.workload, &applied.kernel);
            assert_eq!(difference, None, "{} under {plan}", case.name);
            kernels += 1;
        }
    }
    assert!(kernels >= 50, "{kernels} kernels");
}

/// Random kernels under random plans; `HEADSTART_PLANS` says how many.
#[test]
fn programs_of_random_kernels_compute_the_same() {
    derived_are_right(testing::count("HEADSTART_PLANS", 40), 2, |derived| {
        difference(derived.workload, derived.kernel)
    });
}
