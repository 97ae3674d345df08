//! `if`, loops, blocks, `&&` and `||`, and the ways out.

use std::marker::PhantomData;

use super::arithmetic::{bit_and, bit_or};
use super::state::{is_cheap, recorder};
use super::tree::{Body, Latch, Node, TargetId};
use super::{At, Recorded, Values, Variable, Wishes, literal};
use crate::ir::{NoWrapOp, Op, OpKind};

/// The most operations that the right side of `&&` may have to run without a branch.
const CHEAP: usize = 8;

/// An `if` that has begun.
#[derive(Debug)]
pub struct Branch<V> {
    at: At,
    cond: Recorded<bool>,
    /// Gets the value of the side that ran.
    result: Variable<V>,
    /// Where the first side is kept while the second is recorded.
    number: usize,
}

impl<V> Clone for Branch<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Branch<V> {}

/// Begins `if cond {`.
pub fn begin_if<V: Values>(at: At, cond: Recorded<bool>) -> Branch<V> {
    let result = Variable::declare("");
    let number = recorder(|recorder| {
        recorder.begin();
        recorder.target()
    });
    Branch {
        at,
        cond,
        result,
        number,
    }
}

/// The value of the side that ends here.
pub fn yield_if<V: Values>(branch: Branch<V>, value: V) {
    branch.result.write(value);
}

/// `} else {`
pub fn begin_else<V: Values>(branch: Branch<V>) {
    recorder(|recorder| {
        let then = recorder.end();
        recorder.sides.insert(branch.number, then);
        recorder.begin();
    });
}

/// The end of the last side; the value of the one that ran.
pub fn end_if<V: Values>(branch: Branch<V>) -> V {
    recorder(|recorder| {
        let last = recorder.end();
        let (then, otherwise) = match recorder.sides.remove(&branch.number) {
            Some(then) => (then, last),
            None => (last, Body::default()),
        };
        let place = recorder.place(branch.at);
        recorder.push(Node::If {
            cond: branch.cond.value,
            then,
            otherwise,
            place,
        });
    });
    branch.result.read()
}

/// A loop, block or function body that has begun. `C` counts its iterations, if anything does.
#[derive(Debug)]
pub struct ScopeHandle<V, C = ()> {
    pub(super) at: At,
    pub(super) target: TargetId,
    /// Gets the value that the scope is left with.
    result: Variable<V>,
    /// The counter of this iteration.
    pub(super) counter: Option<C>,
    values: PhantomData<fn() -> V>,
}

impl<V, C: Copy> Clone for ScopeHandle<V, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V, C: Copy> Copy for ScopeHandle<V, C> {}

impl<V: Values, C> ScopeHandle<V, C> {
    /// Begins a scope; the operations recorded next are its body.
    pub(super) fn begin(at: At) -> ScopeHandle<V, C> {
        let result = Variable::declare("");
        let target = recorder(|recorder| {
            recorder.begin();
            recorder.target()
        });
        ScopeHandle {
            at,
            target,
            result,
            counter: None,
            values: PhantomData,
        }
    }
}

/// Begins `'a: {`.
pub fn begin_block<V: Values>(at: At) -> ScopeHandle<V> {
    ScopeHandle::begin(at)
}

/// The value at a block's end.
pub fn yield_block<V: Values>(scope: ScopeHandle<V>, value: V) {
    scope.result.write(value);
}

/// The end of a block; the value that it was left with.
pub fn end_block<V: Values>(scope: ScopeHandle<V>) -> V {
    recorder(|recorder| {
        let body = recorder.end();
        let place = recorder.place(scope.at);
        recorder.push(Node::Block {
            target: scope.target,
            body,
            place,
        });
    });
    scope.result.read()
}

/// Begins `loop {` or `while`.
pub fn begin_loop<V: Values>(at: At, name: &str, wishes: Wishes) -> ScopeHandle<V> {
    let scope: ScopeHandle<V> = ScopeHandle::begin(at);
    recorder(|recorder| recorder.note_loop(scope.target, name, wishes.into_loop_wishes()));
    scope
}

/// `while cond`: leaves the loop where `cond` is false.
pub fn go_on_if<C: Copy>(at: At, scope: ScopeHandle<(), C>, cond: Recorded<bool>) {
    recorder(|recorder| {
        let place = recorder.place(at);
        let otherwise = Body {
            nodes: vec![Node::Leave {
                target: scope.target,
                place,
            }],
            ..Body::default()
        };
        recorder.push(Node::If {
            cond: cond.value,
            then: Body::default(),
            otherwise,
            place,
        });
    });
}

