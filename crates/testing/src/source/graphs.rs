//! Random control flow without structure, in PTX: loops that count around graphs of blocks that branch anywhere ahead,
//! with loads whose addresses are merged from several blocks. The meaning is computed here from the graph.
//!
//! ```text
//! HEAD: [test] ─► B0 ─► B1 … Bk ─► LATCH: i += step ─► HEAD      every block may go to any block behind it,
//!                  └──────┴──► OUT                               to the latch or out; the test may stand in any
//! ```
//!
//! Some graphs have an edge into the middle of the loop. Others are free: any block may go to any other, or return, and a
//! counter ends what would run for ever.

use std::fmt::Write;

use super::campaign::{Counts, Route, Subject};
use super::launches::{Launch, LaunchOutcome};
use super::tree::{ArrayParameter, Content, Program, Role, Scalar, ScalarParameter};
use crate::Random;
use crate::front::ptx::{self, Facts, ParameterFacts};

/// Numbers that blocks compute with.
const REGISTERS: u64 = 5;
/// Elements of each array.
const LENGTH: u64 = 64;
/// Arrays that are read: two of numbers.
const INPUTS: u64 = 2;
/// Blocks that a work-item may enter.
const FUEL: u32 = 4000;
/// Launches wanted, and tried.
const LAUNCHES: usize = 8;
const TRIED: usize = 24;

/// What a block does.
#[derive(Clone, Debug)]
enum GraphStatement {
    /// `r[to] = r[a] op r[b]`
    Compute { to: usize, op: u64, a: usize, b: usize },
    /// `r[to] = constant`
    Constant { to: usize, constant: u32 },
    /// `r[to] = counter of this loop`
    Counter { to: usize, counter: usize },
    /// `r[to] = array[r[at] & 63]`, or of the counter itself, unmasked.
    Load { to: usize, array: u64, at: Address },
}

#[derive(Clone, Copy, Debug)]
enum Address {
    Masked(usize),
    Counter(usize),
}

/// The condition that decides where a block continues.
#[derive(Clone, Copy, Debug)]
enum Test {
    /// A bit of a register.
    Bit { register: usize, bit: u32 },
    /// A register's low bits, below `n` or `k`.
    Below { register: usize, scalar: usize },
    /// A counter below `n` or `k`.
    Counting { counter: usize, scalar: usize },
}

/// Where to: a block by number.
#[derive(Clone, Debug)]
enum End {
    Jump(usize),
    Branch(Test, usize, usize),
    /// The registers are stored.
    Done,
    Return,
}

#[derive(Clone, Debug)]
struct Block {
    statements: Vec<GraphStatement>,
    /// A counter that goes on here.
    counts: Option<(usize, u32)>,
    end: End,
}

/// A graph: blocks by number, the first first; with the counters' first values.
struct Graph {
    blocks: Vec<Block>,
    counters: usize,
    signed: bool,
}

struct Writer<'r> {
    random: &'r mut Random,
    blocks: Vec<Block>,
    counters: usize,
}

