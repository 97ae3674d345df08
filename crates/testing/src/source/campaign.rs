//! Plans for random programs: each is derived once, and tried under launches that differ only in scalars and data.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::generate::{self, array};
use super::graphs;
use super::launches::{LaunchOutcome, bytes_of, launches};
use super::translate::{Known, Style, translate};
use super::tree::Program;
use crate::back::ptx::{Options, PtxTarget, emit};
use crate::device::sim::functional::{self, CompiledKernel, Groups};
use crate::error::{Error, Fault, Result};
use crate::front::ptx::{self, Facts, Imported, ParameterFacts};
use crate::ir::{self, Kernel};
use crate::prefetch::{Plan, PlanTarget, apply};
use crate::violation::Violation;
use crate::{Random, random_plan, shrink};

/// Operations of a sub-group after which a kernel counts as endless: a plan may make a hundred of each of the plain
/// kernel's, which are bounded by the interpreter.
pub(crate) const OPERATIONS: u64 = 1 << 26;
/// The sub-group size.
pub(crate) const SUB_GROUP: u32 = 32;
/// Shared memory that no device has.
const SHARED_BYTES: u64 = 200 << 10;
/// Launches tried for each kernel.
const LAUNCHES: usize = 8;
/// Fewer of them test too little.
const FEWEST: usize = 3;
/// Plans tried for each kernel.
const PLANS: usize = 8;

/// How a program became IR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    /// By our translator.
    Translator,
    /// By our translator, our PTX and the front end.
    Ptx,
    /// By a compiler's PTX, through the front end.
    Compiler,
    /// A graph without structure in PTX, through the front end.
    Graph,
}

/// What was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Kernels that plans were tried on.
    pub kernels: u64,
    /// Kernels for which too few launches mean something.
    pub weak: u64,
    /// Kernels that the front end refuses.
    pub unread: u64,
    /// Launches tried.
    pub launches: u64,
    /// Launches that mean nothing.
    pub dropped: u64,
    /// Plans that were accepted.
    pub accepted: u64,
    /// Plans that were refused.
    pub refused: u64,
    /// Runs of derived kernels: kernel × plan × launch.
    pub runs: u64,
    /// Runs and plans that were wrong.
    pub differences: u64,
    /// Kernels, accepted plans and differences by the way to IR.
    pub routes: BTreeMap<Route, [u64; 3]>,
    /// Accepted plans by each of their strategies.
    pub strategies: BTreeMap<String, u64>,
    /// What refused plans, by the rule's first words.
    pub rules: BTreeMap<String, u64>,
}

impl Counts {
    /// Adds others.
    pub fn add(&mut self, other: &Counts) {
        self.kernels += other.kernels;
        self.weak += other.weak;
        self.unread += other.unread;
        self.launches += other.launches;
        self.dropped += other.dropped;
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.runs += other.runs;
        self.differences += other.differences;
        for (route, more) in &other.routes {
            let counts = self.routes.entry(*route).or_default();
            (0..3).for_each(|number| counts[number] += more[number]);
        }
        for (name, count) in &other.strategies {
            *self.strategies.entry(name.clone()).or_default() += count;
        }
        for (rule, count) in &other.rules {
            *self.rules.entry(rule.clone()).or_default() += count;
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kernels ({} with too few launches, {} unread), {} launches ({} without meaning), {} plans accepted, {} \
             refused, {} runs, {} differences",
            self.kernels,
            self.weak,
            self.unread,
            self.launches,
            self.dropped,
            self.accepted,
            self.refused,
            self.runs,
            self.differences
        )
    }
}

/// A plan that changed what a kernel computes.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The kernel's seed.
    pub seed: u64,
    /// How it became IR.
    pub route: Route,
    /// The plan; `none` if the plain kernel differs from the program.
    pub plan: String,
    /// What is wrong.
    pub why: String,
    /// The launch's scalars, by name.
    pub scalars: Vec<String>,
    /// The program's text.
    pub source: String,
    /// The kernel, made smaller while it fails.
    pub kernel: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {} by {:?}, plan {}: {}\nscalars {}",
            self.seed,
            self.route,
            self.plan,
            self.why,
            self.scalars.join(", ")
        )?;
        write!(f, "{}\n{}", self.source, self.kernel)
    }
}

/// A kernel with launches that mean something.
pub(super) struct Subject {
    pub seed: u64,
    pub route: Route,
    pub program: Program,
    pub source: String,
    pub kernel: Kernel,
    pub tried: Vec<LaunchOutcome>,
}

/// What came of running a kernel.
enum Outcome {
    Same,
    Wrong(String),
}

