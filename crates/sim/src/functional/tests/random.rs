//! Random kernels with nested control flow, against the reference.

use std::sync::Arc;

use super::super::needed::choices;
use super::super::options::Options;
use super::super::requests::Noted;
use super::super::run::CompiledKernel;
use super::super::tape::TapeStep;
use super::Case;
use super::reference::Interpreter;
use crate::ir::{
    BinaryOp, Builder, CompareOp, ConvertOp, Id, Kernel, Label, LoadData, LoadId, LoopWishes, Op, OpKind,
    Param, Type, UnaryOp, Value, print, verify,
};
use headstart_ir::random::splitmix64;

/// Elements of the input.
const INPUTS: u64 = 64;
/// Elements of the output for each work-item.
const OUTPUTS: u64 = 6;

const TYPES: [Type; 5] = [Type::I32, Type::I64, Type::F32, Type::F64, Type::Bool];

struct Random {
    seed: u64,
    drawn: u64,
}

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.drawn += 1;
        (splitmix64(self.drawn, self.seed) % bound as u64) as usize
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())]
    }
}

/// A scope that a terminator may name.
#[derive(Clone)]
struct LabelScope {
    label: Label,
    results: Vec<Type>,
    /// Of a loop: its counter and the types of its other parameters.
    looping: Option<(Value, Vec<Type>)>,
}

struct Generator {
    random: Random,
    input: Value,
    /// The work-item's part of the output.
    output: Value,
    load: LoadId,
    /// Operations still to be written.
    budget: usize,
}

impl Generator {
    /// A value of a type: one that is visible, or a constant.
    fn value(&mut self, b: &mut Builder<'_>, visible: &[Value], ty: Type) -> Value {
        let fitting: Vec<Value> = visible
            .iter()
            .copied()
            .filter(|&value| b.kernel.ty(value) == ty)
            .collect();
        if fitting.is_empty() || self.random.below(8) == 0 {
            let bits = match self.random.below(3) {
                0 => self.random.below(5) as u64,
                1 => splitmix64(self.random.below(1000) as u64, 99),
                _ => 1.5f64.to_bits() >> if ty == Type::F32 { 32 } else { 0 },
            };
            return b.constant(ty, bits);
        }
        // Late values are the interesting ones.
        let from = fitting.len().saturating_sub(6);
        self.random.pick(&fitting[from..])
    }

    fn values(&mut self, b: &mut Builder<'_>, visible: &[Value], types: &[Type]) -> Vec<Value> {
        types.iter().map(|&ty| self.value(b, visible, ty)).collect()
    }

    fn types(&mut self) -> Vec<Type> {
        (0..self.random.below(3))
            .map(|_| self.random.pick(&TYPES))
            .collect()
    }

    /// One operation without regions; its result is added to the visible values.
    fn plain(&mut self, b: &mut Builder<'_>, visible: &mut Vec<Value>) {
        let ty = self.random.pick(&TYPES);
        let [a, c] = [(), ()].map(|()| self.value(b, visible, ty));
        let float = ty.is_float();
        let result = match self.random.below(7) {
            0 => {
                let ops: &[UnaryOp] = match ty {
                    Type::Bool => &[UnaryOp::Not],
                    _ if float => &[UnaryOp::FNeg, UnaryOp::FAbs, UnaryOp::Sqrt, UnaryOp::Floor],
                    _ => &[UnaryOp::Not, UnaryOp::Neg, UnaryOp::CountOnes],
                };
                b.unary(self.random.pick(ops), a)
            }
            1 | 2 => {
                let ops: &[BinaryOp] = match ty {
                    Type::Bool => &[BinaryOp::And, BinaryOp::Or, BinaryOp::Xor],
                    _ if float => &[BinaryOp::FAdd, BinaryOp::FMul, BinaryOp::FDiv, BinaryOp::FMin],
                    _ => &[
                        BinaryOp::Add,
                        BinaryOp::Mul,
                        BinaryOp::Sub,
                        BinaryOp::DivS,
                        BinaryOp::ShrU,
                    ],
                };
                b.binary(self.random.pick(ops), a, c)
            }
            3 => {
                let ops: &[CompareOp] = match ty {
                    Type::Bool => &[CompareOp::Eq, CompareOp::Ne],
                    _ if float => &[CompareOp::FLt, CompareOp::FEq],
                    _ => &[CompareOp::LtU, CompareOp::LeS, CompareOp::Ne],
                };
                b.compare(self.random.pick(ops), a, c)
            }
            4 => {
                let cond = self.value(b, visible, Type::Bool);
                b.select(cond, a, c)
            }
            5 => {
                let index = self.value(b, visible, Type::I32);
                let mask = b.i32(INPUTS as i32 - 1);
                let index = b.and(index, mask);
                let index = b.convert(ConvertOp::ExtendU, Type::I64, index);
                let ptr = b.address(self.input, index, 4, 0);
                b.load(Type::I32, ptr, self.load)
            }
            _ => {
                let number = self.value(b, visible, Type::I64);
                let place = self.random.below(OUTPUTS as usize) as i64;
                let zero = b.i64(0);
                let ptr = b.address(self.output, zero, 8, place * 8);
                b.store(ptr, number);
                return;
            }
        };
        visible.push(result);
    }

