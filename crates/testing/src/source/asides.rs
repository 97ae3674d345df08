//! Statements that only CUDA C has, woven into a random program: generic pointers in all forms, conversions, unusual floats,
//! narrow and vector accesses, unions, volatile, atomics, calls, references.
//!
//! An aside reads the program's variables and writes only its own, so that the interpreter's opinion of the program stays
//! true; what it computes is judged by hardware alone. Every aside is defined for each launch: an index is masked, a row
//! belongs to one work-item, NaNs lose their payload before they become numbers.
//!
//! ```text
//! xc, xs        what all read: any numbers; floats of all widths, with NaN, infinities, zeros, subnormals, and extremes
//! rg, rs, rl    16 words of each work-item, in global, shared and local memory; an aside's pointer leads into any of them
//! e0, e1, e2, e3    results, which go to `xo` at the end
//! ```

use std::collections::BTreeSet;

use super::tree::{ArrayParameter, Aside, Content, Local, Program, Scalar, Statement};
use crate::Random;

/// Elements of the arrays that all work-items read; and of a work-item's row.
const LENGTH: u64 = 64;
const ROW: u64 = 16;
/// Asides of a program at most.
const MOST: u32 = 5;

/// What the asides of all programs of a file share.
pub const PRELUDE: &str = "\
typedef unsigned long long ull;
struct View { unsigned* at; unsigned count; };
struct Pair { unsigned* one; unsigned* other; };
struct Mixed { unsigned a; float b; unsigned short c; signed char d; unsigned char e; int f; };
union Word { unsigned u; float f; unsigned short h[2]; signed char b[4]; };
union Wide { ull u; double d; unsigned w[2]; float f[2]; short h[4]; };
static __device__ __forceinline__ unsigned bits(float x) { return x != x ? 0x7fc00000u : __float_as_uint(x); }
static __device__ __forceinline__ ull bits(double x) {
  return x != x ? 0x7ff8000000000000ull : (ull)__double_as_longlong(x);
}
static __device__ __forceinline__ float of_half(unsigned short x) {
  float y; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x)); return y;
}
static __device__ __forceinline__ unsigned half_bits(unsigned short x) { return (x & 0x7fff) > 0x7c00 ? 0x7fff : x; }
static __device__ __forceinline__ unsigned to_half(float x) {
  unsigned short y; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y) : \"f\"(x)); return half_bits(y);
}
static __device__ __forceinline__ unsigned to_half(double x) {
  unsigned short y; asm(\"cvt.rn.f16.f64 %0, %1;\" : \"=h\"(y) : \"d\"(x)); return half_bits(y);
}
static __device__ __forceinline__ unsigned to_half(int x) {
  unsigned short y; asm(\"cvt.rn.f16.s32 %0, %1;\" : \"=h\"(y) : \"r\"(x)); return half_bits(y);
}
static __device__ __noinline__ unsigned sum_of(const unsigned* at, unsigned count) {
  unsigned sum = 0;
  for (unsigned i = 0; i < count; i++) sum = sum * 31u + at[i];
  return sum;
}
static __device__ __noinline__ unsigned sum_of(View v) {
  unsigned sum = 1;
  for (unsigned i = 0; i < v.count; i++) sum = sum * 33u + v.at[i];
  return sum;
}
static __device__ __noinline__ void scale_in(unsigned* at, unsigned count, unsigned by) {
  for (unsigned i = 0; i < count; i++) at[i] = at[i] * by + 1u;
}
static __device__ __forceinline__ unsigned* picked(Pair of, bool one) { return one ? of.one : of.other; }
static __device__ __noinline__ unsigned* picked_far(Pair of, bool one) { return one ? of.one : of.other; }
template <class T> static __device__ __noinline__ void stepped(T& number, T by) { number = number * 3 + by; }
template <class T> static __device__ __forceinline__ T& named(T* at, unsigned i) { return at[i]; }
";

/// Weaves asides into a program.
pub fn weave(program: &mut Program, random: &mut Random) {
    let mut weaver = Weaver::new(program, random);
    let mut body = std::mem::take(&mut program.body);
    weaver.inside(&mut body, &[], 0);
    while weaver.written < 2 {
        let at = weaver.random.below(body.len() as u64 + 1) as usize;
        let aside = weaver.aside(&["t".to_owned()], 0);
        body.insert(at, Statement::Aside(aside));
    }
    body.push(Statement::Aside(weaver.results()));
    program.body = body;
    program.aside = Some(Aside {
        declarations: weaver.declarations(program.group),
        features: weaver.features.iter().copied().collect(),
    });
    let items = program.items();
    let array = |name, element, length, written, content| ArrayParameter {
        name,
        element,
        length,
        written,
        volatile: false,
        content,
    };
    program.arrays.extend([
        array("xc", Scalar::U32, LENGTH, false, Content::Any),
        array("xs", Scalar::U64, LENGTH, false, Content::Special),
        array("xg", Scalar::U32, items * ROW, true, Content::Any),
        array("xo", Scalar::U64, items * 4, true, Content::Zeros),
    ]);
}

/// A row that a pointer may lead into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    Global,
    Shared,
    Local,
    /// Read alone.
    Constant,
}

/// What an aside may do through a pointer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Write,
    /// No row of local memory.
    Atomic,
}