impl Subject {
    /// Runs a kernel under a launch, and compares its outputs with the program's meaning.
    fn outcome(&self, compiled: &CompiledKernel, tried: &LaunchOutcome) -> Outcome {
        let options = match self.program.unordered {
            true => functional::Options::FAST,
            false => functional::Options::CHECKING,
        };
        match self.outputs(compiled, tried, options) {
            Err(error) => Outcome::Wrong(format!("it fails: {error}")),
            Ok(outputs) => self.compared(&outputs, tried),
        }
    }

    fn compared(&self, outputs: &[Vec<u8>], tried: &LaunchOutcome) -> Outcome {
        for (number, array) in self.program.arrays.iter().enumerate() {
            let expected = &tried.results[number];
            if array.written && outputs[number] != bytes_of(array.element, expected) {
                return Outcome::Wrong(format!("`{}` differs", array.name));
            }
        }
        Outcome::Same
    }

    /// The bytes of each array afterwards; none of what is not written.
    fn outputs(
        &self,
        compiled: &CompiledKernel,
        tried: &LaunchOutcome,
        options: functional::Options,
    ) -> Result<Vec<Vec<u8>>> {
        let (mut launch, memories) = tried.launch.bind(&self.program)?;
        launch.operation_limit = Some(OPERATIONS);
        compiled.run(&launch, SUB_GROUP, options, &Groups::All)?;
        let arrays = self.program.arrays.iter().zip(&memories);
        let bytes = arrays.map(|(array, memory)| {
            let mut bytes = vec![0; if array.written { memory.bytes() as usize } else { 0 }];
            memory.copy_out(0, &mut bytes)?;
            Ok(bytes)
        });
        bytes.collect()
    }

    fn target(&self) -> PlanTarget {
        PlanTarget::of([self.program.group, 1, 1])
    }

    fn difference(&self, plan: &str, why: String, tried: &LaunchOutcome, kernel: String) -> Difference {
        let scalars = self.program.scalars.iter().zip(&tried.launch.scalars);
        let mut scalars: Vec<String> = scalars
            .map(|(scalar, &bits)| format!("{} = {}", scalar.name, scalar.ty.number(bits)))
            .collect();
        for (number, array) in self.program.arrays.iter().enumerate() {
            if let Some(of) = tried.launch.aliases[number] {
                scalars.push(format!("{} is {}", array.name, self.program.arrays[of].name));
            }
        }
        Difference {
            seed: self.seed,
            route: self.route,
            plan: plan.to_owned(),
            why,
            scalars,
            source: self.source.clone(),
            kernel,
        }
    }

    /// Tries plans; what fails is made smaller.
    pub(super) fn check(&self, random: &mut Random, counts: &mut Counts) -> Vec<Difference> {
        let accepted = counts.accepted;
        let found = self.found(random, counts);
        let route = counts.routes.entry(self.route).or_default();
        *route = [
            route[0] + 1,
            route[1] + counts.accepted - accepted,
            route[2] + found.len() as u64,
        ];
        found
    }

    fn found(&self, random: &mut Random, counts: &mut Counts) -> Vec<Difference> {
        counts.kernels += 1;
        let plain = CompiledKernel::new(Arc::new(self.kernel.clone()));
        for tried in &self.tried {
            counts.launches += 1;
            if let Outcome::Wrong(why) = self.outcome(&plain, tried) {
                counts.differences += 1;
                return vec![self.difference("none", why, tried, ir::print(&self.kernel))];
            }
        }
        let mut found = Vec::new();
        for _ in 0..PLANS {
            let plan = random_plan(random, &self.kernel);
            found.extend(self.check_plan(&plan, counts));
        }
        found
    }

    fn check_plan(&self, plan: &Plan, counts: &mut Counts) -> Option<Difference> {
        let applied = match apply(&self.kernel, plan, &self.target()) {
            Ok(applied) if applied.kernel.shared_bytes() <= SHARED_BYTES => applied,
            Ok(_) => {
                counts.refused += 1;
                return None;
            }
            Err(error) if error.fault() == Fault::Bug => {
                counts.differences += 1;
                let why = error.to_string();
                let kernel = ir::print(&self.kernel);
                return Some(self.difference(&plan.to_string(), why, &self.tried[0], kernel));
            }
            Err(error) => {
                counts.refused += 1;
                *counts.rules.entry(rule(&error)).or_default() += 1;
                return None;
            }
        };
        counts.accepted += 1;
        for name in strategies_of(plan) {
            *counts.strategies.entry(name).or_default() += 1;
        }
        let derived = CompiledKernel::new(Arc::new(applied.kernel));
        for tried in &self.tried {
            counts.runs += 1;
            let outcome = self.outcome(&derived, tried);
            if let Outcome::Wrong(why) = outcome {
                counts.differences += 1;
                let small = self.shrunk(plan, tried);
                return Some(self.difference(&plan.to_string(), why, tried, ir::print(&small)));
            }
        }
        None
    }

