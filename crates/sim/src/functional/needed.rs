//! Which values a kernel's way depends on: the branches that it takes, and the addresses that it accesses.
//!
//! These are addresses, conditions, awaited tokens, and the values from which they are computed, through memory too. The rest
//! of a kernel's computation, most of its arithmetic, need not be carried out by those who time a kernel or count its accesses.
//! A count of its steps needs only the branches, and the accesses that decide them.
//!
//! A [choice] is the exception among the branches: `if sum > 0 { 1 / sum } else { 0 }` behind a loop would make all that the
//! loop computes needed, and decides no more than which few instructions a work-item runs once. Its condition is needed only if
//! a result is; otherwise the first region is taken.
//!
//! [choice]: choices

use std::collections::HashMap;

use cranelift_entity::SecondaryMap;

use super::matrix::instruction::Matrix;
use crate::ir::carried::Carried;
use crate::ir::effects::Access;
use crate::ir::{Kernel, Label, Op, OpKind, Opaque, OpaqueOperands, Region, Space, Value};

/// What a run has to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Its branches and the addresses of its accesses.
    Addresses,
    /// Its branches alone.
    Branches,
}

/// How much of a step has to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// All of it.
    All,
    /// An access, but not for its data: only whether it may be made.
    Access,
    /// Nothing.
    Nothing,
}

/// A kernel's operations, and how values go from one to another besides.
#[derive(Debug)]
pub(crate) struct Flow<'k> {
    pub kernel: &'k Kernel,
    /// All but those of control flow.
    pub ops: Vec<&'k Op>,
    /// Each first value may take the value of the second one.
    pub moves: Vec<(Value, Value)>,
    /// The values that branches and guards ask for.
    pub decides: Vec<Value>,
}

impl<'k> Flow<'k> {
    /// That of a verified kernel.
    pub(crate) fn of(kernel: &'k Kernel) -> Flow<'k> {
        let mut flow = Flow {
            kernel,
            ops: Vec::new(),
            moves: Vec::new(),
            decides: Vec::new(),
        };
        let choices = choices(kernel);
        flow.region(&kernel.body, &choices, &mut Vec::new());
        flow
    }

    /// A branch on this value, in a kernel with these choices.
    pub(crate) fn branch(&mut self, cond: Value, choices: &Choices) {
        match choices.get(&cond) {
            Some(results) => self.moves.extend(results.iter().map(|&result| (result, cond))),
            None => self.decides.push(cond),
        }
    }

    /// Within `scopes`: their labels, with the values that a break gives, and those that a continue does.
    fn region(
        &mut self,
        region: &'k Region,
        choices: &Choices,
        scopes: &mut Vec<(Label, &'k [Value], &'k [Value])>,
    ) {
        for op in &region.ops {
            let (label, params, bodies) = match &op.kind {
                OpKind::Block { label, body } => (*label, &[][..], [Some(body), None]),
                OpKind::Loop {
                    label,
                    params,
                    initial,
                    body,
                    ..
                } => {
                    self.moves(params, initial);
                    (*label, &params[..], [Some(body), None])
                }
                OpKind::If {
                    label,
                    cond,
                    then,
                    otherwise,
                } => {
                    self.branch(*cond, choices);
                    (*label, &[][..], [Some(then), Some(otherwise)])
                }
                OpKind::Break(label, values) => {
                    let scope = scopes.iter().rfind(|scope| scope.0 == *label);
                    self.moves(scope.map_or(&[], |scope| scope.1), values);
                    continue;
                }
                OpKind::Continue(label, values) => {
                    let scope = scopes.iter().rfind(|scope| scope.0 == *label);
                    self.moves(scope.map_or(&[], |scope| scope.2), values);
                    continue;
                }
                OpKind::Return | OpKind::Trap => continue,
                _ => {
                    self.ops.push(op);
                    continue;
                }
            };
            scopes.push((label, &op.results, params));
            for body in bodies.into_iter().flatten() {
                self.region(body, choices, scopes);
            }
            scopes.pop();
        }
    }

    fn moves(&mut self, to: &[Value], from: &[Value]) {
        self.moves.extend(to.iter().copied().zip(from.iter().copied()));
    }
}

/// The conditions of a kernel's choices, and what each one's branches result in.
pub(crate) type Choices = HashMap<Value, Vec<Value>>;

/// The conditions on which a kernel branches only outside of all loops, and only to compute: no region has an access, a loop,
/// a way out of the branch or another effect.
pub(crate) fn choices(kernel: &Kernel) -> Choices {
    let mut choices = Choices::new();
    let mut decisive = Vec::new();
    find_choices(&kernel.body, false, &mut choices, &mut decisive);
    for cond in decisive {
        choices.remove(&cond);
    }
    choices
}

fn find_choices(region: &Region, in_loop: bool, choices: &mut Choices, decisive: &mut Vec<Value>) {
    for op in &region.ops {
        if let OpKind::If {
            label,
            cond,
            then,
            otherwise,
        } = &op.kind
        {
            match !in_loop && computes(then, *label) && computes(otherwise, *label) {
                true => choices.entry(*cond).or_default().extend(&op.results),
                false => decisive.push(*cond),
            }
        }
        let in_loop = in_loop || matches!(op.kind, OpKind::Loop { .. });
        for inner in op.kind.regions() {
            find_choices(inner, in_loop, choices, decisive);
        }
    }
}

/// Whether a region of the branch with this label has no effect but its results.
fn computes(region: &Region, label: Label) -> bool {
    region.ops.iter().all(|op| match &op.kind {
        OpKind::If {
            label: inner,
            then,
            otherwise,
            ..
        } => computes(then, *inner) && computes(otherwise, *inner),
        OpKind::Break(to, _) => *to == label,
        kind => kind.is_pure(),
    })
}

/// The needed values, and whether writes to memory are needed.
#[derive(Debug)]
pub(crate) struct Needed {
    wanted: Wanted,
    values: SecondaryMap<Value, bool>,
    /// By global, shared and private memory; see [`index`].
    memory: [bool; 3],
}

impl Needed {
    /// Follows the values that what is wanted depends on back to their definitions.
    pub(crate) fn of(flow: &Flow<'_>, wanted: Wanted) -> Needed {
        let mut search = Search {
            flow,
            needed: Needed {
                wanted,
                values: SecondaryMap::new(),
                memory: [false; 3],
            },
            sources: SecondaryMap::new(),
            open: Vec::new(),
        };
        for &op in &flow.ops {
            for &result in &op.results {
                search.sources[result].push(Source::Op(op));
            }
        }
        for &(to, from) in &flow.moves {
            search.sources[to].push(Source::Value(from));
        }
        flow.decides.iter().for_each(|&value| search.need(value));
        search.close();
        search.needed
    }

