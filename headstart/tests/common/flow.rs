//! Random flow graphs in PTX: the meaning of the text, computed here without any of our parsers, is the structured kernel's
//! result on the simulator. Bytes decide everything, so that a fuzzer can search for graphs.

use std::fmt::Write;
use std::sync::Arc;

use headstart::device::model;
use headstart::device::sim::Simulator;
use headstart::device::sim::functional::Options;
use headstart::front::ptx::{self, Facts};
use headstart::tune::LaunchFile;

/// Work-items that run each graph.
const ITEMS: u32 = 32;
/// Blocks that a work-item may enter before it is sent to the end.
const FUEL: u32 = 40;

/// Numbers out of bytes; zeros once they are used up.
struct Bytes<'b>(std::slice::Iter<'b, u8>);

impl Bytes<'_> {
    fn below(&mut self, bound: u32) -> u32 {
        u32::from(self.0.next().copied().unwrap_or(0)) % bound
    }
}

/// `r[to] = r[a] op r[b]`, under the second predicate, its opposite, or always.
struct Step {
    guard: u32,
    op: u32,
    to: usize,
    a: usize,
    b: usize,
}

enum End {
    Jump(usize),
    ReturnIf,
    Branch(usize, usize),
    BranchUnless(usize),
}

struct Block {
    steps: Vec<Step>,
    /// The predicate becomes whether this register has one of these bits.
    tested: (usize, u32),
    end: End,
}

fn graph(bytes: &[u8]) -> Vec<Block> {
    let mut bytes = Bytes(bytes.iter());
    let count = 2 + bytes.below(12) as usize;
    let mut block = |number: usize| {
        let mut steps = Vec::new();
        for _ in 0..bytes.below(4) {
            let [guard, op, to, a, b] = [3, 3, 4, 4, 4].map(|bound| bytes.below(bound));
            steps.push(Step {
                guard,
                op,
                to: to as usize,
                a: a as usize,
                b: b as usize,
            });
        }
        let tested = (bytes.below(4) as usize, 1 << bytes.below(3));
        // Mostly forward, sometimes back: enough of the graphs are reducible. `count` is the end.
        let mut target = || match bytes.below(4) {
            0 => bytes.below(number as u32 + 1) as usize,
            _ => (number + 1 + bytes.below(3) as usize).min(count),
        };
        let (first, second) = (target(), target());
        let end = match bytes.below(6) {
            0 => End::Jump(first),
            1 => End::ReturnIf,
            2 | 3 => End::Branch(first, second),
            _ => End::BranchUnless(first),
        };
        Block { steps, tested, end }
    };
    (0..count).map(&mut block).collect()
}

const NAMES: [&str; 3] = ["add.u32", "xor.b32", "mul.lo.u32"];

fn text(graph: &[Block]) -> String {
    let mut text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 k_out)\n{{\n.reg .pred %p<3>;\n\
         .reg .b32 %r<12>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [k_out];\ncvta.to.global.u64 %rd2, %rd1;\n\
         mov.u32 %r0, %tid.x;\nmul.wide.u32 %rd3, %r0, 16;\nadd.s64 %rd2, %rd2, %rd3;\nmov.u32 %r1, 17;\n\
         mul.lo.u32 %r2, %r0, 77;\nmov.u32 %r3, %r0;\nmov.u32 %r9, {FUEL};\n"
    );
    let name = |target: usize| match target == graph.len() {
        true => "DONE".to_owned(),
        false => format!("L{target}"),
    };
    for (number, block) in graph.iter().enumerate() {
        let _ = writeln!(
            text,
            "L{number}:\nsub.u32 %r9, %r9, 1;\nsetp.eq.u32 %p1, %r9, 0;\n@%p1 bra DONE;"
        );
        for step in &block.steps {
            let guard = ["", "@%p2 ", "@!%p2 "][step.guard as usize];
            let op = NAMES[step.op as usize];
            let _ = writeln!(text, "{guard}{op} %r{}, %r{}, %r{};", step.to, step.a, step.b);
        }
        let (register, bit) = block.tested;
        let _ = writeln!(
            text,
            "and.b32 %r8, %r{register}, {bit};\nsetp.ne.u32 %p2, %r8, 0;"
        );
        let _ = match block.end {
            End::Jump(to) => writeln!(text, "bra.uni {};", name(to)),
            End::ReturnIf => writeln!(text, "@%p2 ret;"),
            End::Branch(a, b) => writeln!(text, "@%p2 bra {};\nbra {};", name(a), name(b)),
            End::BranchUnless(to) => writeln!(text, "@!%p2 bra {};", name(to)),
        };
    }
    text.push_str(
        "DONE:\nst.global.u32 [%rd2], %r0;\nst.global.v2.u32 [%rd2+8], {%r1, %r2};\nst.global.u32 [%rd2+4], %r3;\nret;\n}\n",
    );
    text
}

/// What a work-item stores; zeros if it returns before.
fn meaning(graph: &[Block], item: u32) -> [u32; 4] {
    let mut r = [item, 17, item.wrapping_mul(77), item];
    let (mut fuel, mut predicate, mut at) = (FUEL, false, 0);
    while at < graph.len() {
        let block = &graph[at];
        fuel -= 1;
        if fuel == 0 {
            break;
        }
        for step in &block.steps {
            if step.guard == 1 && !predicate || step.guard == 2 && predicate {
                continue;
            }
            let (a, b) = (r[step.a], r[step.b]);
            r[step.to] = match step.op {
                0 => a.wrapping_add(b),
                1 => a ^ b,
                _ => a.wrapping_mul(b),
            };
        }
        predicate = r[block.tested.0] & block.tested.1 != 0;
        at = match block.end {
            End::Jump(to) => to,
            End::ReturnIf if predicate => return [0; 4],
            End::ReturnIf => at + 1,
            End::Branch(a, b) => {
                if predicate {
                    a
                } else {
                    b
                }
            }
            End::BranchUnless(to) if !predicate => to,
            End::BranchUnless(_) => at + 1,
        };
    }
    [r[0], r[3], r[1], r[2]]
}

/// What came of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// It became regions, and computes the same.
    Same,
    /// It can be entered beside a loop's first block, and was refused by name.
    Irreducible,
}

/// Checks the graph that these bytes describe.
///
/// # Panics
/// It is refused for another reason, or the kernel computes something else.
pub fn check(bytes: &[u8]) -> Checked {
    let graph = graph(bytes);
    let text = text(&graph);
    let kernel = match ptx::read(&text, "k.ptx", None, &Facts::default()) {
        Ok(kernel) => Arc::new(kernel),
        Err(error) if error.to_string().contains("irreducible") => return Checked::Irreducible,
        Err(error) => panic!("{error}\n{text}"),
    };
    let launch =
        "groups = 1\ngroup = 32\n[parameters.out]\nlength = 128\nfill = \"zero\"\noutput = \"bits\"\n";
    let launch = LaunchFile::parse(launch, "launch.toml").expect("a launch file");
    let workload = launch.workload(&kernel).expect("a workload");
    let model = model::built_in("h200", &[]).expect("a model");
    let simulator = Simulator::custom(model.description(), Options::CHECKING, None);
    let (_, outputs) = workload
        .bind(&simulator)
        .and_then(|bound| bound.run(&simulator, &kernel))
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let expected: Vec<u8> = (0..ITEMS)
        .flat_map(|item| meaning(&graph, item))
        .flat_map(u32::to_le_bytes)
        .collect();
    assert!(
        outputs[0] == expected,
        "{text}\n{}",
        headstart::ir::print(&kernel)
    );
    Checked::Same
}
