//! A program's meaning, computed from its syntax tree alone: the third opinion beside nvcc's and the translators'.
//!
//! Work-items on the same path run a statement together; those that leave a loop wait behind it. Undefined behaviour of C (an
//! access out of bounds, a signed overflow, a division by zero, a barrier that some work-items miss) and excessive run time
//! make a launch invalid, and it is not tried. Work-groups that wait for each other take turns; the waits determine the values
//! that they read, so any order gives the same.

use super::launches::Launch;
use super::tree::{
    Arithmetic, Condition, Exchange, Expr, Local, Loop, Pointer, Program, Relation, Scalar, Statement, Switch,
};
use super::turns::{Over, Turns};

/// Statements that a work-item may run, on average.
const STEPS: u64 = 8_000;
/// Work-items of a warp.
const WARP: u64 = 32;

/// Why a launch is none that may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invalid {
    /// An access out of bounds.
    Bounds,
    /// Arithmetic without a result.
    Arithmetic,
    /// Not all are there that must be.
    Together,
    /// It takes too long.
    Steps,
}

/// A number's or pointer's bits; a pointer is an array and an offset in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Number(u64),
    Pointer(usize, i64),
}

/// What a work-item does after a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatementOutcome {
    On,
    Leave(u32),
    Next(u32),
    Return,
}

struct Machine<'p> {
    program: &'p Program,
    launch: &'p Launch,
    memory: Vec<Vec<u64>>,
    locals: Vec<Vec<Cell>>,
    outcomes: Vec<StatementOutcome>,
    steps: u64,
    /// The work-group and the turns that it takes, where some wait for others.
    turns: Option<(usize, &'p Turns)>,
    /// Something was written since the last turn.
    wrote: bool,
}

type Outcome<T> = Result<T, Invalid>;

/// What the arrays hold after the launch, in the order of the parameters.
///
/// # Errors
/// The launch does something that has no meaning.
pub(crate) fn interpret(program: &Program, launch: &Launch) -> Result<Vec<Vec<u64>>, Invalid> {
    let items: Vec<usize> = (0..program.items() as usize).collect();
    let mut memory = match program.waits {
        false => {
            let mut machine = Machine::new(program, launch);
            machine.memory = launch.contents.clone();
            machine.statements(&program.body, &items)?;
            machine.memory
        }
        true => in_turns(program, launch, &items)?,
    };
    for array in 0..memory.len() {
        let buffer = launch.buffer(array);
        if buffer != array {
            memory[array] = memory[buffer].clone();
        }
    }
    Ok(memory)
}