/// A pointer `q` to words: its declaration, and how many there are.
struct Made {
    text: String,
    words: u64,
    /// It is aligned as the row is.
    aligned: bool,
}

struct Weaver<'r> {
    random: &'r mut Random,
    /// Whether there are rows in shared and local memory, and a word of shared memory that keeps a pointer.
    shared: bool,
    local: bool,
    kept: bool,
    integers: Vec<usize>,
    features: BTreeSet<&'static str>,
    written: u32,
}

impl<'r> Weaver<'r> {
    fn new(program: &Program, random: &'r mut Random) -> Weaver<'r> {
        let locals = program.locals.iter().enumerate();
        let integers = locals.filter(|(_, local)| matches!(local, Local::Number(ty) if *ty != Scalar::F32));
        let integers = integers.map(|(number, _)| number).collect();
        let (shared, local) = (random.chance(65), random.chance(55));
        Weaver {
            random,
            shared,
            local,
            kept: false,
            integers,
            features: BTreeSet::new(),
            written: 0,
        }
    }

    /// Weaves asides into the bodies of loops, with the counters of those around.
    fn inside(&mut self, statements: &mut Vec<Statement>, counters: &[String], depth: u32) {
        for statement in statements.iter_mut() {
            match statement {
                Statement::If(_, then, otherwise) => {
                    self.inside(then, counters, depth);
                    self.inside(otherwise, counters, depth);
                }
                Statement::Block(_, body) => self.inside(body, counters, depth),
                Statement::Switch(switch) => {
                    let bodies = switch.cases.iter_mut();
                    bodies.for_each(|(_, body)| self.inside(body, counters, depth));
                }
                Statement::Loop(looped) => {
                    let counted = looped.step.iter().filter_map(|step| match step {
                        Statement::Assign(local, _) if self.integers.contains(local) => Some(*local),
                        _ => None,
                    });
                    let own = counted.map(|local| format!("(unsigned)v{local}"));
                    let all: Vec<String> = counters.iter().cloned().chain(own).collect();
                    self.inside(&mut looped.body, &all, depth + 1);
                }
                _ => {}
            }
        }
        if depth > 0 && self.written < MOST && self.random.chance(40) {
            let at = self.random.below(statements.len() as u64 + 1) as usize;
            let around = match counters.is_empty() {
                true => vec!["t".to_owned()],
                false => counters.to_vec(),
            };
            let aside = self.aside(&around, depth);
            statements.insert(at, Statement::Aside(aside));
        }
    }

    /// What stands in front of the body.
    fn declarations(&self, group: u32) -> String {
        let mut text = "  unsigned e0 = t; ull e1 = 0; float e2 = 1.0f; double e3 = 0.5;\n\
                        \x20 unsigned* rg = xg + t * 16u;\n"
            .to_owned();
        let words = u64::from(group) * ROW;
        if self.shared {
            text += &format!("  __shared__ __align__(64) unsigned rows[{words}];\n");
            text += "  unsigned* rs = rows + threadIdx.x * 16u;\n\
                     \x20 for (unsigned i = 0; i < 16u; i++) rs[i] = xc[(t + i) & 63u];\n";
        }
        if self.local {
            text += "  __align__(64) unsigned rl[16];\n\
                     \x20 for (unsigned i = 0; i < 16u; i++) rl[i] = xc[(3u * t + i) & 63u];\n";
        }
        if self.kept {
            text += &format!("  __shared__ unsigned* kept[{group}];\n");
        }
        text
    }

    /// What stands behind it.
    fn results(&self) -> String {
        let mut text = "{".to_owned();
        if self.shared {
            text += " for (unsigned i = 0; i < 16u; i++) e1 = e1 * 31u + rs[i];";
        }
        if self.local {
            text += " for (unsigned i = 0; i < 16u; i++) e1 = e1 * 37u + rl[i];";
        }
        text + " xo[t * 4u] = e0; xo[t * 4u + 1u] = e1; xo[t * 4u + 2u] = bits(e2); xo[t * 4u + 3u] = bits(e3); }"
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.random.below(of.len() as u64) as usize]
    }

