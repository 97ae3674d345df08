//! Which values are the same for all work-items of a sub-group, work-group or launch that run together, or whatever lies in
//! memory.
//!
//! Optimistic: everything is uniform until proved otherwise, iterated to a fixed point. Values merged after a branch on a
//! divergent condition are divergent, and so are values that leave a loop which work-items leave at different times.

use cranelift_entity::EntitySet;

use crate::ir::effects::{Meets, Results};
use crate::ir::{Id, Kernel, Label, Op, OpKind, Place, PrefetchScope, Region, Value};

/// The values and the structures on which work-items of a sub-group part.
#[derive(Debug, Default)]
pub struct Divergence {
    values: EntitySet<Value>,
    labels: EntitySet<Label>,
}

/// Whose values are compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Among {
    SubGroup,
    WorkGroup,
    Launch,
}

impl Divergence {
    /// Of a whole kernel, for the work-items of a sub-group.
    pub fn of(kernel: &Kernel) -> Divergence {
        Divergence::among(kernel, Among::SubGroup)
    }

    /// Of a whole kernel, for the work-items of a work-group.
    pub fn of_work_group(kernel: &Kernel) -> Divergence {
        Divergence::among(kernel, Among::WorkGroup)
    }

    /// Of a whole kernel, for all work-items of a launch.
    pub fn of_launch(kernel: &Kernel) -> Divergence {
        Divergence::among(kernel, Among::Launch)
    }

    fn among(kernel: &Kernel, among: Among) -> Divergence {
        let mut walk = Walk {
            found: Divergence::default(),
            among,
            changed: true,
            scopes: Vec::new(),
        };
        while walk.changed {
            walk.changed = false;
            walk.region(&kernel.body, false);
        }
        walk.found
    }

    /// Whether those that are compared can have different values here.
    pub fn differs(&self, value: Value) -> bool {
        self.values.contains(value)
    }

    /// Whether they never part: all of them run the same operations.
    pub fn is_nowhere(&self) -> bool {
        self.labels.is_empty()
    }

    /// Whether they can leave this block, `if` or loop at different times or by different ways.
    pub fn parts(&self, label: Label) -> bool {
        self.labels.contains(label)
    }
}

struct Walk<'k> {
    found: Divergence,
    among: Among,
    changed: bool,
    /// The enclosing labels, with their results, and whether they were entered under a divergent condition.
    scopes: Vec<(&'k Op, Label, bool)>,
}

impl<'k> Walk<'k> {
    fn mark(&mut self, value: Value) {
        self.changed |= self.found.values.insert(value);
    }

    fn region(&mut self, region: &'k Region, differing: bool) {
        for op in &region.ops {
            self.op(op, differing);
        }
    }

    fn op(&mut self, op: &'k Op, differing: bool) {
        match &op.kind {
            OpKind::Block { label, body } => {
                self.scopes.push((op, *label, differing));
                self.region(body, differing);
                self.scopes.pop();
            }
            OpKind::If {
                label,
                cond,
                then,
                otherwise,
            } => {
                let parts = self.found.differs(*cond);
                if parts {
                    self.changed |= self.found.labels.insert(*label);
                }
                self.scopes.push((op, *label, differing));
                self.region(then, differing || parts);
                self.region(otherwise, differing || parts);
                self.scopes.pop();
            }
            OpKind::Loop {
                label,
                params,
                initial,
                body,
                ..
            } => {
                for (&param, &initial) in params.iter().zip(initial) {
                    if self.found.differs(initial) {
                        self.mark(param);
                    }
                }
                self.scopes.push((op, *label, differing));
                self.region(body, differing);
                self.scopes.pop();
            }
            OpKind::Break(label, values) => {
                let parts = self.leave(*label, differing);
                let scope = self.scopes.iter().rev().find(|(_, open, _)| open == label);
                if let Some((scope, ..)) = scope.copied() {
                    for (&result, &value) in scope.results.iter().zip(values) {
                        if parts || self.found.differs(value) {
                            self.mark(result);
                        }
                    }
                }
            }
            OpKind::Continue(label, values) => {
                let parts = self.parted_since(*label, differing);
                let scope = self.scopes.iter().rev().find(|(_, open, _)| open == label);
                if let Some((
                    Op {
                        kind: OpKind::Loop { params, .. },
                        ..
                    },
                    ..,
                )) = scope.copied()
                {
                    for (&param, &value) in params.iter().zip(values) {
                        // Two ways around with different values differ where work-items take both.
                        if self.found.differs(value) || (parts && value != param) {
                            self.mark(param);
                        }
                    }
                }
            }
            kind => {
                if self.may_differ(kind) {
                    for &result in &op.results {
                        self.mark(result);
                    }
                }
            }
        }
    }

    /// Whether those that are compared can get different results of an operation that all of them run.
    fn may_differ(&self, kind: &OpKind) -> bool {
        let effects = kind.effects();
        match (kind, effects.results, effects.meets) {
            (OpKind::Id(Id::Local(_) | Id::Lane), ..) => true,
            (OpKind::Id(Id::SubGroup | Id::SubGroupSize), ..) => self.among >= Among::WorkGroup,
            (OpKind::Id(Id::Group(_)), ..) => self.among == Among::Launch,
            // Another group has another result.
            (_, Results::Joint, Meets::WorkGroup) => self.among == Among::Launch,
            (_, Results::Joint, Meets::SubGroup(mask)) => {
                self.among >= Among::WorkGroup || mask.is_some_and(|mask| self.found.differs(mask))
            }
            (_, Results::Joint | Results::Any, _) => true,
            (_, Results::Own, _) => {
                let mut differs = false;
                kind.for_each_operand(|operand| differs |= self.found.differs(operand));
                differs
            }
        }
    }