    /// Whether a value is needed.
    pub(crate) fn has(&self, value: Value) -> bool {
        self.values[value]
    }

    /// Whether an operation is carried out, or its addresses are wanted.
    fn carries_out(&self, kernel: &Kernel, op: &Op) -> bool {
        self.wanted == Wanted::Addresses || self.of_op(kernel, op) != Need::Nothing
    }

    /// How much of an operation is needed.
    pub(crate) fn of_op(&self, kernel: &Kernel, op: &Op) -> Need {
        let data = match op.kind {
            OpKind::Load { .. } => op.results.iter().any(|&result| self.has(result)),
            OpKind::Store { ptr, .. } => self.holds(kernel.ty(ptr).space()),
            OpKind::Copy { .. } => self.holds(Some(Space::Shared)),
            OpKind::Wait(_) if !self.holds(Some(Space::Shared)) => return Need::Nothing,
            OpKind::Opaque(ref what, _) if is_whole(what) => return Need::All,
            // A matrix that is stored where others read it.
            OpKind::Opaque(ref what, ref given)
                if written(what, given).is_some_and(|space| self.holds(Some(space))) =>
            {
                return Need::All;
            }
            // Most cannot be run; what they make is wanted or not.
            OpKind::Opaque(..) if op.results.iter().all(|&result| !self.has(result)) => return Need::Nothing,
            // Not read in timing mode.
            OpKind::Print { .. } => return Need::Nothing,
            OpKind::Atomic { ptr, .. } if self.wanted == Wanted::Branches => {
                self.holds(kernel.ty(ptr).space()) || op.results.iter().any(|&result| self.has(result))
            }
            ref kind => {
                let effects = kind.effects();
                // An exchange or an atomic operation may fail, whatever its values are.
                let all = effects.meets()
                    || effects.access == Access::Atomic
                    || op.results.is_empty()
                    || op.results.iter().any(|&result| self.has(result));
                return if all { Need::All } else { Need::Nothing };
            }
        };
        match self.wanted {
            _ if data => Need::All,
            Wanted::Addresses => Need::Access,
            Wanted::Branches => Need::Nothing,
        }
    }

