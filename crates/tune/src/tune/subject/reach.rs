//! Which parameters of a captured launch reach different bytes, wherever they lead.
//!
//! PyTorch and memory pools put many tensors into one allocation, and a pointer behind an array's end lies in the next one. Two of
//! them are apart where the bytes are that the kernel's code reaches through each, by its indices' bounds. That depends on the launch's scalars and grid, so that the arithmetic is written
//! down, and each launch computes it anew.

use crate::analysis::definitions::Definitions;
use crate::analysis::reach::{Reach, Term, evaluate, reaches};
use crate::capture::{Allocation, Captured};
use crate::front::ptx::{Imported, Origin};
use crate::ir::Kernel;

/// A pointer before an object lies less than this many bytes before it.
const BESIDE: i128 = 256;
/// Pointers, terms and numbers in terms of which the preloaded library takes this many for a kernel, and no more.
const MOST_POINTERS: usize = 16;
const MOST_TERMS: usize = 256;
const MOST_SCALARS: usize = 16;

/// Addresses of an allocation's first byte, and behind its last.
fn bounds(allocation: &Allocation) -> (i128, i128) {
    let start = i128::from(allocation.address);
    (start, start + allocation.before.len() as i128)
}

/// What a captured launch reaches through its parameters.
pub(in crate::tune) struct Reached<'c> {
    captured: &'c Captured,
    kernel: &'c Kernel,
    origins: &'c [Origin],
    /// By parameter; nothing is known of any if a pointer's target is unknown.
    all: Option<Vec<Reach>>,
}