impl Writer<'_> {
    fn statements(&mut self, counter: Option<usize>) -> Vec<GraphStatement> {
        let register = |random: &mut Random| random.below(REGISTERS) as usize;
        let mut statements = Vec::new();
        for _ in 0..self.random.between(0, 3) {
            let to = register(self.random);
            statements.push(match self.random.below(10) {
                0 => GraphStatement::Constant {
                    to,
                    constant: self.random.below(64) as u32,
                },
                1 | 2 => match counter {
                    Some(counter) => GraphStatement::Counter { to, counter },
                    None => GraphStatement::Constant { to, constant: 7 },
                },
                3..7 => {
                    let at = match counter {
                        Some(counter) if self.random.chance(35) => Address::Counter(counter),
                        _ => Address::Masked(register(self.random)),
                    };
                    let array = self.random.below(INPUTS);
                    GraphStatement::Load { to, array, at }
                }
                _ => GraphStatement::Compute {
                    to,
                    op: self.random.below(3),
                    a: register(self.random),
                    b: register(self.random),
                },
            });
        }
        statements
    }

    fn test(&mut self, counter: Option<usize>) -> Test {
        let register = self.random.below(REGISTERS) as usize;
        let scalar = self.random.below(2) as usize;
        match (self.random.below(10), counter) {
            (0..3, Some(counter)) => Test::Counting { counter, scalar },
            (3 | 4, _) => Test::Below { register, scalar },
            _ => Test::Bit {
                register,
                bit: 1 << self.random.below(3),
            },
        }
    }

    fn push(&mut self, statements: Vec<GraphStatement>, end: End) -> usize {
        self.blocks.push(Block {
            statements,
            counts: None,
            end,
        });
        self.blocks.len() - 1
    }

    /// A loop whose way out leads to the block that is pushed next. Gives its first block.
    fn looped(&mut self, depth: u32, outer: Option<usize>) -> usize {
        let counter = self.counters;
        self.counters += 1;
        // In front: nothing but the counter's first value, which the writer of text gives.
        let count = self.random.between(2, 6) as usize;
        let tested = match self.random.chance(60) {
            true => 0,
            false => self.random.below(count as u64) as usize,
        };
        let first = self.blocks.len();
        // Most loops have no other way out than their test.
        let leaves = self.random.chance(35);
        let mut members = Vec::new();
        for number in 0..count {
            let around = match self.random.chance(85) {
                true => Some(counter),
                false => outer,
            };
            let mut statements = self.statements(around.or(Some(counter)));
            if number == 0 {
                // Registers that no iteration takes from the one before.
                for to in 0..self.random.between(1, 3) as usize {
                    let constant = self.random.below(64) as u32;
                    statements.push(match self.random.below(3) {
                        0 => GraphStatement::Counter { to, counter },
                        1 => GraphStatement::Constant { to, constant },
                        _ => GraphStatement::Load {
                            to,
                            array: self.random.below(INPUTS),
                            at: Address::Counter(counter),
                        },
                    });
                }
            }
            members.push((self.push(statements, End::Done), number));
            if depth > 0 && self.random.chance(20) {
                let inner = self.looped(depth - 1, Some(counter));
                // The inner loop's way out is the next block; the one before leads into it.
                let last = members[members.len() - 1].0;
                self.blocks[last].end = End::Jump(inner);
            }
        }
        let latch = self.push(Vec::new(), End::Jump(first));
        let step = *self.random.choose(&[1, 1, 1, 2, 3]);
        self.blocks[latch].counts = Some((counter, step));
        let out = self.blocks.len();
        let numbers: Vec<usize> = members.iter().map(|&(block, _)| block).collect();
        for (position, &(block, number)) in members.iter().enumerate() {
            if !matches!(self.blocks[block].end, End::Done) {
                continue;
            }
            let behind: Vec<usize> = numbers[position + 1..].iter().copied().chain([latch]).collect();
            let next = behind[0];
            let target = |writer: &mut Self| match writer.random.below(10) {
                0..5 => next,
                5..8 => *writer.random.choose(&behind),
                8 => latch,
                _ if leaves => out,
                _ => next,
            };
            self.blocks[block].end = match number == tested {
                true => {
                    let scalar = usize::from(self.random.chance(25));
                    let go_on = match self.random.chance(80) {
                        true => next,
                        false => *self.random.choose(&behind),
                    };
                    End::Branch(Test::Counting { counter, scalar }, go_on, out)
                }
                false => match self.random.chance(25) {
                    true => End::Jump(target(self)),
                    false => {
                        let test = self.test(Some(counter));
                        let (one, other) = (target(self), target(self));
                        End::Branch(test, one, other)
                    }
                },
            };
        }
        first
    }
}