    /// Whether an iteration of an innermost loop accesses memory, as far as it is carried out.
    pub(crate) fn accesses_in_loops(&self, kernel: &Kernel) -> bool {
        let mut found = false;
        kernel.body.walk(&mut |op| {
            if let OpKind::Loop { body, .. } = &op.kind {
                let (mut is_innermost, mut accesses) = (true, false);
                body.walk(&mut |op| {
                    is_innermost &= !matches!(op.kind, OpKind::Loop { .. });
                    let has_pointers = op.kind.effects().pointers().next().is_some();
                    accesses |= has_pointers && self.of_op(kernel, op) != Need::Nothing;
                });
                found |= is_innermost && accesses;
            }
        });
        found
    }

    /// Whether writes to a memory are needed.
    fn holds(&self, space: Option<Space>) -> bool {
        match space.and_then(index) {
            Some(index) => self.memory[index],
            None => self.memory.contains(&true),
        }
    }
}

/// Whether a carried instruction is always carried out: an operation on 16 bytes, which is atomic, or one of a barrier with
/// phases.
fn is_whole(what: &Opaque) -> bool {
    matches!(*what.does, Carried::Phase(_) | Carried::Quad(_))
}

/// The move of a matrix that a carried instruction is.
fn moved(what: &Opaque, given: &OpaqueOperands) -> Option<Matrix> {
    Matrix::of(&what.does, what.makes.len(), given.0.len()).filter(|matrix| matrix.moves().is_some())
}

/// The memory that it writes.
fn written(what: &Opaque, given: &OpaqueOperands) -> Option<Space> {
    let (space, writes) = moved(what, given)?.moves()?;
    writes.then_some(space)
}

/// Where in [`Needed::memory`] a memory is; generic pointers may lead to any.
fn index(space: Space) -> Option<usize> {
    match space {
        Space::Global => Some(0),
        Space::Shared => Some(1),
        Space::Private => Some(2),
        Space::Generic => None,
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
enum Source<'p> {
    Op(&'p Op),
    Value(Value),
}

struct Search<'p> {
    flow: &'p Flow<'p>,
    needed: Needed,
    /// Of each value, all that may give it.
    sources: SecondaryMap<Value, Vec<Source<'p>>>,
    /// Needed values whose sources were not looked at yet.
    open: Vec<Value>,
}

impl<'p> Search<'p> {
    fn need(&mut self, value: Value) {
        if !std::mem::replace(&mut self.needed.values[value], true) {
            self.open.push(value);
        }
    }

    /// What an operation needs to be carried out, whatever is made of its data.
    fn need_operands(&mut self, op: &Op) {
        match op.kind {
            OpKind::Wait(token) => self.need(token),
            OpKind::Opaque(ref what, ref given) if is_whole(what) => {
                given.0.iter().for_each(|&value| self.need(value));
            }
            OpKind::Opaque(ref what, ref given) => {
                let operands = moved(what, given)
                    .into_iter()
                    .flat_map(|own| own.address_operands().collect::<Vec<_>>());
                operands
                    .filter_map(|operand| given.0.get(operand))
                    .for_each(|&value| self.need(value));
            }
            // It fails where this is not below 32, or the size of the sub-group.
            OpKind::Shuffle { by, .. } => self.need(by),
            _ => {}
        }
        // They fail where a pointer leads to no memory, or a mask does not name who runs them.
        let pointers = op.kind.effects().pointers();
        pointers.chain(op.kind.mask()).for_each(|value| self.need(value));
    }

    fn close(&mut self) {
        loop {
            while let Some(value) = self.open.pop() {
                for source in self.sources[value].clone() {
                    match source {
                        Source::Value(from) => self.need(from),
                        Source::Op(op) => self.need_result_of(op),
                    }
                }
            }
            for &op in &self.flow.ops {
                if self.needed.carries_out(self.flow.kernel, op) {
                    self.need_operands(op);
                }
                // What is written to a needed memory.
                if let OpKind::Store { ptr, values, .. } | OpKind::Atomic { ptr, values, .. } = &op.kind
                    && self.needed.holds(self.flow.kernel.ty(*ptr).space())
                {
                    values.iter().for_each(|&value| self.need(value));
                }
                if let OpKind::Opaque(what, given) = &op.kind
                    && written(what, given).is_some_and(|space| self.needed.holds(Some(space)))
                {
                    op.kind.for_each_operand(|operand| self.need(operand));
                }
                if let OpKind::Copy { from, .. } = op.kind
                    && self.needed.holds(Some(Space::Shared))
                {
                    self.need_memory(from);
                }
            }
            if self.open.is_empty() {
                return;
            }
        }
    }

    fn need_result_of(&mut self, op: &Op) {
        match op.kind {
            OpKind::Load { ptr, .. } | OpKind::Atomic { ptr, .. } => self.need_memory(ptr),
            // Its operands are needed whether its result is or not.
            OpKind::Opaque(ref what, ref given) if is_whole(what) => self.need_memory(given.0[0]),
            // Matrices that are loaded.
            OpKind::Opaque(ref what, ref given) if moved(what, given).is_some() => {
                if let Some((space, false)) = moved(what, given).and_then(|matrix| matrix.moves()) {
                    self.need_space(Some(space));
                }
                op.kind.for_each_operand(|operand| self.need(operand));
            }
            // Its factors lie in shared memory.
            OpKind::Opaque(ref what, _) if what.does.is_of_warp_group() => {
                self.needed.memory[1] = true;
                op.kind.for_each_operand(|operand| self.need(operand));
            }
            // Its token; its data are another matter.
            OpKind::Copy { .. } => {}
            _ => op.kind.for_each_operand(|operand| self.need(operand)),
        }
    }

    /// The memory at a pointer is needed, and so is every write to it.
    fn need_memory(&mut self, ptr: Value) {
        if self.is_read_only(ptr, &mut Vec::new()) {
            return;
        }
        self.need_space(self.flow.kernel.ty(ptr).space());
    }

    fn need_space(&mut self, space: Option<Space>) {
        match space.and_then(index) {
            Some(index) => self.needed.memory[index] = true,
            None => self.needed.memory = [true; 3],
        }
    }

    /// Whether a pointer surely leads into parameters that nothing writes.
    fn is_read_only(&self, ptr: Value, seen: &mut Vec<Value>) -> bool {
        if seen.contains(&ptr) {
            return true;
        }
        seen.push(ptr);
        let params = &self.flow.kernel.params;
        if let Some(param) = params.iter().find(|param| param.value == ptr) {
            return param.facts.is_some_and(|facts| facts.read_only);
        }
        let sources = &self.sources[ptr];
        let leads_there = |source: &Source| match source {
            Source::Value(from) => self.is_read_only(*from, seen),
            Source::Op(op) => match op.kind {
                OpKind::Address { base, .. } => self.is_read_only(base, seen),
                _ => false,
            },
        };
        !sources.is_empty() && sources.iter().all(leads_there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is needed of the operations of a kernel that counts to a number out of shared memory.
    fn needs(body: &str) -> Vec<(String, Need)> {
        needs_of(body, Wanted::Addresses)
    }

    fn needs_of(body: &str, wanted: Wanted) -> Vec<(String, Need)> {
        let text = format!(
            "hsir 1
            kernel @counts(%given: i32, %out: ptr.global i32[32:i64] align 4 unaliased) {{
              shared @tile: i32[256] align 16
              load @many
              %lane = id.local.x
              %wide = extend.u %lane to i64
              %tile = array @tile
              %word = address %tile + %wide * 4
              %row = address %tile + %wide * 16
              {body}
              %last = loop (%j = 0:i32) -> i32 {{
                %done = le.s %many, %j
                if %done {{ break %j }}
                %next = add %j, 1:i32
                continue %next
              }}
              %to = address %out + %wide * 4
              store %to, %last
              return
            }}"
        );
        let kernel = crate::ir::read(&text, "test.hsir").unwrap_or_else(|error| panic!("{error}"));
        let flow = Flow::of(&kernel);
        let needed = Needed::of(&flow, wanted);
        let ops = flow.ops.iter();
        ops.filter_map(|op| {
            let what = match &op.kind {
                OpKind::Store { ptr, .. } => format!("store {:?}", kernel.ty(*ptr).space()),
                OpKind::Opaque(what, _) => what.name().split('.').next().unwrap_or_default().to_owned(),
                OpKind::Convert(crate::ir::ConvertOp::Truncate, _) => "truncate".to_owned(),
                _ => return None,
            };
            Some((what, needed.of_op(&kernel, op)))
        })
        .collect()
    }

    fn need_of(needs: &[(String, Need)], what: &str) -> Need {
        let found = needs.iter().find(|(name, _)| name == what);
        found.unwrap_or_else(|| panic!("{what} is not in {needs:?}")).1
    }

    /// Control flow that follows from a matrix follows from the memory that it is loaded from.
    #[test]
    fn what_a_matrix_is_loaded_from_is_needed() {
        let needs = needs(
            "store %word, %given
            barrier
            %many = opaque \"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {=0}, [@0]\" reads unordered settled (i32) (%row)",
        );
        assert_eq!(need_of(&needs, "ldmatrix"), Need::All);
        assert_eq!(need_of(&needs, "store Some(Shared)"), Need::All);
        // Nothing follows from what is stored in the end.
        assert_eq!(need_of(&needs, "store Some(Global)"), Need::Access);
    }

    /// And what a matrix that is stored there is made of.
    #[test]
    fn what_is_stored_as_a_matrix_is_needed() {
        let needs = needs(
            "%half = truncate %given to i16
            %made = extend.u %half to i32
            opaque \"stmatrix.sync.aligned.m8n8.x1.shared.b16 [@0], {@1}\" anything unordered settled () (%row, %made)
            barrier
            %many = load i32 %word, @many",
        );
        assert_eq!(need_of(&needs, "stmatrix"), Need::All);
        assert_eq!(need_of(&needs, "truncate"), Need::All);
    }

    /// Barriers with phases are always carried out: those who wait for them would wait for ever.
    #[test]
    fn arrivals_are_needed() {
        let needs = needs(
            "opaque \"mbarrier.init.shared.b64 [@0], 32\" anything () (%tile)
            %many = load i32 %word, @many",
        );
        assert_eq!(need_of(&needs, "mbarrier"), Need::All);
    }

    /// A branch that only chooses between values makes its condition needed where they are needed, and only there.
    #[test]
    fn a_choice_is_needed_for_what_is_chosen() {
        let choice = |then: &str, store: &str| {
            needs(&format!(
                "store %word, %given
                barrier
                %many = load i32 %word, @many
                %half = truncate %given to i16
                %small = lt.s %half, 4:i16
                %first = address %out + %wide * 4
                %chosen = if %small -> i32 {{ {then} }} else {{ yield 2:i32 }}
                %index = extend.u %chosen to i64
                %there = address %out + %index * 4
                {store}"
            ))
        };
        let of_condition = |needs: &[(String, Need)]| need_of(needs, "truncate");
        assert_eq!(
            of_condition(&choice("yield 1:i32", "store %first, %chosen")),
            Need::Nothing
        );
        assert_eq!(
            of_condition(&choice("yield 1:i32", "store %there, %given")),
            Need::All
        );
        let stores = choice("store %first, %given yield 1:i32", "store %first, %chosen");
        assert_eq!(of_condition(&stores), Need::All);
        let returns = choice("return", "store %first, %chosen");
        assert_eq!(of_condition(&returns), Need::All);
    }

    /// In a loop it decides how long each iteration takes.
    #[test]
    fn a_choice_in_a_loop_is_always_needed() {
        let needs = needs(
            "store %word, %given
            barrier
            %many = load i32 %word, @many
            %sum = loop (%i = 0:i32, %s = 0:i32) -> i32 {
              %half = truncate %s to i16
              %small = lt.s %half, 4:i16
              %more = if %small -> i32 { yield 1:i32 } else { yield 2:i32 }
              %s.2 = add %s, %more
              %i.2 = add %i, 1:i32
              %full = le.s %many, %i.2
              if %full { break %s.2 }
              continue %i.2, %s.2
            }
            %first = address %out + %wide * 4
            store %first, %sum",
        );
        assert_eq!(need_of(&needs, "truncate"), Need::All);
    }
    /// Where only branches are wanted, accesses that decide none are left out.
    #[test]
    fn what_decides_no_branch_is_left_out() {
        let body = |chosen: &str| {
            format!(
                "store %word, %given
                barrier
                %many = load i32 %word, @many
                %half = truncate %given to i16
                %other = extend.u %half to i64
                %there = address %out + %other * 4
                store %there, {chosen}"
            )
        };
        let needs = needs_of(&body("%given"), Wanted::Branches);
        assert_eq!(need_of(&needs, "store Some(Shared)"), Need::All);
        assert_eq!(need_of(&needs, "store Some(Global)"), Need::Nothing);
        assert_eq!(need_of(&needs, "truncate"), Need::Nothing);
    }
}
