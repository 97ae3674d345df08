//! Statements that only CUDA C has, woven into a random program: generic pointers in all forms, conversions, unusual floats,
//! narrow and vector accesses, unions, volatile, atomics, calls, jumps through a table, references.
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

mod accesses;
mod numbers;
mod pointers;

use std::collections::BTreeSet;

use super::tree::{ArrayParameter, Aside, Content, Local, Program, Scalar, Statement};
use crate::Random;

/// Elements of the arrays that all work-items read; and of a work-item's row.
const LENGTH: u64 = 64;
const ROW: u64 = 16;
/// Asides of a program at most.
const MOST: u32 = 5;

/// What the asides of all programs of a file share.
pub(crate) const PRELUDE: &str = "\
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
static __device__ __noinline__ unsigned halved(const unsigned* at, unsigned left) {
  return left ? halved(at, left / 2) * 31u + halved(at, left / 4) * 7u + at[left] : at[0];
}
template <class T> static __device__ __noinline__ void stepped(T& number, T by) { number = number * 3 + by; }
template <class T> static __device__ __forceinline__ T& named(T* at, unsigned i) { return at[i]; }
";

/// Weaves asides into a program.
pub(crate) fn weave(program: &mut Program, random: &mut Random) {
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

    /// One aside: a block.
    fn aside(&mut self, counters: &[String], depth: u32) -> String {
        self.written += 1;
        format!("{{ {} }}", self.inner(counters, depth))
    }

    fn inner(&mut self, counters: &[String], depth: u32) -> String {
        match self.random.below(100) {
            0..24 if depth < 2 => self.looped(counters, depth),
            0..30 => self.read(counters),
            30..34 => self.switched(counters),
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
}

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
                let results = interpret::interpret(&plain, &launch).expect("it is valid without them");
                assert_eq!(results[..], outcome.results[..plain.arrays.len()]);
            }
        }
        assert!(written > 40, "{written}");
    }
}