/// Blocks in pairs: one computes and asks whether to go on, the other goes anywhere, mostly a few blocks ahead.
fn free(random: &mut Random) -> Graph {
    let count = random.between(2, 13);
    let mut writer = Writer {
        random,
        blocks: Vec::new(),
        counters: 1,
    };
    let done = 2 * count as usize;
    for pair in 0..count {
        let statements = writer.statements(None);
        let counting = Test::Counting {
            counter: 0,
            scalar: 0,
        };
        let at = writer.push(statements, End::Branch(counting, 2 * pair as usize + 1, done));
        writer.blocks[at].counts = Some((0, 1));
        let test = writer.test(None);
        let mut target = || match writer.random.below(8) {
            0 | 1 => 2 * writer.random.below(pair + 1) as usize,
            2 => done + 1,
            _ => done.min(2 * (pair + 1 + writer.random.below(3)) as usize),
        };
        let end = End::Branch(test, target(), target());
        writer.push(Vec::new(), end);
    }
    writer.push(Vec::new(), End::Done);
    writer.push(Vec::new(), End::Return);
    Graph {
        blocks: writer.blocks,
        counters: 1,
        signed: random.chance(50),
    }
}

fn graph(random: &mut Random) -> Graph {
    if random.chance(25) {
        return free(random);
    }
    let mut writer = Writer {
        random,
        blocks: Vec::new(),
        counters: 0,
    };
    let begin = writer.statements(None);
    writer.push(begin, End::Jump(1));
    writer.looped(1, None);
    let between = writer.statements(None);
    let done = writer.blocks.len() + 1;
    writer.push(between, End::Jump(done));
    writer.push(Vec::new(), End::Done);
    if writer.random.chance(5) {
        let into = writer.random.between(2, writer.blocks.len() as u64 - 2) as usize;
        let test = writer.test(None);
        writer.blocks[0].end = End::Branch(test, 1, into);
    }
    let (blocks, counters) = (writer.blocks, writer.counters);
    Graph {
        blocks,
        counters,
        signed: random.chance(50),
    }
}

/// Blocks in front of whose loops counters begin: a block that jumps to the first block of a loop from outside.
fn resets(graph: &Graph) -> Vec<Vec<usize>> {
    let mut resets = vec![Vec::new(); graph.blocks.len()];
    for (latch, block) in graph.blocks.iter().enumerate() {
        let (Some((counter, _)), End::Jump(first)) = (block.counts, &block.end) else {
            continue;
        };
        for (from, other) in graph.blocks.iter().enumerate() {
            let enters = match other.end {
                End::Jump(to) => to == *first,
                End::Branch(_, one, two) => one == *first || two == *first,
                End::Done | End::Return => false,
            };
            if enters && from != latch && (from < *first || from > latch) {
                resets[from].push(counter);
            }
        }
    }
    resets
}