/// Runs each work-group on a thread, one at a time.
fn in_turns(program: &Program, launch: &Launch, items: &[usize]) -> Outcome<Vec<Vec<u64>>> {
    let groups: Vec<&[usize]> = items.chunks(program.group as usize).collect();
    let turns = Turns::new(launch.contents.clone(), groups.len());
    let run = |group: usize| {
        let _released = turns.released_by_panic(group);
        let mut machine = Machine::new(program, launch);
        machine.turns = Some((group, &turns));
        let outcome = match turns.begin(group) {
            Ok(memory) => {
                machine.memory = memory;
                machine.statements(&program.body, groups[group])
            }
            Err(Over) => Err(Invalid::Together),
        };
        turns.end(machine.memory, group, outcome.is_ok());
        outcome
    };
    let outcomes: Vec<Outcome<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..groups.len())
            .map(|group| scope.spawn(move || run(group)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|outcome| outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    outcomes.into_iter().collect::<Outcome<()>>()?;
    Ok(turns.into_memory())
}

impl<'p> Machine<'p> {
    fn new(program: &'p Program, launch: &'p Launch) -> Machine<'p> {
        let initial = |local: &Local| match local {
            Local::Number(_) => Cell::Number(0),
            Local::Pointer(_, array) => Cell::Pointer(*array, 0),
        };
        let items = program.items() as usize;
        Machine {
            program,
            launch,
            memory: Vec::new(),
            locals: vec![program.locals.iter().map(initial).collect(); items],
            outcomes: vec![StatementOutcome::On; items],
            steps: STEPS * items as u64,
            turns: None,
            wrote: false,
        }
    }

    fn statements(&mut self, statements: &[Statement], items: &[usize]) -> Outcome<()> {
        let mut items = items.to_vec();
        for statement in statements {
            if items.is_empty() {
                break;
            }
            self.steps = self.steps.checked_sub(items.len() as u64).ok_or(Invalid::Steps)?;
            self.statement(statement, &items)?;
            items.retain(|&item| self.outcomes[item] == StatementOutcome::On);
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement, items: &[usize]) -> Outcome<()> {
        match statement {
            Statement::Assign(local, value) => {
                for &item in items {
                    let value = self.number(value, item)?;
                    self.locals[item][*local] = Cell::Number(value);
                }
            }
            Statement::Point(local, pointer) => {
                for &item in items {
                    let (array, at) = self.pointer(pointer, item)?;
                    self.locals[item][*local] = Cell::Pointer(array, at);
                }
            }
            Statement::Store(pointer, index, value) => {
                for &item in items {
                    let value = self.number(value, item)?;
                    let (array, at) = self.place(pointer, index, item)?;
                    self.memory[array][at] = value;
                    self.wrote = true;
                }
            }
            Statement::If(condition, then, otherwise) => {
                let (yes, no) = self.split(condition, items)?;
                self.statements(then, &yes)?;
                self.statements(otherwise, &no)?;
            }
            Statement::Loop(looped) => self.looped(looped, items, false)?,
            Statement::Wait(looped) => self.looped(looped, items, true)?,
            Statement::Switch(switch) => self.switch(switch, items)?,
            Statement::Block(label, body) => {
                self.statements(body, items)?;
                self.arrive(StatementOutcome::Leave(*label), items);
            }
            Statement::Leave(label) => self.go(StatementOutcome::Leave(*label), items),
            Statement::Next(label) => self.go(StatementOutcome::Next(*label), items),
            Statement::Return => self.go(StatementOutcome::Return, items),
            Statement::Barrier => {
                let group = u64::from(self.program.group);
                let here = |item: u64| items.contains(&(item as usize));
                let missing =
                    |item: u64| !here(item) && self.outcomes[item as usize] != StatementOutcome::Return;
                let first = |item: usize| item as u64 / group * group;
                if items
                    .iter()
                    .any(|&item| (first(item)..first(item) + group).any(missing))
                {
                    return Err(Invalid::Together);
                }
            }
            // One work-item after the other is in an order already.
            Statement::Fence => {}
            // It has no meaning here: see `asides`.
            Statement::Aside(_) => {}
            Statement::Shuffle(to, exchange, value, by, mask) => {
                let parties = self.parties(*mask, items)?;
                let mut given = vec![0; self.outcomes.len()];
                for &item in items {
                    given[item] = self.number(value, item)?;
                }
                for (&item, party) in items.iter().zip(parties) {
                    let lane = item as u64 % WARP;
                    let by = self.number(by, item)?;
                    let from = match exchange {
                        Exchange::Index => Some(by),
                        Exchange::Up => lane.checked_sub(by),
                        Exchange::Down => Some(lane + by),
                        Exchange::Xor => Some(lane ^ by),
                    };
                    let from = from.filter(|&from| from < WARP).unwrap_or(lane);
                    // The values of absent work-items are undefined.
                    if by >= WARP || party >> from & 1 == 0 {
                        return Err(Invalid::Together);
                    }
                    let from = given[item - lane as usize + from as usize];
                    self.locals[item][*to] = Cell::Number(from);
                }
            }
            Statement::Ballot(to, condition, mask) => {
                let parties = self.parties(*mask, items)?;
                let (yes, _) = self.split(condition, items)?;
                for (&item, party) in items.iter().zip(parties) {
                    let warp = item as u64 / WARP;
                    let of_warp = yes.iter().filter(|&&other| other as u64 / WARP == warp);
                    let ballot = of_warp.fold(0u64, |ballot, &other| ballot | 1 << (other as u64 % WARP));
                    self.locals[item][*to] = Cell::Number(ballot & party);
                }
            }
            Statement::Meet(mask) => {
                self.parties(Some(*mask), items)?;
            }
        }
        Ok(())
    }

    /// The mask of each of these items, which are all here and have the same one.
    fn parties(&self, mask: Option<usize>, items: &[usize]) -> Outcome<Vec<u64>> {
        let full = (1 << WARP) - 1;
        let mut given = vec![None; self.outcomes.len()];
        for &item in items {
            given[item] = Some(mask.map_or(full, |mask| self.local(mask, item)));
        }
        let whole = |&item: &usize| {
            let (lane, own) = (item as u64 % WARP, given[item]?);
            let first = item - lane as usize;
            let mut named = (0..WARP).filter(|lane| own >> lane & 1 == 1);
            let agreed = named.all(|other| given.get(first + other as usize) == Some(&Some(own)));
            (agreed && own >> lane & 1 == 1).then_some(own)
        };
        let parties: Option<Vec<u64>> = items.iter().map(whole).collect();
        parties.ok_or(Invalid::Together)
    }

    fn go(&mut self, outcome: StatementOutcome, items: &[usize]) {
        items.iter().for_each(|&item| self.outcomes[item] = outcome);
    }

    /// Those of them who went this way are there.
    fn arrive(&mut self, outcome: StatementOutcome, items: &[usize]) {
        for &item in items {
            if self.outcomes[item] == outcome {
                self.outcomes[item] = StatementOutcome::On;
            }
        }
    }

    /// Runs a loop; one that waits for others lets them go on before it looks again.
    fn looped(&mut self, looped: &Loop, all: &[usize], waits: bool) -> Outcome<()> {
        let mut items = all.to_vec();
        loop {
            if let Some(condition) = &looped.before {
                items = self.split(condition, &items)?.0;
            }
            if items.is_empty() {
                break;
            }
            self.steps = self.steps.checked_sub(items.len() as u64).ok_or(Invalid::Steps)?;
            self.statements(&looped.body, &items)?;
            self.arrive(StatementOutcome::Next(looped.label), &items);
            items.retain(|&item| self.outcomes[item] == StatementOutcome::On);
            self.statements(&looped.step, &items)?;
            if let Some(condition) = &looped.after {
                items = self.split(condition, &items)?.0;
            }
            if waits && !items.is_empty() {
                let (group, turns) = self.turns.ok_or(Invalid::Together)?;
                let wrote = std::mem::take(&mut self.wrote);
                let passed = turns.pass(group, &mut self.memory, wrote);
                passed.map_err(|Over| Invalid::Together)?;
            }
        }
        self.arrive(StatementOutcome::Leave(looped.label), all);
        Ok(())
    }

    fn switch(&mut self, switch: &Switch, items: &[usize]) -> Outcome<()> {
        let mut entering = vec![Vec::new(); switch.cases.len()];
        for &item in items {
            let value = self.number(&switch.on, item)?;
            let chosen = switch
                .cases
                .iter()
                .position(|(case, _)| case.map(u64::from) == Some(value));
            let default = switch.cases.iter().position(|(case, _)| case.is_none());
            if let Some(case) = chosen.or(default) {
                entering[case].push(item);
            }
        }
        let mut inside: Vec<usize> = Vec::new();
        for ((_, body), entering) in switch.cases.iter().zip(entering) {
            inside.extend(entering);
            self.statements(body, &inside)?;
            inside.retain(|&item| self.outcomes[item] == StatementOutcome::On);
        }
        self.arrive(StatementOutcome::Leave(switch.label), items);
        Ok(())
    }

    fn split(&mut self, condition: &Condition, items: &[usize]) -> Outcome<(Vec<usize>, Vec<usize>)> {
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        for &item in items {
            match self.truth(condition, item)? {
                true => yes.push(item),
                false => no.push(item),
            }
        }
        Ok((yes, no))
    }

    fn truth(&mut self, condition: &Condition, item: usize) -> Outcome<bool> {
        Ok(match condition {
            Condition::Compare(relation, ty, left, right) => {
                let (left, right) = (self.number(left, item)?, self.number(right, item)?);
                compared(*relation, *ty, left, right)
            }
            Condition::Pointers(relation, left, right) => {
                let (left, right) = (self.pointer(left, item)?, self.pointer(right, item)?);
                if left.0 != right.0 {
                    return Err(Invalid::Bounds);
                }
                related(*relation, &left.1, &right.1)
            }
            Condition::Not(inner) => !self.truth(inner, item)?,
            Condition::And(left, right) => self.truth(left, item)? && self.truth(right, item)?,
            Condition::Or(left, right) => self.truth(left, item)? || self.truth(right, item)?,
        })
    }

    fn number(&mut self, expr: &Expr, item: usize) -> Outcome<u64> {
        Ok(match expr {
            Expr::Number(_, bits) => *bits,
            Expr::Variable(local) => self.local(*local, item),
            Expr::Parameter(number) => self.launch.scalars[*number],
            Expr::Item => item as u64,
            Expr::Group => item as u64 / u64::from(self.program.group),
            Expr::Binary(op, ty, left, right) => {
                let (left, right) = (self.number(left, item)?, self.number(right, item)?);
                computed(*op, *ty, left, right).ok_or(Invalid::Arithmetic)?
            }
            Expr::Cast(ty, inner) => {
                let bits = self.number(inner, item)?;
                let number = self.program.type_of(inner).number(bits);
                match ty {
                    Scalar::F32 => u64::from((number as f32).to_bits()),
                    _ => number as u64 & ty.ir().mask(),
                }
            }
            Expr::Choose(condition, then, otherwise) => match self.truth(condition, item)? {
                true => self.number(then, item)?,
                false => self.number(otherwise, item)?,
            },
            Expr::Load(pointer, index, _) => {
                let (array, at) = self.place(pointer, index, item)?;
                self.memory[array][at]
            }
            Expr::Step(local, up, after) => {
                let ty = self.program.type_of(expr);
                let old = self.local(*local, item);
                let op = if *up { Arithmetic::Add } else { Arithmetic::Sub };
                let new = computed(op, ty, old, ty.bits_of(1)).ok_or(Invalid::Arithmetic)?;
                self.locals[item][*local] = Cell::Number(new);
                if *after { new } else { old }
            }
        })
    }

    fn local(&self, local: usize, item: usize) -> u64 {
        match self.locals[item][local] {
            Cell::Number(bits) => bits,
            Cell::Pointer(..) => 0,
        }
    }

    fn pointer(&mut self, pointer: &Pointer, item: usize) -> Outcome<(usize, i64)> {
        Ok(match pointer {
            Pointer::Array(array) => (*array, 0),
            Pointer::Variable(local) => self.pointer_in(*local, item)?,
            Pointer::Moved(inner, index) => {
                let (array, at) = self.pointer(inner, item)?;
                let by = self.signed_number(index, item)?;
                (array, self.moved(array, at, by)?)
            }
            Pointer::Choose(condition, one, other) => match self.truth(condition, item)? {
                true => self.pointer(one, item)?,
                false => self.pointer(other, item)?,
            },
            Pointer::Across(_, to) => self.pointer(to, item)?,
            Pointer::Step(local, by, after) => {
                let (array, at) = self.pointer_in(*local, item)?;
                let moved = self.moved(array, at, *by)?;
                self.locals[item][*local] = Cell::Pointer(array, moved);
                (array, if *after { moved } else { at })
            }
        })
    }

    /// An offset that goes on by this many elements: inside the array, or right behind it.
    fn moved(&self, array: usize, at: i64, by: i64) -> Outcome<i64> {
        let moved = at.checked_add(by).ok_or(Invalid::Bounds)?;
        match u64::try_from(moved) {
            Ok(element) if element <= self.program.arrays[array].length => Ok(moved),
            _ => Err(Invalid::Bounds),
        }
    }

    fn pointer_in(&self, local: usize, item: usize) -> Outcome<(usize, i64)> {
        match self.locals[item][local] {
            Cell::Pointer(array, at) => Ok((array, at)),
            Cell::Number(_) => Err(Invalid::Bounds),
        }
    }

    fn signed_number(&mut self, expr: &Expr, item: usize) -> Outcome<i64> {
        let bits = self.number(expr, item)?;
        let number = self.program.type_of(expr).number(bits);
        i64::try_from(number).map_err(|_| Invalid::Bounds)
    }

    /// A buffer's number, and an element inside.
    fn place(&mut self, pointer: &Pointer, index: &Expr, item: usize) -> Outcome<(usize, usize)> {
        let (array, at) = self.pointer(pointer, item)?;
        let index = self.signed_number(index, item)?;
        let at = at.checked_add(index).ok_or(Invalid::Bounds)?;
        let array = self.launch.buffer(array);
        match usize::try_from(at) {
            Ok(at) if at < self.memory[array].len() => Ok((array, at)),
            _ => Err(Invalid::Bounds),
        }
    }
}

fn related<T: PartialOrd>(relation: Relation, left: &T, right: &T) -> bool {
    match relation {
        Relation::Less => left < right,
        Relation::LessEqual => left <= right,
        Relation::Greater => left > right,
        Relation::GreaterEqual => left >= right,
        Relation::Equal => left == right,
        Relation::NotEqual => left != right,
    }
}

fn float(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn compared(relation: Relation, ty: Scalar, left: u64, right: u64) -> bool {
    match ty {
        Scalar::F32 => related(relation, &float(left), &float(right)),
        _ => related(relation, &ty.number(left), &ty.number(right)),
    }
}

/// The result in the type's bits, if there is one.
fn computed(op: Arithmetic, ty: Scalar, left: u64, right: u64) -> Option<u64> {
    if ty == Scalar::F32 {
        let (left, right) = (float(left), float(right));
        let result = match op {
            Arithmetic::Add => left + right,
            Arithmetic::Sub => left - right,
            Arithmetic::Mul => left * right,
            _ => return None,
        };
        // Overflowing values soon make a NaN, and its bits depend on the device.
        return result.is_finite().then_some(u64::from(result.to_bits()));
    }
    let width = i128::from(ty.ir().bits());
    let (left, right) = (ty.number(left), ty.number(right));
    let exact = match op {
        Arithmetic::Add => left + right,
        Arithmetic::Sub => left - right,
        // Of 64 unsigned bits the low half of the product is right, whatever becomes of the rest.
        Arithmetic::Mul => left.wrapping_mul(right),
        Arithmetic::Div => left.checked_div(right)?,
        Arithmetic::Rem => left.checked_rem(right)?,
        Arithmetic::And => left & right,
        Arithmetic::Or => left | right,
        Arithmetic::Xor => left ^ right,
        Arithmetic::Shl | Arithmetic::Shr if right < 0 || right >= width => return None,
        Arithmetic::Shl => left << right,
        Arithmetic::Shr => left >> right,
    };
    let bits = exact as u64 & ty.ir().mask();
    let wraps = ty.number(bits) != exact;
    let may_wrap = !matches!(ty, Scalar::I32 | Scalar::I64);
    (may_wrap || !wraps).then_some(bits)
}