    /// Operations, then a terminator that names one of the scopes.
    fn region(&mut self, b: &mut Builder<'_>, mut visible: Vec<Value>, scopes: &[LabelScope]) {
        for _ in 0..self.random.below(7) {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            let nested = scopes.len() < 6 && self.random.below(3) == 0;
            if nested {
                self.nested(b, &mut visible, scopes);
            } else {
                self.plain(b, &mut visible);
            }
        }
        self.terminator(b, &visible, scopes);
    }

    fn nested(&mut self, b: &mut Builder<'_>, visible: &mut Vec<Value>, scopes: &[LabelScope]) {
        let results = self.types();
        let label = b.kernel.label(None, results.clone());
        let mut inside = scopes.to_vec();
        inside.push(LabelScope {
            label,
            results: results.clone(),
            looping: None,
        });
        let kind = match self.random.below(3) {
            0 => {
                let body = b.region(|b| self.region(b, visible.clone(), &inside));
                crate::ir::OpKind::Block { label, body }
            }
            1 => {
                let cond = self.value(b, visible, Type::Bool);
                let then = b.region(|b| self.region(b, visible.clone(), &inside));
                let otherwise = b.region(|b| self.region(b, visible.clone(), &inside));
                crate::ir::OpKind::If {
                    label,
                    cond,
                    then,
                    otherwise,
                }
            }
            _ => self.looping(b, visible, inside),
        };
        visible.extend(b.push(kind, &results));
    }

    /// A loop that counts: it ends because every way round adds to its counter.
    fn looping(
        &mut self,
        b: &mut Builder<'_>,
        visible: &[Value],
        mut scopes: Vec<LabelScope>,
    ) -> crate::ir::OpKind {
        let types = self.types();
        let mut initial = vec![b.i32(0)];
        initial.extend(self.values(b, visible, &types));
        let params: Vec<Value> = initial
            .iter()
            .map(|&value| b.kernel.value(b.kernel.ty(value)))
            .collect();
        let counter = params[0];
        let scope = scopes.last_mut().expect("the loop's own");
        scope.looping = Some((counter, types));
        let (label, results) = (scope.label, scope.results.clone());
        // How often it runs differs from work-item to work-item.
        let any = self.value(b, visible, Type::I32);
        let three = b.i32(3);
        let bound = b.and(any, three);
        let body = b.region(|b| {
            let mut visible = visible.to_vec();
            visible.extend(&params);
            let ended = b.compare(CompareOp::LeU, bound, counter);
            let passed = self.values(b, &visible, &results);
            b.break_if(ended, label, passed);
            self.region(b, visible, &scopes);
        });
        crate::ir::OpKind::Loop {
            label,
            params,
            initial,
            body,
            wishes: LoopWishes::default(),
        }
    }

    fn terminator(&mut self, b: &mut Builder<'_>, visible: &[Value], scopes: &[LabelScope]) {
        let innermost = scopes.len().saturating_sub(1);
        let target = match self.random.below(3) {
            _ if scopes.is_empty() => return b.return_(),
            0 => scopes[self.random.below(scopes.len())].clone(),
            _ => scopes[innermost].clone(),
        };
        if self.random.below(25) == 0 {
            return b.return_();
        }
        match target.looping {
            Some((counter, types)) if self.random.below(4) != 0 => {
                let one = b.i32(1);
                let mut passed = vec![b.add(counter, one)];
                passed.extend(self.values(b, visible, &types));
                b.continue_(target.label, passed);
            }
            _ => {
                let passed = self.values(b, visible, &target.results);
                b.break_(target.label, passed);
            }
        }
    }
}