fn text(graph: &Graph, name: &str) -> String {
    let mut text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry {name}(.param .u64 a, .param .u64 b, .param .u64 o, \
         .param .u32 n, .param .u32 k)\n{{\n.reg .pred %p<3>;\n.reg .b32 %r<12>;\n.reg .b32 %i<{}>;\n.reg .b32 \
         %s<3>;\n.reg .b64 %rd<12>;\nld.param.u64 %rd1, [a];\ncvta.to.global.u64 %rd2, %rd1;\nld.param.u64 %rd3, \
         [b];\ncvta.to.global.u64 %rd4, %rd3;\nld.param.u64 %rd5, [o];\ncvta.to.global.u64 %rd6, %rd5;\nld.param.u32 \
         %s0, [n];\nld.param.u32 %s1, [k];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %rd7, %r0, {};\nadd.s64 %rd6, %rd6, \
         %rd7;\n",
        graph.counters + 1,
        REGISTERS * 4,
    );
    for register in 1..REGISTERS {
        let _ = writeln!(text, "mul.lo.u32 %r{register}, %r0, {};", register * 7);
    }
    for counter in 0..graph.counters {
        let _ = writeln!(text, "mov.u32 %i{counter}, 0;");
    }
    let kind = if graph.signed { "s32" } else { "u32" };
    let resets = resets(graph);
    for (number, block) in graph.blocks.iter().enumerate() {
        let _ = writeln!(text, "B{number}:");
        for statement in &block.statements {
            let _ = match statement {
                GraphStatement::Compute { to, op, a, b } => {
                    let op = ["add.u32", "xor.b32", "mul.lo.u32"][*op as usize];
                    writeln!(text, "{op} %r{to}, %r{a}, %r{b};")
                }
                GraphStatement::Constant { to, constant } => writeln!(text, "mov.u32 %r{to}, {constant};"),
                GraphStatement::Counter { to, counter } => writeln!(text, "mov.u32 %r{to}, %i{counter};"),
                GraphStatement::Load { to, array, at } => {
                    let base = 2 + 2 * array;
                    let _ = match at {
                        Address::Masked(register) => {
                            writeln!(text, "and.b32 %r9, %r{register}, {};", LENGTH - 1)
                        }
                        Address::Counter(counter) => writeln!(text, "mov.u32 %r9, %i{counter};"),
                    };
                    writeln!(
                        text,
                        "mul.wide.{kind} %rd8, %r9, 4;\nadd.s64 %rd9, %rd{base}, %rd8;\nld.global.u32 %r{to}, [%rd9];"
                    )
                }
            };
        }
        if let Some((counter, step)) = block.counts {
            let _ = writeln!(text, "add.{kind} %i{counter}, %i{counter}, {step};");
        }
        for counter in &resets[number] {
            let _ = writeln!(text, "mov.u32 %i{counter}, 0;");
        }
        let _ = match &block.end {
            End::Jump(to) => writeln!(text, "bra.uni B{to};"),
            End::Branch(test, one, other) => {
                let _ = match test {
                    Test::Bit { register, bit } => {
                        writeln!(
                            text,
                            "and.b32 %r9, %r{register}, {bit};\nsetp.ne.u32 %p1, %r9, 0;"
                        )
                    }
                    Test::Below { register, scalar } => {
                        writeln!(
                            text,
                            "and.b32 %r9, %r{register}, 31;\nsetp.lt.{kind} %p1, %r9, %s{scalar};"
                        )
                    }
                    Test::Counting { counter, scalar } => {
                        writeln!(text, "setp.lt.{kind} %p1, %i{counter}, %s{scalar};")
                    }
                };
                writeln!(text, "@%p1 bra B{one};\nbra.uni B{other};")
            }
            End::Done => {
                for register in 0..REGISTERS {
                    let _ = writeln!(text, "st.global.u32 [%rd6+{}], %r{register};", register * 4);
                }
                writeln!(text, "ret;")
            }
            End::Return => writeln!(text, "ret;"),
        };
    }
    text.push_str("}\n");
    text
}

/// What a work-item stores; none if it reads out of bounds or does not end.
fn meaning(graph: &Graph, resets: &[Vec<usize>], launch: &Launch, item: u32) -> Option<Vec<u64>> {
    let own = item as usize * REGISTERS as usize;
    let mut registers: Vec<u32> = (0..REGISTERS as u32)
        .map(|number| match number {
            0 => item,
            _ => item.wrapping_mul(number * 7),
        })
        .collect();
    let mut counters = vec![0u32; graph.counters];
    let scalars: Vec<u32> = launch.scalars.iter().map(|&bits| bits as u32).collect();
    let less = |a: u32, b: u32| match graph.signed {
        true => (a as i32) < b as i32,
        false => a < b,
    };
    let mut at = 0;
    for _ in 0..FUEL {
        let block = &graph.blocks[at];
        for statement in &block.statements {
            match *statement {
                GraphStatement::Compute { to, op, a, b } => {
                    let (a, b) = (registers[a], registers[b]);
                    registers[to] = match op {
                        0 => a.wrapping_add(b),
                        1 => a ^ b,
                        _ => a.wrapping_mul(b),
                    };
                }
                GraphStatement::Constant { to, constant } => registers[to] = constant,
                GraphStatement::Counter { to, counter } => registers[to] = counters[counter],
                GraphStatement::Load { to, array, at } => {
                    let index = match at {
                        Address::Masked(register) => registers[register] & (LENGTH as u32 - 1),
                        Address::Counter(counter) => counters[counter],
                    };
                    registers[to] = *launch.contents[array as usize].get(index as usize)? as u32;
                }
            }
        }
        if let Some((counter, step)) = block.counts {
            counters[counter] = counters[counter].wrapping_add(step);
        }
        resets[at].iter().for_each(|&counter| counters[counter] = 0);
        at = match &block.end {
            End::Jump(to) => *to,
            End::Branch(test, one, other) => {
                let holds = match *test {
                    Test::Bit { register, bit } => registers[register] & bit != 0,
                    Test::Below { register, scalar } => less(registers[register] & 31, scalars[scalar]),
                    Test::Counting { counter, scalar } => less(counters[counter], scalars[scalar]),
                };
                if holds { *one } else { *other }
            }
            End::Done => return Some(registers.into_iter().map(u64::from).collect()),
            End::Return => return Some(launch.contents[2][own..own + REGISTERS as usize].to_vec()),
        };
    }
    None
}

/// The parameters, as those of a program without statements.
fn shell(seed: u64, group: u32) -> Program {
    let array = |name, written, length| ArrayParameter {
        name,
        element: Scalar::U32,
        length,
        written,
        volatile: false,
        content: Content::Any,
    };
    let scalar = |name| ScalarParameter {
        name,
        ty: Scalar::U32,
        role: Role::Bound,
    };
    Program {
        seed,
        arrays: vec![
            array("a", false, LENGTH),
            array("b", false, LENGTH),
            array("o", true, u64::from(group) * REGISTERS),
        ],
        scalars: vec![scalar("n"), scalar("k")],
        locals: Vec::new(),
        body: Vec::new(),
        groups: 1,
        group,
        partial: false,
        waits: false,
        unordered: false,
        aside: None,
    }
}

fn launch(random: &mut Random, program: &Program) -> Launch {
    let bound = |random: &mut Random| match random.below(8) {
        0 => random.below(3),
        1 => u64::from((random.below(5) as u32).wrapping_neg()),
        2 => *random.choose(&[31, 32, 33, 63, 64]),
        _ => random.below(24),
    };
    let way = random.below(6);
    let bits = |random: &mut Random| match way {
        0 => 0,
        1 => u64::from(u32::MAX),
        2 => random.below(4),
        _ => random.bits() & u64::from(u32::MAX),
    };
    Launch {
        scalars: (0..2).map(|_| bound(random)).collect(),
        contents: program
            .arrays
            .iter()
            .map(|array| (0..array.length).map(|_| bits(random)).collect())
            .collect(),
        aliases: vec![None; program.arrays.len()],
    }
}

/// The kernel of a seed's graph, if the front end reads it and enough launches mean something.
pub(super) fn subject(seed: u64, counts: &mut Counts) -> Option<(Subject, Random)> {
    let mut random = Random::new(seed ^ 0x9a9a_77aa);
    let graph = graph(&mut random);
    let program = shell(seed, *random.choose(&[4, 8]));
    let resets = resets(&graph);
    let mut tried = Vec::new();
    for _ in 0..TRIED {
        if tried.len() == LAUNCHES {
            break;
        }
        let launch = launch(&mut random, &program);
        let items = (0..program.group).map(|item| meaning(&graph, &resets, &launch, item));
        match items.collect::<Option<Vec<_>>>() {
            Some(stored) => {
                let mut results = launch.contents.clone();
                results[2] = stored.concat();
                tried.push(LaunchOutcome { launch, results });
            }
            None => counts.dropped += 1,
        }
    }
    if tried.len() < 3 {
        counts.weak += 1;
        return None;
    }
    let mut facts = Facts {
        no_overflow: random.chance(50),
        ..Facts::default()
    };
    for array in &program.arrays {
        let known = ParameterFacts {
            length: random.chance(60).then_some(array.length),
            read_only: !array.written && random.chance(70),
            unaliased: random.chance(70),
            ..ParameterFacts::default()
        };
        facts.parameters.insert(array.name.to_owned(), known);
    }
    let source = text(&graph, &program.name());
    match ptx::read(&source, "graph.ptx", None, &facts) {
        Ok(kernel) => {
            let route = Route::Graph;
            let subject = Subject {
                seed,
                route,
                program,
                source,
                kernel,
                tried,
            };
            Some((subject, random))
        }
        Err(error) => {
            counts.unread += 1;
            *counts
                .rules
                .entry(format!("graph not read: {error}"))
                .or_default() += 1;
            None
        }
    }
}