    /// Any number: mostly a counter.
    fn index(&mut self, counters: &[String]) -> String {
        let counter = match self.random.chance(75) {
            true => counters[counters.len() - 1].clone(),
            false => self.random.choose(counters).clone(),
        };
        match self.random.below(10) {
            0..5 => counter,
            5 => format!("({counter} * 3u + t)"),
            6 => format!("({counter} + {}u)", self.random.below(9)),
            7 => format!("b[({counter}) & 63u]"),
            8 => {
                let local = *self.random.choose(&self.integers.clone());
                format!("((unsigned)v{local} ^ t)")
            }
            _ => "e0".to_owned(),
        }
    }

    fn condition(&mut self, counters: &[String]) -> String {
        let index = self.index(counters);
        match self.random.below(8) {
            0 | 1 => "(u & 1u)".to_owned(),
            2 => "(flag > 1)".to_owned(),
            3 => "(t & 1u)".to_owned(),
            4 => "(z > 4)".to_owned(),
            5 => format!("m[({index}) & 63u]"),
            6 => "(e0 & 1u)".to_owned(),
            _ => format!("(({index}) & 2u)"),
        }
    }

    fn rows(&self, wanted: Use) -> Vec<Row> {
        let mut rows = vec![Row::Global];
        rows.extend(self.shared.then_some(Row::Shared));
        rows.extend((self.local && wanted != Use::Atomic).then_some(Row::Local));
        rows.extend((wanted == Use::Read).then_some(Row::Constant));
        rows
    }

    /// A row's first word.
    fn row(&mut self, row: Row, counters: &[String]) -> String {
        match row {
            Row::Global => "rg".to_owned(),
            Row::Shared => "rs".to_owned(),
            Row::Local => "rl".to_owned(),
            Row::Constant => {
                let index = self.index(counters);
                format!("((unsigned*)xc + (({index}) & 3u) * 16u)")
            }
        }
    }

    /// Two rows, mostly of different memory.
    fn two(&mut self, wanted: Use, counters: &[String]) -> (String, String) {
        let rows = self.rows(wanted);
        let one = *self.random.choose(&rows);
        let others: Vec<Row> = rows.iter().copied().filter(|row| *row != one).collect();
        let other = self.random.any_of(&others).copied().unwrap_or(one);
        (self.row(one, counters), self.row(other, counters))
    }