    /// The kernel, smaller, as long as the plan makes it compute something else under this launch.
    fn shrunk(&self, plan: &Plan, tried: &LaunchOutcome) -> Kernel {
        let outputs = |kernel: Kernel| {
            let compiled = CompiledKernel::new(Arc::new(kernel));
            self.outputs(&compiled, tried, functional::Options::CHECKING)
        };
        shrink(&self.kernel, |kernel| {
            let Ok(right) = outputs(kernel.clone()) else {
                return false;
            };
            match apply(kernel, plan, &self.target()) {
                Ok(applied) => outputs(applied.kernel).ok() != Some(right),
                Err(_) => false,
            }
        })
    }
}

/// The names of a plan's strategies.
pub(crate) fn strategies_of(plan: &Plan) -> Vec<String> {
    let text = plan.to_string();
    let names = text.split(',').map(|part| {
        let strategy = part.split('=').next_back().unwrap_or(part);
        match strategy {
            "unroll:full" => strategy,
            _ => strategy.split(':').next().unwrap_or(strategy),
        }
    });
    names.map(str::to_owned).collect()
}

/// What a refusal is called: its words without names.
pub(crate) fn rule(error: &Error) -> String {
    let words = error.what().split('`').enumerate();
    let words = words.map(|(number, part)| if number % 2 == 0 { part } else { "…" });
    let text: String = words.collect();
    match text.split_once(": ") {
        Some((_, why)) => why.split(" at ").next().unwrap_or(why).to_owned(),
        None => text,
    }
}

/// Facts that are true, as a launch file would give them.
pub(crate) fn known(random: &mut Random, program: &Program, aliased: Option<(usize, usize)>) -> Vec<Known> {
    let generous = random.chance(60);
    let yes = |random: &mut Random| random.chance(if generous { 85 } else { 30 });
    let arrays = program.arrays.iter().enumerate();
    let facts = arrays.map(|(number, array)| {
        let shared = aliased.is_some_and(|(one, other)| number == one || number == other);
        Known {
            length: yes(random),
            read_only: yes(random) && !array.written && !shared,
            unaliased: yes(random) && !shared,
        }
    });
    facts.collect()
}

/// The same facts for the PTX front. Compilers number the parameters.
fn facts(random: &mut Random, program: &Program, known: &[Known], numbered: bool) -> Facts {
    let arrays = program.arrays.iter().zip(known).enumerate();
    let parameters = arrays.map(|(number, (array, known))| {
        let facts = ParameterFacts {
            length: known.length.then_some(array.length),
            read_only: known.read_only,
            unaliased: known.unaliased,
            ..ParameterFacts::default()
        };
        let name = match numbered {
            true => format!("param_{number}"),
            false => array.name.to_owned(),
        };
        (name, facts)
    });
    Facts {
        parameters: parameters.collect(),
        dynamic_shared_bytes: None,
        no_overflow: random.chance(50),
        ..Facts::default()
    }
}

/// The program of a seed with its launches, if enough of them are valid, and its known properties.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The program.
    pub program: Program,
    pub(crate) tried: Vec<LaunchOutcome>,
    pub(crate) known: Vec<Known>,
    pub(crate) random: Random,
}

/// Prepares the program of a seed.
pub(crate) fn prepared(seed: u64, counts: &mut Counts) -> Option<Prepared> {
    prepare(generate::program(seed), LAUNCHES, FEWEST, counts)
}

/// Prepares a program with up to this many launches, and at least this many.
pub(crate) fn prepare(program: Program, most: usize, fewest: usize, counts: &mut Counts) -> Option<Prepared> {
    let mut random = Random::new(program.seed);
    let aliased = random.chance(40).then_some((array::OTHER_ROWS, array::ROWS));
    let (tried, dropped) = launches(&mut random, &program, aliased, most);
    counts.dropped += dropped;
    if tried.len() < fewest {
        counts.weak += 1;
        return None;
    }
    let known = known(&mut random, &program, aliased);
    Some(Prepared {
        program,
        tried,
        known,
        random,
    })
}

impl Prepared {
    /// Tries plans on the kernel that a compiler made of the program; `module` is its PTX.
    pub(crate) fn check_module(mut self, module: &str, counts: &mut Counts) -> Vec<Difference> {
        if self.program.partial {
            counts.weak += 1;
            return Vec::new();
        }
        let (read, _) = self.import(module);
        let kernel = read.map(|imported| imported.kernel);
        self.check(kernel, Route::Compiler, counts)
    }