impl<'c> Reached<'c> {
    /// Of the kernel as it was captured: what is read under facts may rest on them.
    pub(crate) fn of(captured: &'c Captured, plain: &'c Imported) -> Reached<'c> {
        let kernel = &plain.kernel;
        Reached {
            captured,
            kernel,
            origins: &plain.original.parameters,
            all: reaches(kernel, &Definitions::of(kernel), captured.group),
        }
    }

    /// Whether it makes a difference that two parameters reach the same byte: one is written through, and the other one used.
    pub(crate) fn matters(&self, one: usize, other: usize) -> bool {
        let Some(all) = &self.all else { return true };
        let (one, other) = (&all[one], &all[other]);
        one.writes && (other.reads || other.writes) || other.writes && one.reads
    }

    /// Whether two parameters that lead to these addresses reach no byte both, by the rule of the preloaded library
    /// (`headstart-driver/src/extents.rs`).
    pub(crate) fn are_apart(&self, one: (usize, u64), other: (usize, u64)) -> bool {
        match (self.extents(one), self.extents(other)) {
            (Some(one), Some(other)) => one.iter().all(|(first, last)| {
                let mut others = other.iter();
                others.all(|(other_first, other_last)| last < other_first || other_last < first)
            }),
            _ => false,
        }
    }

    /// Whether nothing that is reached through a parameter lies in the allocation that it leads into, although something is.
    pub(crate) fn is_elsewhere(&self, (parameter, address): (usize, u64), allocation: &Allocation) -> bool {
        let (start, end) = bounds(allocation);
        match self.reached(parameter) {
            Some(Some((low, high))) => {
                let address = i128::from(address);
                address + high < start || end <= address + low
            }
            _ => false,
        }
    }

    /// What is reached through a parameter, counted from where it leads: nothing known, or no byte at all, or the first and the last.
    fn reached(&self, parameter: usize) -> Option<Option<(i128, i128)>> {
        let terms = &self.all.as_ref()?[parameter].terms;
        let (low, high) = evaluate(terms, |number| self.scalar(number), self.captured.groups)?;
        let is_near = low > -(1 << 62) && high < 1 << 62 || low > high;
        is_near.then_some((low <= high).then_some((low, high)))
    }

    /// The bytes that may be accessed through a parameter, first and last of each piece; none if that is not known, or others
    /// may write some of them.
    fn extents(&self, (parameter, address): (usize, u64)) -> Option<Vec<(i128, i128)>> {
        let at = i128::from(address);
        let reached = match self.reached(parameter) {
            Some(None) => return Some(Vec::new()),
            Some(Some((low, high))) => Some((at + low, at + high)),
            None => None,
        };
        let memory = &self.captured.memory;
        if let Some((first, last)) = reached {
            let is_around = |own: &&Allocation| bounds(own).0 <= first && last < bounds(own).1;
            if let Some(own) = memory.iter().find(is_around) {
                return (!own.is_foreign).then(|| vec![(first, last)]);
            }
        }
        if address == 0 {
            return Some(Vec::new());
        }
        let (low, high) = reached.unwrap_or((i128::MIN, i128::MAX));
        let is_beside = |own: &&Allocation| bounds(own).0 < at + BESIDE && at <= bounds(own).1;
        let mut pieces = Vec::new();
        for object in memory.iter().filter(is_beside) {
            let (start, end) = bounds(object);
            let (first, last) = (start.max(low), (end - 1).min(high));
            match first <= last {
                true if object.is_foreign => return None,
                true => pieces.push((first, last)),
                false => {}
            }
        }
        (!pieces.is_empty()).then_some(pieces)
    }

    /// The lines by which the preloaded library computes what is reached through these parameters, those left out for which it
    /// cannot: terms for all of them, and which one is whose.
    pub(crate) fn lines(&self, parameters: impl Iterator<Item = usize>) -> Vec<String> {
        let mut table: Vec<Term> = Vec::new();
        let mut lines = Vec::new();
        for parameter in parameters {
            let (Some(all), Some((index, inside))) = (&self.all, self.place(parameter)) else {
                continue;
            };
            let terms = &all[parameter].terms;
            if terms.iter().any(|term| self.word(*term).is_none()) {
                continue;
            }
            let before = table.len();
            // Most terms are those of another parameter, too.
            let mut numbers: Vec<usize> = Vec::with_capacity(terms.len());
            for term in terms {
                let term = term.with(|operand| numbers[operand]);
                let known = table.iter().position(|own| *own == term);
                numbers.push(known.unwrap_or_else(|| {
                    table.push(term);
                    table.len() - 1
                }));
            }
            let scalars = table.iter().filter(|term| matches!(term, Term::Scalar(_)));
            let is_too_much = table.len() > MOST_TERMS || scalars.count() > MOST_SCALARS;
            if is_too_much || lines.len() == MOST_POINTERS {
                table.truncate(before);
                continue;
            }
            lines.extend(
                numbers
                    .last()
                    .map(|last| format!("reach {index} {inside} {last}")),
            );
        }
        let words: Vec<String> = table.iter().filter_map(|term| self.word(*term)).collect();
        if !words.is_empty() {
            lines.insert(0, format!("terms {}", words.join(" ")));
        }
        lines
    }

    /// Whether the preloaded library can compute what is reached through a parameter.
    pub(crate) fn is_known(&self, parameter: usize) -> bool {
        !self.lines(std::iter::once(parameter)).is_empty()
    }

    fn place(&self, parameter: usize) -> Option<(usize, u64)> {
        match &self.origins[parameter] {
            Origin::Parameter { position, .. } => self.captured.place_of(*position),
            _ => None,
        }
    }

    fn bytes(&self, parameter: usize) -> u32 {
        self.kernel.ty(self.kernel.params[parameter].value).bytes()
    }

    /// A scalar of the launch, read as signed.
    fn scalar(&self, parameter: usize) -> i64 {
        let bytes = self.bytes(parameter);
        let position = match &self.origins[parameter] {
            Origin::Parameter { position, .. } => *position,
            _ => return 0,
        };
        let bits = self.captured.parameter(position, u64::from(bytes)).unwrap_or(0);
        let unused = 64 - 8 * bytes.clamp(1, 8);
        ((bits << unused) as i64) >> unused
    }

    fn word(&self, term: Term) -> Option<String> {
        Some(match term {
            Term::Constant(number) => format!("c:{number}"),
            Term::Scalar(parameter) => {
                let (index, inside) = self.place(parameter)?;
                format!("p:{index}:{inside}:{}", self.bytes(parameter))
            }
            Term::Groups(dimension) => format!("g:{dimension}"),
            Term::Add(a, b) => format!("add:{a}:{b}"),
            Term::Sub(a, b) => format!("sub:{a}:{b}"),
            Term::Mul(a, b) => format!("mul:{a}:{b}"),
            Term::Div(a, b) => format!("div:{a}:{b}"),
            Term::Rem(a, b) => format!("rem:{a}:{b}"),
            Term::And(a, b) => format!("and:{a}:{b}"),
            Term::Or(a, b) => format!("or:{a}:{b}"),
            Term::Min(a, b) => format!("min:{a}:{b}"),
            Term::Max(a, b) => format!("max:{a}:{b}"),
            Term::Join(a, b) => format!("join:{a}:{b}"),
            Term::Meet(a, b) => format!("meet:{a}:{b}"),
            Term::Between(a, b) => format!("between:{a}:{b}"),
            Term::UpTo(a, b) => format!("upto:{a}:{b}"),
            Term::From(a, b) => format!("from:{a}:{b}"),
            Term::Except(a, b) => format!("except:{a}:{b}"),
            Term::Signed(bits, a) => format!("signed:{bits}:{a}"),
            Term::Unsigned(bits, a) => format!("unsigned:{bits}:{a}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::device::sim::Simulator;
    use crate::tune::subject::captured::tests::{allocation, captured};
    use crate::tune::subject::captured::{captured_import, replay};

    const TABLE: u64 = 0x7f00_0000_0000;
    const OUT: u64 = 0x7e00_0000_0000;
    const GROUPS: u64 = 3;

    struct Random(u32);

    impl Random {
        fn below(&mut self, end: u32) -> u32 {
            self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (self.0 >> 8) % end
        }

        fn of<'t>(&mut self, all: &[&'t str]) -> &'t str {
            all[self.below(all.len() as u32) as usize]
        }
    }

    /// A kernel that sums what a table has at an index made of its item, a counter and two numbers: with and without guards,
    /// loops that are tested above or below, up and down.
    fn text(random: &mut Random) -> String {
        let mut ops = String::new();
        let mut names = vec![
            "%r1".to_owned(),
            "%r2".to_owned(),
            "%r3".to_owned(),
            "%r4".to_owned(),
            "%r6".to_owned(),
            "%r7".to_owned(),
        ];
        for number in 10..11 + random.below(4) {
            let any = |random: &mut Random| names[random.below(names.len() as u32) as usize].clone();
            let (a, b) = (any(random), any(random));
            let constant = 1 + random.below(9);
            let _ = match random.below(12) {
                0 | 1 => writeln!(ops, "add.s32 %r{number}, {a}, {b};"),
                2 => writeln!(ops, "sub.s32 %r{number}, {a}, {b};"),
                3 | 4 => writeln!(ops, "mul.lo.s32 %r{number}, {a}, {b};"),
                5 => writeln!(ops, "shl.b32 %r{number}, {a}, {};", constant % 4),
                6 => writeln!(ops, "shr.u32 %r{number}, {a}, {};", constant % 4),
                7 => writeln!(ops, "and.b32 %r{number}, {a}, {constant};"),
                8 => writeln!(ops, "min.s32 %r{number}, {a}, {b};"),
                9 => writeln!(ops, "max.u32 %r{number}, {a}, {b};"),
                10 => writeln!(ops, "rem.u32 %r{number}, {a}, {constant};"),
                _ => writeln!(ops, "div.s32 %r{number}, {a}, {constant};"),
            };
            names.push(format!("%r{number}"));
        }
        let last = names.last().map_or("%r6", String::as_str);
        let guard = match random.below(3) {
            0 => String::new(),
            _ => format!(
                "setp.ge.{} %p1, %r6, {};\n@%p1 bra D;\n",
                random.of(&["s32", "u32"]),
                random.of(&["%r1", "%r2", "70"])
            ),
        };
        let (start, end) = (
            random.of(&["0", "1", "%r1", "%r2"]),
            random.of(&["%r1", "%r2", "9"]),
        );
        let step = random.of(&["1", "1", "2", "3"]);
        let (over, back) = match random.below(4) {
            0 => (
                format!("setp.ge.s32 %p2, %r7, {end};\n@%p2 bra E;\n"),
                format!("add.s32 %r7, %r7, {step};\nbra L;\n"),
            ),
            1 => (
                String::new(),
                format!("add.s32 %r7, %r7, {step};\nsetp.lt.s32 %p3, %r7, {end};\n@%p3 bra L;\n"),
            ),
            2 => (
                "setp.le.s32 %p2, %r7, 0;\n@%p2 bra E;\n".to_owned(),
                format!("sub.s32 %r7, %r7, {step};\nbra L;\n"),
            ),
            _ => (String::new(), String::new()),
        };
        let wide = random.of(&["s32", "u32"]);
        format!(
            ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 table, .param .u64 out, .param .u32 n, \
             .param .u32 m)\n{{\n.reg .pred %p<8>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<16>;\nld.param.u64 %rd1, [table];\n\
             ld.param.u64 %rd2, [out];\nld.param.u32 %r1, [n];\nld.param.u32 %r2, [m];\nmov.u32 %r3, %tid.x;\nmov.u32 %r4, \
             %ctaid.x;\nmov.u32 %r5, %ntid.x;\nmad.lo.s32 %r6, %r4, %r5, %r3;\nmov.u32 %r8, 0;\n{guard}mov.u32 %r7, {start};\nL:\n\
             {over}{ops}mul.wide.{wide} %rd3, {last}, 4;\nadd.s64 %rd4, %rd1, %rd3;\nld.global.u32 %r9, [%rd4];\nadd.s32 %r8, %r8, \
             %r9;\n{back}E:\nmul.wide.u32 %rd5, %r6, 4;\nadd.s64 %rd6, %rd2, %rd5;\nst.global.u32 [%rd6], %r8;\nD:\nret;\n}}\n"
        )
    }

    /// Memory that ends where the arithmetic says is all that a launch needs.
    #[test]
    fn nothing_is_reached_beyond_what_is_computed() {
        let seed: u32 = std::env::var("HEADSTART_SEED").map_or(1, |seed| seed.parse().expect("a number"));
        let mut random = Random(seed);
        let mut near = 0;
        for case in 0..400 {
            let text = text(&mut random);
            let numbers = [u64::from(random.below(40)), u64::from(random.below(40))];
            let launch = |memory| Captured {
                groups: [GROUPS as u32, 1, 1],
                layout: vec![(0, 8), (8, 8), (16, 4), (20, 4)],
                parameters: [TABLE.to_le_bytes(), OUT.to_le_bytes()]
                    .concat()
                    .into_iter()
                    .chain(numbers.iter().flat_map(|number| (*number as u32).to_le_bytes()))
                    .collect(),
                ..captured("k", &text, &[], memory)
            };
            let own = launch(Vec::new());
            let plain = captured_import(&own).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let reached = Reached::of(&own, &plain);
            let all = reached.all.as_ref().expect("pointers lead somewhere");
            let (low, high) =
                evaluate(&all[0].terms, |number| reached.scalar(number), own.groups).expect("few terms");
            let mut memory = vec![allocation(OUT, vec![0; 32 * 4 * GROUPS as usize], None)];
            if low <= high {
                if low < -(1 << 20) || high > 1 << 20 {
                    continue;
                }
                let start = i128::from(TABLE) + low;
                memory.push(allocation(start as u64, vec![1; (high - low + 1) as usize], None));
            }
            near += 1;
            if let Err(error) = replay(launch(memory), &Simulator::untimed()) {
                panic!("case {case}, numbers {numbers:?}, {low} to {high}: {error}\n{text}");
            }
        }
        assert!(near > 150, "{near}");
    }
}