    /// A pointer `q` that leads into one of several rows.
    fn pointer(&mut self, wanted: Use, counters: &[String]) -> Made {
        let (a, b) = self.two(wanted, counters);
        let (c, i) = (self.condition(counters), self.index(counters));
        let mask = format!("ull k0 = {c} ? ~0ull : 0ull;");
        let made = |text, words, aligned| Made { text, words, aligned };
        let whole = |text: String| made(text, ROW, true);
        let (name, pointer) = match self.random.below(18) {
            0 | 1 => ("one row", whole(format!("unsigned* q = {a};"))),
            2 | 3 => ("?:", whole(format!("unsigned* q = {c} ? {a} : {b};"))),
            4 => ("if", whole(format!("unsigned* q = {a}; if ({c}) q = {b};"))),
            5 => {
                let (other, _) = self.two(wanted, counters);
                let d = self.condition(counters);
                (
                    "?: ?:",
                    whole(format!("unsigned* q = {c} ? {a} : {d} ? {b} : {other};")),
                )
            }
            6 => {
                let text = format!("unsigned* table[2] = {{{a}, {b}}}; unsigned* q = table[({i}) & 1u];");
                ("table", whole(text))
            }
            7 => {
                let text =
                    format!("unsigned* q = (unsigned*)((ull)({c} ? {a} : {b}) | ((({i}) & 1u) * 32u));");
                ("or", made(text, ROW / 2, true))
            }
            8 => {
                let text =
                    format!("{mask} unsigned* q = (unsigned*)(((ull)({a}) & k0) | ((ull)({b}) & ~k0));");
                ("and or", whole(text))
            }
            9 => {
                let text = format!(
                    "{mask} unsigned* q = (unsigned*)((ull)({a}) ^ (((ull)({a}) ^ (ull)({b})) & k0));"
                );
                ("xor", whole(text))
            }
            10 => {
                let text = format!(
                    "unsigned* q = (unsigned*)((ull)({a}) + ({c} ? (ull)({b}) - (ull)({a}) : 0ull));"
                );
                ("difference", whole(text))
            }
            11 | 12 => {
                let pick = self.one(&["picked", "picked_far"]);
                let text =
                    format!("Pair two; two.one = {a}; two.other = {b}; unsigned* q = {pick}(two, {c});");
                ("struct", whole(text))
            }
            13 if self.shared => {
                self.kept = true;
                let text = format!(
                    "*(unsigned* volatile*)&kept[threadIdx.x] = {c} ? {a} : {b}; \
                     unsigned* q = *(unsigned* volatile*)&kept[threadIdx.x];"
                );
                ("kept in memory", whole(text))
            }
            14 => {
                let by = self.random.below(9);
                let text = format!("unsigned* q = ({c} ? {a} : {b}) + {by}u;");
                ("moved", made(text, ROW / 2, false))
            }
            15 => {
                let text = format!(
                    "ull k1 = (ull)({a}), k2 = (ull)({b}); unsigned k3 = {c} ? 0x3210u : 0x7654u; unsigned* q = \
                     (unsigned*)((ull)__byte_perm((unsigned)k1, (unsigned)k2, k3) | \
                     (ull)__byte_perm((unsigned)(k1 >> 32), (unsigned)(k2 >> 32), k3) << 32);"
                );
                ("prmt", whole(text))
            }
            16 => {
                let text =
                    format!("unsigned* q; asm(\"mov.b64 %0, %1;\" : \"=l\"(q) : \"l\"({c} ? {a} : {b}));");
                ("asm", whole(text))
            }
            _ => {
                let text = format!("unsigned* q = {a}; if ({c}) {{ q = {b}; e0 += 1u; }}");
                ("if", whole(text))
            }
        };
        self.features.insert(name);
        pointer
    }

    /// One aside: a block.
    fn aside(&mut self, counters: &[String], depth: u32) -> String {
        self.written += 1;
        format!("{{ {} }}", self.inner(counters, depth))
    }

    fn inner(&mut self, counters: &[String], depth: u32) -> String {
        match self.random.below(100) {
            0..24 if depth < 2 => self.looped(counters, depth),
            0..34 => self.read(counters),
            34..44 => self.write(counters),
            44..50 => self.compared(counters),
            50..57 => self.called(counters),
            57..63 => self.atomic(counters),
            63..68 => self.punned(counters),
            68..84 => self.converted(counters),
            84..93 => self.floats(counters),
            _ => self.whole_numbers(counters),
        }
    }

