//! Accesses through pointers: loops over them, narrow, wide and vector ones, references, comparisons, calls, atomics.

use std::fmt::Write as _;

use super::Weaver;
use super::pointers::Use;

impl Weaver<'_> {
    /// A loop over the words of a pointer.
    pub(super) fn looped(&mut self, counters: &[String], depth: u32) -> String {
        let made = self.pointer(Use::Read, counters);
        let last = made.words - 1;
        let bound = self.one(&["(unsigned)n", "(unsigned)k", "u", "(unsigned)z", "e0"]);
        let counter = format!("i{depth}");
        let text = &made.text;
        let pragma = match self.random.chance(60) {
            true => "\n#pragma unroll 1\n",
            false => "",
        };
        if self.random.chance(25) {
            self.features.insert("walking pointer");
            return format!(
                "{text} const unsigned* end = q + ({bound} & {last}u);{pragma} for (const unsigned* at = q; at != end; \
                 ++at) e0 = e0 * 31u + *at;"
            );
        }
        let mut inside = counters.to_vec();
        inside.push(counter.clone());
        self.features.insert("own loop");
        let also = match self.random.chance(45) {
            true => format!("{{ {} }}", self.inner(&inside, depth + 1)),
            false => String::new(),
        };
        let load = match self.random.below(4) {
            0 => format!("e0 = e0 * 31u + q[{counter} & {last}u];"),
            1 => format!("e0 = e0 * 31u + q[xc[{counter}] & {last}u];"),
            2 => format!("e1 = e1 * 31u + (ull)d[{counter}] + q[{counter}];"),
            _ => format!("e0 = e0 * 31u + q[{counter}];"),
        };
        format!(
            "{text}{pragma} for (unsigned {counter} = 0; {counter} < ({bound} & {last}u); {counter}++) {{ {load} {also} }}"
        )
    }

    /// What a word is read as: a mask for its index, and how many there are of it in a word or of words in it.
    fn element(&mut self) -> (&'static str, u64, u64) {
        *self.random.choose(&[
            ("unsigned", 1, 1),
            ("signed char", 4, 1),
            ("unsigned char", 4, 1),
            ("short", 2, 1),
            ("unsigned short", 2, 1),
            ("ull", 1, 2),
            ("int", 1, 1),
        ])
    }

    pub(super) fn read(&mut self, counters: &[String]) -> String {
        let made = self.pointer(Use::Read, counters);
        let (text, i) = (&made.text, self.index(counters));
        // Wider elements need an address that is aligned as they are.
        let aligned = made.aligned;
        let volatile = match self.random.chance(15) {
            true => {
                self.features.insert("volatile");
                "volatile "
            }
            false => "",
        };
        if aligned && self.random.chance(35) {
            self.features.insert("vector access");
            let mask = made.words / 4 - 1;
            return match self.random.below(3) {
                0 => format!(
                    "{text} uint4 w = ((const uint4*)q)[({i}) & {mask}u]; e0 = e0 * 31u + (w.x ^ w.y * 3u ^ w.z * 5u ^ w.w * 7u);"
                ),
                1 => format!(
                    "{text} int2 w = ((const int2*)q)[({i}) & {}u]; e0 = e0 * 31u + (unsigned)(w.x ^ w.y);",
                    made.words / 2 - 1
                ),
                _ => format!(
                    "{text} float4 w = ((const float4*)q)[({i}) & {mask}u]; e1 = e1 * 31u + bits(w.x) + bits(w.y) * 3u + \
                     bits(w.z) * 5u + bits(w.w);"
                ),
            };
        }
        let (ty, parts, words) = match self.element() {
            (_, _, 2) if !aligned => ("unsigned", 1, 1),
            other => other,
        };
        self.features.insert("narrow or wide access");
        let mask = made.words * parts / words - 1;
        format!("{text} e1 = e1 * 31u + (ull)((const {volatile}{ty}*)q)[({i}) & {mask}u];")
    }

    pub(super) fn write(&mut self, counters: &[String]) -> String {
        let made = self.pointer(Use::Write, counters);
        let (text, i) = (&made.text, self.index(counters));
        let aligned = made.aligned;
        let last = made.words - 1;
        match self.random.below(8) {
            0 => {
                self.features.insert("reference");
                format!("{text} unsigned& r0 = named(q, ({i}) & {last}u); r0 = r0 * 5u + 1u; e0 ^= r0;")
            }
            1 => {
                self.features.insert("reference");
                format!("{text} stepped(q[({i}) & {last}u], e0);")
            }
            2 if aligned => {
                self.features.insert("vector access");
                let mask = made.words / 4 - 1;
                format!("{text} ((uint4*)q)[({i}) & {mask}u] = make_uint4(e0, e0 ^ 5u, t, 7u);")
            }
            3 if aligned => {
                self.features.insert("vector access");
                let mask = made.words / 2 - 1;
                format!("{text} ((int2*)q)[({i}) & {mask}u] = make_int2((int)e0, -5);")
            }
            4 if aligned => {
                self.features.insert("structure");
                let mask = made.words / 4 - 1;
                format!(
                    "{text} Mixed& r0 = ((Mixed*)q)[({i}) & {mask}u]; r0.a += e0; r0.c = (unsigned short)(r0.c + 3); r0.d = \
                     (signed char)(r0.d - r0.e); r0.f ^= (int)r0.a; Mixed copy = r0; e0 += copy.c + (unsigned)copy.d;"
                )
            }
            5 => {
                self.features.insert("volatile");
                format!(
                    "{text} volatile unsigned* w0 = q; w0[({i}) & {last}u] = e0; e0 += w0[({i}) & {last}u];"
                )
            }
            _ => {
                let (ty, parts, words) = match self.element() {
                    (_, _, 2) if !aligned => ("unsigned", 1, 1),
                    other => other,
                };
                self.features.insert("narrow or wide access");
                let mask = made.words * parts / words - 1;
                let j = self.index(counters);
                format!(
                    "{text} (({ty}*)q)[({i}) & {mask}u] = ({ty})(e0 + 3u); e0 = e0 * 31u + q[({j}) & {last}u];"
                )
            }
        }
    }

    pub(super) fn compared(&mut self, counters: &[String]) -> String {
        let made = self.pointer(Use::Write, counters);
        self.features.insert("pointers compared");
        let (a, _) = self.two(Use::Write, counters);
        let (text, i) = (&made.text, self.index(counters));
        match self.random.below(4) {
            0 => format!("{text} e0 += q == {a} ? 2u : 3u;"),
            1 => {
                let c = self.condition(counters);
                format!(
                    "{text} unsigned* w0 = {c} ? q : (unsigned*)0; if (w0) e0 += w0[({i}) & 7u]; else e0 ^= 9u;"
                )
            }
            2 => format!(
                "{text} unsigned* w0 = q + (({i}) & 7u); e0 += w0 < q + 4 ? 5u : 6u; e0 += (unsigned)(w0 - q);"
            ),
            _ => format!("{text} e0 += (q != {a}) * 4u; e0 += __isShared(q) ? 1u : __isGlobal(q) ? 2u : 3u;"),
        }
    }

    pub(super) fn called(&mut self, counters: &[String]) -> String {
        let wanted = *self.random.choose(&[Use::Read, Use::Write]);
        let made = self.pointer(wanted, counters);
        self.features.insert("function that is not inlined");
        let (text, count) = (
            &made.text,
            format!("({}) & {}u", self.index(counters), made.words - 1),
        );
        match (wanted, self.random.below(4)) {
            (Use::Write, 0..2) => format!("{text} scale_in(q, {count}, e0 | 1u);"),
            (_, 0) => {
                self.features.insert("call through a pointer");
                let one = self.condition(counters);
                format!(
                    "{text} unsigned (*f)(const unsigned*, unsigned) = halved; if ({one}) f = sum_of; e0 = e0 * 31u + f(q, {count});"
                )
            }
            (_, 1) => {
                self.features.insert("recursion");
                format!("{text} e0 = e0 * 31u + halved(q, {count});")
            }
            (_, 2) => format!("{text} e0 = e0 * 31u + sum_of(q, {count});"),
            _ => format!("{text} View v; v.at = q; v.count = {count}; e0 = e0 * 31u + sum_of(v);"),
        }
    }

    /// A `switch` whose cases differ, which nvcc makes a jump through a table.
    pub(super) fn switched(&mut self, counters: &[String]) -> String {
        let made = self.pointer(Use::Write, counters);
        self.features.insert("jump through a table");
        let (text, i, last) = (&made.text, self.index(counters), made.words - 1);
        let mut cases = String::new();
        for case in 0..5 + self.random.below(4) {
            let by = self.random.below(1 << 16);
            let does = match self.random.below(6) {
                0 => format!("e0 = e0 * {by}u + q[({i}) & {last}u];"),
                1 => format!("q[e0 & {last}u] += {by}u;"),
                2 => format!("e0 ^= e0 >> {};", by & 31),
                3 => format!("if (e0 & {by}u) e0 += {by}u; else q[0] ^= e0;"),
                4 => format!("e0 = __popc(e0) * {by}u;"),
                _ => format!("for (unsigned j = 0; j < (e0 & 3u); j++) e0 = e0 * {by}u + q[j & {last}u];"),
            };
            let ends = if self.random.chance(80) { "break;" } else { "" };
            let _ = write!(cases, " case {case}: {does} {ends}");
        }
        format!("{text} switch (({i}) & 7u) {{{cases} default: e0 += 5u; }}")
    }

    pub(super) fn atomic(&mut self, counters: &[String]) -> String {
        let made = self.pointer(Use::Atomic, counters);
        self.features.insert("atomic");
        let (text, i, last) = (&made.text, self.index(counters), made.words - 1);
        let place = format!("q + (({i}) & {last}u)");
        let call = match self.random.below(9) {
            0 => format!("atomicAdd({place}, e0)"),
            1 => format!("(unsigned)atomicMax((int*)({place}), (int)e0)"),
            2 => format!("atomicMin({place}, e0)"),
            3 => format!("atomicExch({place}, e0)"),
            4 => format!("atomicCAS({place}, e0 & 3u, e0)"),
            5 => format!("atomicXor({place}, e0)"),
            6 => format!("atomicAnd({place}, e0 | 255u)"),
            7 => format!("atomicInc({place}, 77u)"),
            _ => format!("(unsigned)atomicSub((int*)({place}), 3)"),
        };
        match self.random.chance(60) {
            true => format!("{text} e0 = e0 * 31u + {call};"),
            false => format!("{text} {call}; e0 += q[0];"),
        }
    }
}