    /// Notes that lanes leave `label` here; whether they part on the way.
    fn leave(&mut self, label: Label, differing: bool) -> bool {
        let parts = self.parted_since(label, differing);
        if parts {
            self.changed |= self.found.labels.insert(label);
        }
        parts || self.found.parts(label)
    }

    /// Whether lanes that run together at the entrance of `label` may not all come here.
    fn parted_since(&self, label: Label, differing: bool) -> bool {
        match self.scopes.iter().rev().position(|&(_, open, _)| open == label) {
            Some(outwards) => {
                let at = self.scopes.len() - 1 - outwards;
                let entered = self.scopes[at].2;
                (differing && !entered)
                    || self.scopes[at + 1..]
                        .iter()
                        .any(|&(_, inner, _)| self.found.parts(inner))
            }
            None => differing,
        }
    }
}

/// The first prefetch of a sub-group or work-group that its work-items may not all reach together.
pub fn parted_prefetch(kernel: &Kernel) -> Option<Place> {
    let mut asked = [false; 2];
    kernel.body.walk(&mut |op| {
        if let OpKind::Prefetch { scope, .. } = &op.kind
            && scope.is_joint()
        {
            asked[usize::from(*scope == PrefetchScope::WorkGroup)] = true;
        }
    });
    let mut found = None;
    for work_group in [false, true] {
        if asked[usize::from(work_group)] && found.is_none() {
            let among = match work_group {
                true => Among::WorkGroup,
                false => Among::SubGroup,
            };
            let divergence = Divergence::among(kernel, among);
            let mut search = Search {
                divergence: &divergence,
                work_group,
                returned: false,
                found: None,
            };
            search.region(&kernel.body, false);
            found = search.found;
        }
    }
    found
}

/// Looks for prefetches under conditions on which work-items part.
struct Search<'k> {
    divergence: &'k Divergence,
    work_group: bool,
    /// Some may have ended before.
    returned: bool,
    found: Option<Place>,
}

impl Search<'_> {
    fn region(&mut self, region: &Region, parted: bool) {
        for op in &region.ops {
            match &op.kind {
                OpKind::Return => self.returned |= parted,
                OpKind::Prefetch { scope, .. }
                    if scope.is_joint() && (*scope == PrefetchScope::WorkGroup) == self.work_group =>
                {
                    if (parted || self.returned) && self.found.is_none() {
                        self.found = Some(op.place);
                    }
                }
                kind => {
                    let parted = parted || kind.label().is_some_and(|label| self.divergence.parts(label));
                    let before = self.returned;
                    for inner in kind.regions() {
                        self.region(inner, parted);
                    }
                    // The next iteration runs without those that returned in this one.
                    if let OpKind::Loop { body, .. } = kind
                        && self.returned != before
                    {
                        self.region(body, parted);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{parse, verify};

    #[test]
    fn a_launch_whose_branches_know_only_its_parameters_never_parts() {
        let kernel = |condition: &str| {
            let text = format!(
                "hsir 1 kernel @k(%n: i32, %data: ptr.global i32[] align 4) {{ load @data %group = id.group.x
                %item = id.local.x %count = id.group_count.x %one = load i32 %data, @data
                %low = lt.u {condition}, %n if %low {{ %x = neg %n yield }} %y = neg %n return }}"
            );
            let kernel = parse(&text, "k.hsir").expect("a kernel");
            verify(&kernel).expect("it verifies");
            kernel
        };
        for (condition, launch, group) in [
            ("%count", true, true),
            ("%n", true, true),
            ("%group", false, true),
            ("%item", false, false),
            ("%one", false, false),
        ] {
            let kernel = kernel(condition);
            assert_eq!(Divergence::of_launch(&kernel).is_nowhere(), launch, "{condition}");
            assert_eq!(
                Divergence::of_work_group(&kernel).is_nowhere(),
                group,
                "{condition}"
            );
        }
    }

    #[test]
    fn a_vote_is_the_same_for_those_who_have_the_same_mask() {
        let text = "hsir 1 kernel @k(%n: i32) { %lane = id.lane %low = lt.u %lane, %n %m = vote ballot %low
            %all = vote any %low among %m %own = select %low, 1:i32, 2:i32 %part = vote any %low among %own
            %constant = vote any %low among 255:i32 %here = active %together = vote any %low among %here return }";
        let kernel = parse(text, "k.hsir").expect("a kernel");
        verify(&kernel).expect("it verifies");
        let (group, part) = (Divergence::of_work_group(&kernel), Divergence::of(&kernel));
        let mut differing = Vec::new();
        for op in &kernel.body.ops {
            for &result in &op.results {
                differing.push(part.differs(result));
                let asks = op.kind.effects().meets_sub_group();
                assert!(
                    !asks || group.differs(result),
                    "sub-groups have their own answers"
                );
            }
        }
        assert_eq!(
            differing,
            [true, true, false, false, true, true, false, true, true]
        );
    }
}
