//! The operations, a row each: [`table`](super::table) says what a row is. [`op`](super::op) makes the enumeration of them and
//! [`text`](super::text) their text form.

/// Hands the rows to a macro.
macro_rules! with_operations {
    ($make:ident) => {
        $make! {
            /// The kind of an operation.
            ///
            /// Terminators ([`OpKind::is_terminator`]) end a region and stand nowhere else.
            pub enum OpKind {
                // Pure: no effect, and the result depends on the operands alone (and on which work-item runs it).
                /// Who am I, and among how many. Result `I32`.
                Id(id: Id) = Pure [by_hand];
                /// The address of a shared or private array. Result `Ptr`.
                ArrayAddress(array: Array) = Pure ["array" array];
                /// One operand, same type out.
                Unary(op: UnaryOp, a: Value) = Pure [by_hand];
                /// Two operands of one type, same type out (a shift's count has the type of its value).
                Binary(op: BinaryOp, a: Value, b: Value) = Pure [by_hand];
                /// As an integer add, sub or mul, with the promise that the exact result, taken as signed and/or
                /// unsigned, fits. The functional engine reports a broken promise.
                NoWrap(op: NoWrapOp, wrap: Wrap, a: Value, b: Value) = Pure [by_hand];
                /// `a × b + c` rounded once.
                Fma(a: Value, b: Value, c: Value) = Pure ["fma" a b c];
                /// Two operands of one type, `Bool` out.
                Compare(op: CompareOp, a: Value, b: Value) = Pure [by_hand];
                /// `cond ? a : b`, evaluated without a branch.
                Select(cond: Value, a: Value, b: Value) = Pure ["select" cond a b];
                /// To another type; the result's type says which.
                Convert(op: ConvertOp, a: Value) = Pure [by_hand];
                /// A [`Unary`](OpKind::Unary), [`Binary`](OpKind::Binary), [`Fma`](OpKind::Fma), [`Compare`](OpKind::Compare) or
                /// [`Convert`](OpKind::Convert) of floats that rounds or flushes by a rule of its own, which is not
                /// [`FloatRule::EXACT`]. See [`FloatRule`] for why it is an operation of its own.
                Ruled(rule: FloatRule, plain: Box<OpKind>) = Pure [by_hand];
                /// `base + index × scale + offset` in bytes, wrapping at 64 bits. `index` is an `I64`.
                Address {
                    /// A pointer; the result points into the same space.
                    base: Value,
                    /// Counts elements.
                    index: Value,
                    /// Bytes an element.
                    scale: u32,
                    /// Further bytes.
                    offset: i64,
                } = Pure [by_hand "address"];

                // Memory.
                /// Reads `results.len()` (1, 2 or 4) consecutive values of one type, aligned to their total size.
                Load {
                    /// From here.
                    ptr: Value,
                    /// Which load of the source this is: unrolled copies share it.
                    id: LoadId,
                    /// The request to the caches.
                    cache: CacheUse,
                } = Effect(Effects::load(*ptr, *cache)) [by_hand "load"];
                /// Writes 1, 2 or 4 consecutive values of one type, aligned to their total size. No result.
                Store {
                    /// To here.
                    ptr: Value,
                    /// The values to write.
                    values: Vec<Value>,
                    /// The request to the caches.
                    cache: CacheUse,
                } = Effect(Effects::store(*ptr, *cache)) ["store" ptr values cache];
                /// Starts an asynchronous copy of `bytes` (4, 8 or 16) from global to shared memory, both aligned to
                /// that. Result: a `Token`. Neither end may be touched before a [`Wait`](OpKind::Wait) on the token.
                Copy {
                    /// In shared memory.
                    to: Value,
                    /// In global memory.
                    from: Value,
                    /// 4, 8 or 16.
                    bytes: u32,
                    /// Which load of the source this copy replaces.
                    id: LoadId,
                } = Effect(Effects { reads: Memory::At(*from), writes: Memory::At(*to), ..Effects::NONE })
                    ["copy" bytes "to" to "from" from id];
                /// The latest of several tokens: waiting for it waits for all. Result: a `Token`.
                Join(tokens: Vec<Value>) = Effect(Effects::NONE) ["join" tokens];
                /// Waits for a token's copy and for every earlier copy of the same work-item. No result.
                Wait(token: Value) = Effect(Effects { awaits: Awaits::Copies, ..Effects::NONE }) ["wait" token];
                /// A hint that `bytes` from `ptr` on, `count` times one after the other, will be wanted. Changes no result; one
                /// to L1 may fault out of bounds. No result.
                Prefetch {
                    /// From here: a global pointer, or a generic one to global memory.
                    ptr: Value,
                    /// How many bytes; every cache line they touch counts.
                    bytes: u32,
                    /// How many times as many, an `I64`, unsigned; once if there is none.
                    count: Option<Value>,
                    /// Where to.
                    hint: CacheHint,
                    /// Who chose the target.
                    source: HintSource,
                    /// The work-items that ask together, with the same pointer and count.
                    scope: PrefetchScope,
                    /// The load that profits, if the hint was derived from one.
                    id: Option<LoadId>,
                } = Effect(Effects { requests: Memory::At(*ptr), ..Effects::NONE }) [by_hand "prefetch"];
                /// All work-items of the group wait here for each other; shared and global memory are ordered.
                /// Asynchronous copies may remain in flight. No result.
                Barrier = Effect(Effects::barrier(Meets::WorkGroup)) ["barrier"];
                /// A [`Barrier`](OpKind::Barrier) at which all running work-items of the group vote on a `Bool`. Result: a `Bool` or an
                /// `I32`, the same for all.
                GroupVote(op: GroupVoteOp, value: Value) = Effect(Effects::barrier(Meets::WorkGroup)) ["groupvote" op value];

                // Structured operations, whose results are given by `Break`; and the jumps out of them.
                /// Runs `body` once.
                Block {
                    /// The label by which `Break` leaves it.
                    label: Label,
                    /// Its code.
                    body: Region,
                } = Structure [by_hand "block"];
                /// Runs one of two regions.
                If {
                    /// The label by which `Break` leaves it.
                    label: Label,
                    /// A `Bool`.
                    cond: Value,
                    /// Where `cond` is true.
                    then: Region,
                    /// Where it is false.
                    otherwise: Region,
                } = Structure [by_hand "if"];
                /// Runs `body` until something leaves it; `Continue` starts the next iteration with new values.
                Loop {
                    /// The label for `Break` and `Continue`.
                    label: Label,
                    /// Defined anew in each iteration; as many as `initial`.
                    params: Vec<Value>,
                    /// The params' values in the first iteration.
                    initial: Vec<Value>,
                    /// Its code.
                    body: Region,
                    /// The author's requests.
                    wishes: LoopWishes,
                } = Structure [by_hand "loop"];
                /// Leaves an enclosing block, `if` or loop, whose results become `values`.
                Break(label: Label, values: Vec<Value>) = Terminator [by_hand "yield" "break"];
                /// Starts the next iteration of an enclosing loop, whose params become `values`.
                Continue(label: Label, values: Vec<Value>) = Terminator [by_hand "continue"];
                /// Ends this work-item.
                Return = Terminator(Effects { ends: true, ..Effects::NONE }) ["return"];

                // Among work-items.
                /// Changes the value at `ptr` atomically. Its order and scope are the only ones it implies: a relaxed one orders
                /// nothing. Result: the old value; a store has none.
                Atomic {
                    /// The change.
                    op: AtomicOp,
                    /// A global, shared or generic pointer.
                    ptr: Value,
                    /// [`AtomicOp::operands`] values of one type, that of the result. [Some](AtomicOp::can_be_several) can be of 1, 2
                    /// or 4 consecutive values, aligned to their total size; then each is an operation of its own.
                    values: Vec<Value>,
                    /// The accesses that stay before and after.
                    order: MemoryOrder,
                    /// The work-items that it is for.
                    scope: MemoryScope,
                } = Effect(Effects::atomic(*op, *ptr, *order, *scope)) [by_hand "atomic"];
                /// Orders this work-item's accesses before and after it, as others see them. No result.
                Fence(order: MemoryOrder, scope: MemoryScope)
                    = Effect(Effects { orders: Some((*order, *scope)), ..Effects::NONE }) ["fence" order scope];

                // Of a party of the sub-group. A mask, an `I32`, names the party: bit 0 is the first work-item. Those that it
                // names and that have not ended do it together, each with the same mask and itself in it. They may have come to
                // different operations of the same kind. Without a mask the party is the whole sub-group: all of it run the same
                // operation, and none has ended.
                /// The value of another work-item of the party; `by` is an `I32`, unsigned, less than 32. Result: of the
                /// value's type.
                Shuffle {
                    /// The lane that it comes from.
                    op: ShuffleOp,
                    /// Each one's value.
                    value: Value,
                    /// A number, a distance, or bits.
                    by: Value,
                    /// Who takes part; the whole sub-group if there is none.
                    mask: Option<Value>,
                } = Effect(Effects::exchange(*mask, Results::Any)) ["shuffle" op value by mask];
                /// A vote on a `Bool` among the work-items of the mask, which comes last. Result: a `Bool` or an `I32`.
                Vote(op: VoteOp, value: Value, mask: Option<Value>)
                    = Effect(Effects::exchange(*mask, Results::Joint)) ["vote" op value mask];
                /// A reduction of the values, `I32`, of the mask's work-items. Result: an `I32`, the same for all of them.
                Reduce(op: ReduceOp, value: Value, mask: Option<Value>)
                    = Effect(Effects::exchange(*mask, Results::Joint)) ["reduce" op value mask];

                /// Some of the work-group's work-items wait here for each other: a sub-group, a part of it, or several
                /// sub-groups. Shared and global memory are ordered among them. No result.
                Meet(meeting: Meeting) = Effect(Effects::barrier(meeting.meets())) [by_hand "meet"];
                /// Writes a line of text for people, once for each work-item. No result.
                Print {
                    /// The text, with places for the values: see [`line`](super::line).
                    text: String,
                    /// As many as there are places.
                    values: Vec<Value>,
                } = Effect(Effects { shows: true, ..Effects::NONE }) [by_hand "print"];
                /// Ends the launch with an error: the kernel found that something is wrong.
                Trap = Terminator(Effects { ends: true, shows: true, ..Effects::NONE }) ["trap"];
                /// Consecutive launches in a stream may overlap: states that the next may begin, or waits for the one before. No access
                /// to global memory moves across a [`Dependency::Wait`], whatever is known of that memory. No result.
                Depend(dependency: Dependency) = Effect(dependency.effects()) ["depend" dependency];
                /// The mask of work-items of the sub-group that run this operation together: the one itself, and which others is
                /// left to the device. Not pure: it is neither repeated nor moved nor removed with another. Result: an `I32`.
                Active = Effect(Effects::exchange(None, Results::Any)) ["active"];
                /// An instruction that is carried as text: see [`Opaque`]. It is neither repeated nor moved nor removed. Results: those
                /// that it makes.
                Opaque(what: Opaque, values: OpaqueOperands) = Effect(what.effects()) ["opaque" what values];
            }
        }
    };
}

pub(super) use with_operations;