/// The end of a loop; the value that it was left with.
pub fn end_loop<V: Values, C: Copy>(scope: ScopeHandle<V, C>) -> V {
    advance(scope.at, scope.target);
    recorder(|recorder| {
        recorder.latches.remove(&scope.target);
        let (name, wishes) = recorder.loop_notes(scope.target);
        let body = recorder.end();
        let place = recorder.place(scope.at);
        recorder.push(Node::Loop {
            target: scope.target,
            body,
            place,
            name,
            wishes,
        });
    });
    scope.result.read()
}

/// `break` with a value, or `return` from a device function.
pub fn leave<V: Values, C: Copy>(at: At, scope: ScopeHandle<V, C>, value: V) {
    scope.result.write(value);
    recorder(|recorder| {
        let place = recorder.place(at);
        recorder.push(Node::Leave {
            target: scope.target,
            place,
        });
    });
}

/// `continue`
pub fn next_iteration<V: Values, C: Copy>(at: At, scope: ScopeHandle<V, C>) {
    advance(at, scope.target);
    recorder(|recorder| {
        let place = recorder.place(at);
        recorder.push(Node::Next {
            target: scope.target,
            place,
        });
    });
}

/// Steps the counter of a loop that has one.
fn advance(at: At, target: TargetId) {
    let latch = recorder(|recorder| recorder.latches.get(&target).copied());
    if let Some(Latch { counter, step, wrap }) = latch {
        recorder(|recorder| {
            let now = recorder.read(counter);
            let next = recorder.build(at, |b| b.no_wrap(NoWrapOp::Add, wrap, now, step));
            recorder.write(counter, next);
        });
    }
}

/// `return` from a kernel.
pub fn end_work_item(at: At) {
    recorder(|recorder| {
        let place = recorder.place(at);
        recorder.push(Node::Return { place });
    });
}

/// `&&` or `||` whose right side is being recorded.
#[derive(Clone, Copy, Debug)]
pub struct Lazy {
    at: At,
    left: Recorded<bool>,
    is_and: bool,
}

/// Begins `left &&`.
pub fn begin_and(at: At, left: Recorded<bool>) -> Lazy {
    recorder(|recorder| recorder.begin());
    Lazy {
        at,
        left,
        is_and: true,
    }
}

/// Begins `left ||`.
pub fn begin_or(at: At, left: Recorded<bool>) -> Lazy {
    recorder(|recorder| recorder.begin());
    Lazy {
        at,
        left,
        is_and: false,
    }
}

/// The end of the right side: the value of the whole.
///
/// A right side that is cheap and without effect runs in any case, which saves the branch.
pub fn end_lazy(lazy: Lazy, right: Recorded<bool>) -> Recorded<bool> {
    let Lazy { at, left, is_and } = lazy;
    let body = recorder(|recorder| recorder.end());
    if is_free(&body) {
        recorder(|recorder| recorder.splice(body.nodes.into_iter().map(without_promise).collect()));
        return if is_and {
            bit_and(at, left, right)
        } else {
            bit_or(at, left, right)
        };
    }
    let result: Variable<Recorded<bool>> = Variable::declare("");
    let decided: Recorded<bool> = literal(!is_and);
    let writing = |mut body: Body, value: Recorded<bool>| {
        body.nodes.push(Node::Write {
            variable: result.first,
            value: value.value,
        });
        body.assigned.insert(result.first);
        body
    };
    let (long, short) = (writing(body, right), writing(Body::default(), decided));
    let (then, otherwise) = if is_and { (long, short) } else { (short, long) };
    recorder(|recorder| {
        let place = recorder.place(at);
        recorder.push(Node::If {
            cond: left.value,
            then,
            otherwise,
            place,
        });
    });
    result.read()
}

fn is_free(body: &Body) -> bool {
    body.nodes.len() <= CHEAP
        && body.nodes.iter().all(|node| match node {
            Node::Op(op) => is_cheap(op),
            Node::Read { .. } => true,
            _ => false,
        })
}

/// An operation that now also runs where its operands were not checked cannot promise anything about them.
fn without_promise(node: Node) -> Node {
    match node {
        Node::Op(Op {
            kind: OpKind::NoWrap(op, _, a, b),
            results,
            place,
        }) => Node::Op(Op::new(OpKind::Binary(op.into(), a, b), results, place)),
        other => other,
    }
}