/// A kernel of an input and an output buffer and one scalar.
fn random_kernel(seed: u64) -> Kernel {
    let mut kernel = Kernel::new("random");
    for (name, ty) in [
        ("input", Type::Ptr(crate::ir::Space::Global)),
        ("output", Type::Ptr(crate::ir::Space::Global)),
        ("number", Type::I64),
    ] {
        let value = kernel.value(ty);
        kernel.params.push(Param {
            name: name.to_owned(),
            value,
            facts: None,
        });
    }
    let load = kernel.loads.push(LoadData::new("input", Kernel::NOWHERE));
    let [input, output, number] = [0, 1, 2].map(|param| kernel.params[param].value);
    let mut b = Builder::new(&mut kernel, Kernel::NOWHERE);
    let local = b.id(Id::Local(0));
    let group = b.id(Id::Group(0));
    let size = b.id(Id::GroupSize(0));
    let before = b.mul(group, size);
    let item = b.add(before, local);
    let item64 = b.convert(ConvertOp::ExtendU, Type::I64, item);
    let own = b.address(output, item64, 8 * OUTPUTS as u32, 0);
    let mut generator = Generator {
        random: Random { seed, drawn: 0 },
        input,
        output: own,
        load,
        budget: 60,
    };
    let mut visible = vec![number, local, group, item, item64];
    for _ in 0..6 {
        generator.plain(&mut b, &mut visible);
    }
    while generator.budget > 10 {
        generator.nested(&mut b, &mut visible, &[]);
        generator.budget = generator.budget.saturating_sub(1);
    }
    // Final results are seen from outside, as far as they are 64-bit integers.
    for (place, &value) in visible.iter().rev().take(OUTPUTS as usize).enumerate() {
        let bits = match b.kernel.ty(value) {
            Type::I64 => value,
            Type::F64 => b.convert(ConvertOp::Bits, Type::I64, value),
            Type::I32 => b.convert(ConvertOp::ExtendU, Type::I64, value),
            _ => continue,
        };
        let zero = b.i64(0);
        let ptr = b.address(own, zero, 8, place as i64 * 8);
        b.store(ptr, bits);
    }
    b.return_();
    kernel.body = b.finish();
    kernel
}