    /// A loop over the words of a pointer.
    fn looped(&mut self, counters: &[String], depth: u32) -> String {
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

    fn read(&mut self, counters: &[String]) -> String {
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

    fn write(&mut self, counters: &[String]) -> String {
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

    fn compared(&mut self, counters: &[String]) -> String {
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

    fn called(&mut self, counters: &[String]) -> String {
        let wanted = *self.random.choose(&[Use::Read, Use::Write]);
        let made = self.pointer(wanted, counters);
        self.features.insert("function that is not inlined");
        let (text, i, last) = (&made.text, self.index(counters), made.words - 1);
        match (wanted, self.random.chance(50)) {
            (Use::Write, true) => format!("{text} scale_in(q, ({i}) & {last}u, e0 | 1u);"),
            (_, true) => format!("{text} e0 = e0 * 31u + sum_of(q, ({i}) & {last}u);"),
            (_, false) => {
                format!("{text} View v; v.at = q; v.count = ({i}) & {last}u; e0 = e0 * 31u + sum_of(v);")
            }
        }
    }

    fn atomic(&mut self, counters: &[String]) -> String {
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

    fn punned(&mut self, counters: &[String]) -> String {
        self.features.insert("union");
        let (i, j) = (self.index(counters), self.index(counters));
        match self.random.below(3) {
            0 => format!(
                "Word w; w.u = xc[({i}) & 63u]; w.h[({j}) & 1u] += 3; w.b[({i}) & 3u] -= 1; e0 = e0 * 31u + w.u;"
            ),
            1 => format!(
                "Wide w; w.u = xs[({i}) & 63u]; e1 = e1 * 31u + bits(w.f[({j}) & 1u]) + bits(w.d) + (ull)w.h[({i}) & 3u];"
            ),
            _ => format!(
                "Wide w; w.w[0] = e0; w.w[1] = xc[({i}) & 63u]; w.h[({j}) & 3u] = (short)t; e1 = e1 * 31u + w.u;"
            ),
        }
    }

    /// A number of some type out of the unusual ones.
    fn unusual(&mut self, ty: &str, counters: &[String]) -> String {
        let i = self.index(counters);
        let parts = match ty {
            "float" | "int" | "unsigned" => 2,
            "short" | "unsigned short" => 4,
            "signed char" | "unsigned char" => 8,
            _ => 1,
        };
        format!("((const {ty}*)xs)[({i}) & {}u]", LENGTH * parts - 1)
    }

    fn converted(&mut self, counters: &[String]) -> String {
        self.features.insert("conversion");
        let (ty, way) = match self.random.below(10) {
            0..4 => ("float", self.one(FROM_FLOAT)),
            4..7 => ("double", self.one(FROM_DOUBLE)),
            7 => {
                let i = self.index(counters);
                let way = self.one(FROM_FLOAT).replace('X', "x0");
                return format!(
                    "float x0 = of_half(((const unsigned short*)xs)[({i}) & 255u]); e1 = e1 * 31u + (ull)({way});"
                );
            }
            _ => {
                let ty = self.one(&[
                    "signed char",
                    "unsigned char",
                    "short",
                    "unsigned short",
                    "int",
                    "unsigned",
                    "long long",
                    "ull",
                ]);
                let way = match ty {
                    "int" => self.one(FROM_INT),
                    "unsigned" => self.one(FROM_UNSIGNED),
                    "long long" => self.one(FROM_LONG),
                    "ull" => self.one(FROM_UNSIGNED_LONG),
                    _ => self.one(&["bits((float)X)", "bits((double)X)", "to_half((int)X)"]),
                };
                (ty, way)
            }
        };
        let number = self.unusual(ty, counters);
        format!(
            "{ty} x0 = {number}; e1 = e1 * 31u + (ull)({});",
            way.replace('X', "x0")
        )
    }

    fn floats(&mut self, counters: &[String]) -> String {
        self.features.insert("arithmetic on unusual floats");
        let (ty, way) = match self.random.chance(60) {
            true => ("float", self.one(FLOATS)),
            false => ("double", self.one(DOUBLES)),
        };
        let (x, y) = (self.unusual(ty, counters), self.unusual(ty, counters));
        let way = way.replace('X', "x0").replace('Y', "y0");
        // With contraction such sums are left to the assembler, and an entry that has one gets no plan.
        let sums = match self.random.chance(25) {
            true => " e2 = e2 * 0.5f + x[e0 & 63u]; e3 = e3 * 0.25 + e2;",
            false => "",
        };
        format!("{ty} x0 = {x}, y0 = {y}; e1 = e1 * 31u + (ull)({way});{sums}")
    }

    fn whole_numbers(&mut self, counters: &[String]) -> String {
        self.features.insert("integer intrinsic");
        let (x, y) = match self.random.chance(50) {
            true => (
                self.unusual("unsigned", counters),
                self.unusual("unsigned", counters),
            ),
            false => ("xc[e0 & 63u]".to_owned(), self.index(counters)),
        };
        let way = self.one(INTEGERS).replace('X', "x0").replace('Y', "y0");
        format!("unsigned x0 = {x}, y0 = {y}; e1 = e1 * 31u + (ull)({way});")
    }
}

const FROM_FLOAT: &[&str] = &[
    "(signed char)X",
    "(unsigned char)X",
    "(short)X",
    "(unsigned short)X",
    "(int)X",
    "(unsigned)X",
    "(long long)X",
    "(ull)X",
    "__float2int_rn(X)",
    "__float2int_ru(X)",
    "__float2int_rd(X)",
    "__float2uint_rn(X)",
    "__float2uint_ru(X)",
    "__float2uint_rd(X)",
    "__float2ll_rn(X)",
    "__float2ll_ru(X)",
    "__float2ll_rd(X)",
    "__float2ull_rn(X)",
    "__float2ull_ru(X)",
    "__float2ull_rd(X)",
    "bits((double)X)",
    "to_half(X)",
    "bits(rintf(X))",
    "bits(truncf(X))",
    "bits(floorf(X))",
    "bits(ceilf(X))",
    "bits(roundf(X))",
    "bits(__saturatef(X))",
];

const FROM_DOUBLE: &[&str] = &[
    "(signed char)X",
    "(unsigned char)X",
    "(short)X",
    "(unsigned short)X",
    "(int)X",
    "(unsigned)X",
    "(long long)X",
    "(ull)X",
    "__double2int_rn(X)",
    "__double2int_ru(X)",
    "__double2int_rd(X)",
    "__double2uint_rn(X)",
    "__double2uint_ru(X)",
    "__double2uint_rd(X)",
    "__double2ll_rn(X)",
    "__double2ll_ru(X)",
    "__double2ll_rd(X)",
    "__double2ull_rn(X)",
    "__double2ull_ru(X)",
    "__double2ull_rd(X)",
    "bits(__double2float_rn(X))",
    "bits(__double2float_rz(X))",
    "bits(__double2float_ru(X))",
    "bits(__double2float_rd(X))",
    "to_half(X)",
    "bits(rint(X))",
    "bits(trunc(X))",
    "bits(floor(X))",
    "bits(ceil(X))",
];

const FROM_INT: &[&str] = &[
    "bits(__int2float_rn(X))",
    "bits(__int2float_rz(X))",
    "bits(__int2float_ru(X))",
    "bits(__int2float_rd(X))",
    "bits((double)X)",
    "to_half(X)",
];

const FROM_UNSIGNED: &[&str] = &[
    "bits(__uint2float_rn(X))",
    "bits(__uint2float_rz(X))",
    "bits(__uint2float_ru(X))",
    "bits(__uint2float_rd(X))",
    "bits((double)X)",
];

const FROM_LONG: &[&str] = &[
    "bits(__ll2float_rn(X))",
    "bits(__ll2float_rz(X))",
    "bits(__ll2float_ru(X))",
    "bits(__ll2float_rd(X))",
    "bits(__ll2double_rn(X))",
    "bits(__ll2double_rz(X))",
    "bits(__ll2double_ru(X))",
    "bits(__ll2double_rd(X))",
];

const FROM_UNSIGNED_LONG: &[&str] = &[
    "bits(__ull2float_rn(X))",
    "bits(__ull2float_rz(X))",
    "bits(__ull2float_ru(X))",
    "bits(__ull2float_rd(X))",
    "bits(__ull2double_rn(X))",
    "bits(__ull2double_rz(X))",
    "bits(__ull2double_ru(X))",
    "bits(__ull2double_rd(X))",
];

const FLOATS: &[&str] = &[
    "bits(fminf(X, Y))",
    "bits(fmaxf(X, Y))",
    "bits(fabsf(X))",
    "bits(-X)",
    "bits(copysignf(X, Y))",
    "bits(fmaf(X, Y, 1.0f))",
    "bits(X + Y)",
    "bits(X - Y)",
    "bits(X * Y)",
    "bits(__fadd_rz(X, Y))",
    "bits(__fadd_ru(X, Y))",
    "bits(__fadd_rd(X, Y))",
    "bits(__fmul_rz(X, Y))",
    "bits(__fmul_ru(X, Y))",
    "bits(__fmaf_rd(X, Y, X))",
    "bits(__fsqrt_rn(X))",
    "bits(__fdiv_rn(X, Y))",
    "bits(__frcp_rn(X))",
    "(X < Y) + 2 * (X == Y) + 4 * (X > Y) + 8 * (X != Y) + 16 * !(X <= Y) + 32 * !(X >= Y)",
    "(isnan(X) ? 1 : 0) + (isinf(Y) ? 2 : 0) + (signbit(X) ? 4 : 0)",
];

const DOUBLES: &[&str] = &[
    "bits(fmin(X, Y))",
    "bits(fmax(X, Y))",
    "bits(fabs(X))",
    "bits(-X)",
    "bits(copysign(X, Y))",
    "bits(fma(X, Y, 1.0))",
    "bits(X + Y)",
    "bits(X - Y)",
    "bits(X * Y)",
    "bits(__dadd_rz(X, Y))",
    "bits(__dadd_ru(X, Y))",
    "bits(__dmul_rd(X, Y))",
    "bits(__fma_rz(X, Y, X))",
    "bits(__dsqrt_rn(X))",
    "bits(__ddiv_rn(X, Y))",
    "(X < Y) + 2 * (X == Y) + 4 * (X > Y) + 8 * (X != Y) + 16 * !(X <= Y) + 32 * !(X >= Y)",
];

const INTEGERS: &[&str] = &[
    "__umulhi(X, Y)",
    "__mulhi((int)X, (int)Y)",
    "__popc(X)",
    "__clz(X)",
    "__brev(X)",
    "__ffs(X)",
    "__byte_perm(X, Y, e0)",
    "__funnelshift_l(X, Y, e0)",
    "__funnelshift_r(X, Y, e0)",
    "__funnelshift_lc(X, Y, e0)",
    "min((int)X, (int)Y)",
    "max(X, Y)",
    "(int)X >> (Y & 31u)",
    "X << (Y & 31u)",
    "X / (Y | 1u)",
    "X % (Y | 1u)",
    "(int)X / (int)((Y & 7u) + 1u)",
    "(int)X % (int)((Y & 7u) + 2u)",
    "(e1 ^ X) >> (Y & 63u)",
    "(long long)(e1 * X) >> (Y & 63u)",
    "(e1 ^ X) / ((ull)Y | 1ull)",
    "__umul64hi(e1, ~(ull)X)",
    "__mul64hi((long long)e1, ~(long long)X)",
    "__popcll(e1 ^ X)",
    "__clzll((long long)(e1 ^ X))",
    "__sad((int)X, (int)Y, 3u)",
    "__usad(X, Y, 3u)",
    "__dp4a((int)X, (int)Y, 5)",
    "__dp4a(X, Y, 5u)",
    "__mul24((int)X, (int)Y)",
    "__umul24(X, Y)",
    "__hadd((int)X, (int)Y)",
    "__uhadd(X, Y)",
    "__rhadd((int)X, (int)Y)",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{cuda, generate, interpret, launches};

    #[test]
    fn asides_are_written_and_change_nothing_for_the_interpreter() {
        let mut written = 0;
        for seed in 0..60 {
            let plain = generate::program(seed);
            let mut program = plain.clone();
            weave(&mut program, &mut Random::new(seed));
            let text = cuda(&program);
            written += text.matches("e1 = e1").count().min(1);
            let (tried, _) = launches(&mut Random::new(seed), &program, None, 2);
            for outcome in tried {
                let mut launch = outcome.launch.clone();
                launch.contents.truncate(plain.arrays.len());
                launch.aliases.truncate(plain.arrays.len());
                let results = interpret(&plain, &launch).expect("it is valid without them");
                assert_eq!(results[..], outcome.results[..plain.arrays.len()]);
            }
        }
        assert!(written > 40, "{written}");
    }
}