    /// The entry that a compiler made of the program, and the facts that it was read with; `module` is its PTX.
    pub(crate) fn import(&mut self, module: &str) -> (Result<Imported>, Facts) {
        let mut facts = facts(&mut self.random, &self.program, &self.known, true);
        let name = self.program.name();
        let read = |facts: &Facts| {
            ptx::Module::new(module, "module.ptx").and_then(|module| module.import_alone(&name, facts))
        };
        let mut imported = read(&facts);
        if let Ok(Imported { kernel, .. }) = &imported
            && self.count_as_read(&mut facts, kernel)
        {
            imported = read(&facts);
        }
        if let Ok(Imported { kernel, .. }) = &imported
            && facts.no_overflow
            && self.overflows(kernel)
        {
            facts.no_overflow = false;
            imported = read(&facts);
        }
        (imported, facts)
    }

    /// Whether a counter of the module overflows in some launch. In C none does, but a compiler may count one further than
    /// the source, or from another start; who states that none overflows states it of the module.
    fn overflows(&self, kernel: &Kernel) -> bool {
        let compiled = CompiledKernel::new(Arc::new(kernel.clone()));
        self.tried.iter().any(|tried| {
            let ran = tried
                .launch
                .bind(&self.program)
                .and_then(|(mut launch, _memories)| {
                    launch.operation_limit = Some(OPERATIONS);
                    compiled.run(&launch, SUB_GROUP, functional::Options::CHECKING, &Groups::All)
                });
            ran.is_err_and(|error| matches!(error.cause(), Some(Violation::Wraps { is_signed: true, .. })))
        })
    }

    /// Lengths count the elements that the module reads: compilers read bytes of an `unsigned` where those are enough.
    /// Says whether any length has changed.
    fn count_as_read(&self, facts: &mut Facts, kernel: &Kernel) -> bool {
        let mut changed = false;
        for (number, array) in self.program.arrays.iter().enumerate() {
            let name = format!("param_{number}");
            let param = kernel.params.iter().find(|param| param.name == name);
            let (Some(read), Some(known)) = (
                param.and_then(|param| param.facts),
                facts.parameters.get_mut(&name),
            ) else {
                continue;
            };
            let bytes = array.length * u64::from(array.element.ir().bytes());
            let length = known.length.map(|_| bytes / u64::from(read.element.bytes()));
            changed |= known.length != length;
            known.length = length;
        }
        changed
    }

    fn check(mut self, kernel: Result<Kernel>, route: Route, counts: &mut Counts) -> Vec<Difference> {
        let kernel = match kernel {
            Ok(kernel) => kernel,
            Err(error) => {
                counts.unread += 1;
                *counts
                    .rules
                    .entry(format!("not read: {}", rule(&error)))
                    .or_default() += 1;
                return Vec::new();
            }
        };
        let source = super::cuda(&self.program);
        let Prepared { program, tried, .. } = self;
        let subject = Subject {
            seed: program.seed,
            route,
            program,
            source,
            kernel,
            tried,
        };
        subject.check(&mut self.random, counts)
    }
}

/// Tries plans on the kernel of a seed: of a program, by one of our ways, or of a graph.
pub fn trial(seed: u64, counts: &mut Counts) -> Vec<Difference> {
    if seed % 5 == 4 {
        return match graphs::subject(seed, counts) {
            Some((subject, mut random)) => subject.check(&mut random, counts),
            None => Vec::new(),
        };
    }
    let Some(mut prepared) = prepared(seed, counts) else {
        return Vec::new();
    };
    let random = &mut prepared.random;
    let kernel = translate(&prepared.program, &prepared.known, Style::random(random));
    // A return in front of a barrier is a jump to the end in PTX, which is taken for work-items that do not come.
    let (kernel, route) = match seed % 5 < 2 || prepared.program.partial {
        true => (kernel, Route::Translator),
        false => {
            let facts = facts(random, &prepared.program, &prepared.known, false);
            let text = kernel.and_then(|kernel| written(&kernel));
            let kernel = text.and_then(|text| ptx::read(&text, "source.ptx", None, &facts));
            (kernel, Route::Ptx)
        }
    };
    prepared.check(kernel, route, counts)
}

/// A kernel as our back end writes it.
pub(crate) fn written(kernel: &Kernel) -> Result<String> {
    Ok(emit(kernel, &Options::new(PtxTarget::Sm90))?.text)
}