/// Seeds that differ from day to day would hide nothing, but could not be repeated: these are fixed, and
/// the environment may add to them.
fn seeds() -> std::ops::Range<u64> {
    let first = std::env::var("HEADSTART_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(0);
    first..first + 400
}

/// The random kernel of a seed, with inputs, in two work-groups of 50.
fn random_case(seed: u64, inputs: &[i32], sub_group_size: u32) -> Case {
    let mut case = Case::of(random_kernel(seed), 2, 50)
        .buffer(inputs)
        .buffer(&[0u64; 100 * OUTPUTS as usize])
        .scalar(77i64);
    case.sub_group_size = sub_group_size;
    case
}

#[test]
fn steps_and_requests_are_the_same_without_most_arithmetic() {
    let inputs: Vec<i32> = (0..INPUTS).map(|index| splitmix64(index, 5) as i32).collect();
    let noted = Noted {
        line: 128,
        sector: 32,
        is_noted: |_, _| true,
        one_in: 1,
        most_steps: u64::MAX,
    };
    let (mut skipped, mut cut, mut exact) = (0, 0, 0);
    for seed in seeds() {
        let case = random_case(seed, &inputs, 32);
        let asked = |compiled: &CompiledKernel, noted: Noted| {
            let asked = compiled.requests_of(&case.launch, 32, Options::FAST, &[0, 1], noted, None);
            asked.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", print(&case.kernel)))
        };
        let whole = asked(&CompiledKernel::new(Arc::clone(&case.kernel)), noted);
        let addresses = CompiledKernel::of_addresses(Arc::clone(&case.kernel));
        let steps = addresses.tape().steps.iter();
        skipped += steps.filter(|step| matches!(step, TapeStep::Skip(_))).count();
        // A choice that is not needed counts as its first region, once in each of the two sub-groups.
        let of_addresses = asked(&addresses, noted);
        let of_choices = 2 * steps_of_choices(&case.kernel);
        exact += usize::from(of_choices == 0);
        for ((steps, requests), (own_steps, own_requests)) in whole.iter().zip(&of_addresses) {
            assert!(
                requests == own_requests && steps.abs_diff(*own_steps) <= of_choices,
                "seed {seed}: {steps} and {own_steps} steps:\n{}",
                print(&case.kernel)
            );
        }
        // Who has seen enough has seen the first of them.
        if !addresses.has_barriers() {
            let some = asked(
                &addresses,
                Noted {
                    most_steps: 200,
                    ..noted
                },
            );
            for ((steps, all), (some_steps, some)) in of_addresses.iter().zip(&some) {
                assert!(some_steps <= steps, "seed {seed}");
                for (all, some) in all.iter().zip(some) {
                    assert!(all.starts_with(some), "seed {seed}:\n{}", print(&case.kernel));
                }
                cut += usize::from(some_steps < steps);
            }
        }
    }
    assert!(skipped > 1000, "only {skipped} times anything was left out");
    assert!(cut > 20, "only {cut} work-groups ended early");
    assert!(exact > 100, "only {exact} kernels have no choice");
}

/// An upper bound of the steps that a sub-group takes in a kernel's choices.
fn steps_of_choices(kernel: &Kernel) -> u64 {
    let choices = choices(kernel);
    let mut steps = 0;
    // `If`, `Else` and `End`; what results, and the way out; anything else.
    let of_op = |op: &Op| match op.kind {
        OpKind::If { .. } => 3,
        OpKind::Break(..) => 2,
        _ => 1,
    };
    kernel.body.walk(&mut |op| {
        if matches!(op.kind, OpKind::If { cond, .. } if choices.contains_key(&cond)) {
            steps += of_op(op);
            for region in op.kind.regions() {
                region.walk(&mut |op| steps += of_op(op));
            }
        }
    });
    steps
}

#[test]
fn random_control_flow_runs_as_one_work_item_at_a_time_would() {
    let inputs: Vec<i32> = (0..INPUTS).map(|index| splitmix64(index, 5) as i32).collect();
    let (groups, group) = (2u32, 50u32);
    let mut loops = 0;
    for seed in seeds() {
        let kernel = random_kernel(seed);
        verify(&kernel).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", print(&kernel)));
        kernel
            .body
            .walk(&mut |op| loops += usize::from(matches!(op.kind, OpKind::Loop { .. })));
        let items = u64::from(groups * group);
        let mut buffers = [
            inputs
                .iter()
                .flat_map(|input| input.to_le_bytes())
                .collect::<Vec<u8>>(),
            vec![0; (items * OUTPUTS * 8) as usize],
        ];
        for number in 0..groups * group {
            let (local, number_of_group) = (number % group, number / group);
            let mut interpreter =
                Interpreter::new(&kernel, &mut buffers, &[77], local, number_of_group, group);
            interpreter.run();
        }
        let expected: Vec<u64> = buffers[1]
            .chunks_exact(8)
            .map(|bytes| {
                bytes
                    .iter()
                    .rev()
                    .fold(0, |bits, &byte| bits << 8 | u64::from(byte))
            })
            .collect();
        for size in [8, 16, 32] {
            let case = random_case(seed, &inputs, size);
            if let Err(error) = case.run() {
                panic!("seed {seed}: {error}\n{}", print(&kernel));
            }
            let got = case.read::<u64>(1);
            let wrong = got
                .iter()
                .zip(&expected)
                .position(|(got, expected)| got != expected);
            if let Some(wrong) = wrong {
                let item = wrong as u64 / OUTPUTS;
                panic!(
                    "seed {seed}, sub-groups of {size}: output {} of work-item {item} is {:#x}, not {:#x}\n{}",
                    wrong as u64 % OUTPUTS,
                    got[wrong],
                    expected[wrong],
                    print(&kernel)
                );
            }
        }
    }
    assert!(loops > 300, "only {loops} loops were generated");
}
