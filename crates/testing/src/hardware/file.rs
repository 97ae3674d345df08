//! A file of random programs on its way through the compiler, the front end, plans, the assembler, the GPU and the engine.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::entry::{self, Drawn, OnGpu, Opinion, Place, Ran, Results};
use super::tally::{Found, Tally};
use crate::Random;
use crate::device::cuda::failure::FailureKind;
use crate::device::cuda::worker::Worker;
use crate::front::ptx::{Facts, Imported};
use crate::source::asides::{PRELUDE, weave};
use crate::source::campaign::{Counts, Prepared, prepare, rule, strategies_of};
use crate::source::compilers::{Compiler, apart, nvcc_for};
use crate::source::{cuda, program};

/// How files are tried.
pub struct Settings {
    compiler: Compiler,
    /// For files in between.
    folder: PathBuf,
    /// Plans for an entry at most.
    pub plans: usize,
    /// Launches of an entry.
    pub launches: usize,
    /// Whether the functional engine runs the entries.
    pub engine: bool,
}

impl Settings {
    /// For a GPU of this compute capability.
    ///
    /// # Errors
    /// There is no nvcc.
    pub fn new((major, minor): (u32, u32), folder: &Path) -> Result<Settings, String> {
        Ok(Settings {
            compiler: nvcc_for(&format!("sm_{major}{minor}"), PRELUDE)
                .ok_or("no nvcc; HEADSTART_TOOLS names a folder with bin/nvcc")?,
            folder: folder.to_owned(),
            plans: 6,
            launches: 4,
            engine: true,
        })
    }
}

/// An entry of the file.
struct Entry {
    prepared: Prepared,
    /// The entry with all that is no entry.
    module: String,
    read: Option<(Imported, Facts)>,
    drawn: Drawn,
}

/// Tries the programs of these seeds as one file, at the options of the file's number. Without a GPU only the engine runs them.
///
/// # Errors
/// The compiler refuses the file, or the worker has no GPU any more.
pub fn check_file(
    settings: &Settings,
    worker: Option<&mut Worker>,
    seeds: Range<u64>,
    file: u64,
) -> Result<(Tally, Vec<Found>), String> {
    let mut run = Run {
        settings,
        file,
        options: settings.compiler.called(file),
        tally: Tally {
            files: 1,
            ..Tally::default()
        },
        found: Vec::new(),
        since: Instant::now(),
    };
    let entries = run.entries(seeds)?;
    run.read_again(&entries);
    if let Some(worker) = worker {
        for entry in &entries {
            let plans = entry.drawn.legal.iter().map(|planned| &planned.text[..]);
            let texts: Vec<&str> = std::iter::once(&entry.module[..]).chain(plans).collect();
            let found = entry::on_gpu(worker, &entry.prepared, &texts).map_err(|failure| failure.what)?;
            run.lap("GPU");
            run.judge(entry, &found);
            run.lap("engine");
        }
    }
    Ok((run.tally, run.found))
}

struct Run<'s> {
    settings: &'s Settings,
    file: u64,
    options: String,
    tally: Tally,
    found: Vec<Found>,
    since: Instant,
}

impl Run<'_> {
    /// The time since the last lap was for this.
    fn lap(&mut self, stage: &str) {
        let seconds = self.since.elapsed().as_secs_f64();
        *self.tally.seconds.entry(stage.to_owned()).or_default() += seconds;
        self.since = Instant::now();
    }

    /// The programs, compiled, read and given plans.
    fn entries(&mut self, seeds: Range<u64>) -> Result<Vec<Entry>, String> {
        let mut programs = Vec::new();
        let launches = self.settings.launches;
        for seed in seeds {
            let mut plain = program(seed);
            self.tally.generated += 1;
            // A compiler may move plain loads across volatile ones, where no fence is.
            if plain.partial || plain.unordered {
                continue;
            }
            // Some stay as they are.
            if seed % 5 != 4 {
                weave(&mut plain, &mut Random::new(seed ^ 0x00a5_1de5));
            }
            programs.extend(prepare(plain, launches, launches, &mut Counts::default()));
        }
        self.lap("generated");
        self.tally.entries += programs.len() as u64;
        if programs.is_empty() {
            return Ok(Vec::new());
        }
        let compiler = &self.settings.compiler;
        let module = compiler.module(&programs, self.file, &self.settings.folder);
        let module = module.map_err(|said| format!("{}: {said}", self.options))?;
        self.lap("compiled");
        let (shared, bodies) = apart(&module);
        let bodies: BTreeMap<&str, &str> = bodies.into_iter().collect();
        let mut entries = Vec::new();
        for prepared in programs {
            let name = prepared.program.name();
            let body = bodies
                .get(name.as_str())
                .ok_or_else(|| format!("no entry {name}"))?;
            entries.push(self.entry(prepared, format!("{shared}{body}")));
        }
        self.lap("read and planned");
        Ok(entries)
    }

    fn entry(&mut self, mut prepared: Prepared, module: String) -> Entry {
        let (imported, facts) = prepared.import(&module);
        let mut entry = Entry {
            prepared,
            module,
            read: None,
            drawn: Drawn::default(),
        };
        for feature in features(&entry) {
            self.tally.features.entry((*feature).to_owned()).or_default()[0] += 1;
        }
        self.tally.options.entry(self.options.clone()).or_default()[0] += 1;
        let imported = match imported {
            Ok(imported) => imported,
            Err(error) => {
                let seed = entry.prepared.program.seed;
                self.tally.refuse(format!("not read: {}", rule(&error)), seed);
                return entry;
            }
        };
        self.tally.read += 1;
        let group = entry.prepared.program.group;
        let mut random = entry.prepared.random.clone();
        entry.drawn = entry::planned(&imported, group, &mut random, self.settings.plans);
        entry.read = Some((imported, facts));
        self.count_plans(&entry);
        entry
    }

    fn count_plans(&mut self, entry: &Entry) {
        let drawn = &entry.drawn;
        let looped = entry
            .read
            .as_ref()
            .is_some_and(|(imported, _)| entry::has_looped_load(&imported.kernel));
        self.tally.looped += u64::from(looped);
        self.tally.planned += u64::from(looped && !drawn.legal.is_empty());
        self.tally.legal += drawn.legal.len() as u64;
        for (rule, count) in &drawn.refused {
            *self.tally.rules.entry(rule.clone()).or_default() += count;
        }
        for planned in &drawn.legal {
            for name in strategies_of(&planned.plan) {
                Tally::count(&mut self.tally.strategies, name);
            }
        }
        for (plan, why) in &drawn.bugs {
            let found = self.of(entry, "bug", Some(plan.clone()), 0, why.clone());
            self.report(found);
        }
        if drawn.legal.is_empty() {
            let why = match looped {
                false => "no load in a loop",
                true => drawn
                    .refused
                    .iter()
                    .max_by_key(|(_, count)| **count)
                    .map_or("no plan", |(rule, _)| rule),
            };
            let seed = entry.prepared.program.seed;
            self.tally.refuse(format!("no legal plan: {why}"), seed);
        }
    }

    /// Compares what the engine makes of each plan's text with what it makes of the entry.
    fn read_again(&mut self, entries: &[Entry]) {
        for entry in entries.iter().filter(|_| self.settings.engine) {
            let Some((imported, facts)) = &entry.read else {
                continue;
            };
            let Some(wanted) = entry::ran(&entry.prepared, imported) else {
                continue;
            };
            for (number, planned) in entry.drawn.legal.iter().enumerate() {
                self.tally.read_again += 1;
                let differs = entry::differs(&entry.prepared, imported, facts, planned, &wanted);
                if let Some((launch, why)) = differs {
                    self.report_plan(entry, number, "a plan's text is another kernel", launch, why);
                }
            }
        }
        self.lap("read again");
    }

    /// Counts what came of an entry on the GPU, and compares with the engine.
    fn judge(&mut self, entry: &Entry, gpu: &OnGpu) {
        if let Some((launch, failure)) = &gpu.failed {
            let kind = match failure.kind.poisons() {
                true => "the entry faults or hangs",
                false => "the entry is not run",
            };
            let found = self.of(entry, kind, None, *launch, failure.what.clone());
            self.report(found);
        }
        self.tally.launches += gpu.results.len() as u64;
        for (number, failure) in &gpu.refused {
            match failure.kind {
                FailureKind::Compilation => {
                    let why = [&failure.log[..], &failure.what].concat();
                    self.report_plan(entry, *number, "the assembler refuses the plan's text", 0, why);
                }
                _ => self.tally.slow += 1,
            }
        }
        let mut changed = false;
        for (number, ran) in &gpu.plans {
            changed |= self.pairs(entry, *number, ran);
        }
        let engine = match (&entry.read, gpu.failed.is_none() && self.settings.engine) {
            (Some((imported, facts)), true) => self.engine(entry, imported, facts, &gpu.results),
            _ => false,
        };
        for (number, differs) in [(1, engine), (2, changed)] {
            if differs {
                for feature in features(entry) {
                    self.tally.features.entry((*feature).to_owned()).or_default()[number] += 1;
                }
                self.tally.options.entry(self.options.clone()).or_default()[number] += 1;
            }
        }
    }

    /// Counts the launches of a plan; true if one differs.
    fn pairs(&mut self, entry: &Entry, number: usize, ran: &[Ran]) -> bool {
        let mut first = None;
        for (launch, ran) in ran.iter().enumerate() {
            match ran {
                Ran::Same => self.tally.pairs += 1,
                Ran::Refused => self.tally.not_launched += 1,
                Ran::Lost(why) => {
                    first.get_or_insert((launch, "a plan faults or hangs", why.clone()));
                }
                Ran::Differs { place, steady } => {
                    self.tally.pairs += 1;
                    let kind = match steady {
                        true => "a plan changes bits",
                        false => "the entry differs from itself",
                    };
                    first.get_or_insert((launch, kind, words(place)));
                }
            }
        }
        let differs = first.is_some();
        if let Some((launch, kind, why)) = first {
            self.report_plan(entry, number, kind, launch, why);
        }
        differs
    }

    fn report_plan(&mut self, entry: &Entry, number: usize, kind: &'static str, launch: usize, why: String) {
        let planned = &entry.drawn.legal[number];
        let found = self.of(entry, kind, Some(planned.plan.to_string()), launch, why);
        self.report(Found {
            planned: planned.text.clone(),
            ..found
        });
    }

    /// Asks the engine; true if it has other bits.
    fn engine(&mut self, entry: &Entry, imported: &Imported, facts: &Facts, results: &Results) -> bool {
        let opinion = entry::compared(&entry.prepared, &entry.module, imported, facts, results);
        match opinion {
            Opinion::Open => self.tally.engine_open += 1,
            Opinion::Same => {
                self.tally.engine += 1;
                self.tally.engine_by_choice += u64::from(!imported.original.open_sums.is_empty());
            }
            Opinion::Fails { launch, rule, why } => {
                Tally::count(&mut self.tally.engine_fails, rule);
                let found = self.of(entry, "the engine does not run it", None, launch, why);
                self.report(found);
            }
            Opinion::Differs { launch, place } => {
                self.tally.engine += 1;
                let why = format!("{}, as the GPU has them", words(&place));
                let found = self.of(entry, "the engine has other bits", None, launch, why);
                self.report(found);
                return true;
            }
        }
        false
    }

    fn of(
        &self,
        entry: &Entry,
        kind: &'static str,
        plan: Option<String>,
        launch: usize,
        why: String,
    ) -> Found {
        let program = &entry.prepared.program;
        let tried = entry.prepared.tried.get(launch);
        let scalars = program
            .scalars
            .iter()
            .zip(tried.into_iter().flat_map(|tried| &tried.launch.scalars));
        Found {
            kind,
            seed: program.seed,
            options: self.options.clone(),
            features: features(entry).to_vec(),
            plan,
            launch,
            scalars: scalars
                .map(|(scalar, &bits)| format!("{} = {}", scalar.name, scalar.ty.number(bits)))
                .collect(),
            why,
            source: cuda(program),
            module: entry.module.clone(),
            planned: String::new(),
        }
    }

    fn report(&mut self, found: Found) {
        Tally::count(&mut self.tally.differences, found.kind);
        self.found.push(found);
    }
}

fn features(entry: &Entry) -> &[&'static str] {
    match &entry.prepared.program.aside {
        Some(aside) => &aside.features,
        None => &["none"],
    }
}

fn words(place: &Place) -> String {
    let Place {
        array,
        at,
        bytes,
        found,
        wanted,
    } = place;
    let (found, wanted) = (hex(found), hex(wanted));
    format!("{bytes} bytes of `{array}` differ from byte {at} on: {found} instead of {wanted}")
}

fn hex(bytes: &[u8]) -> String {
    let words = bytes.chunks(4).map(|word| {
        word.iter()
            .rev()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    });
    words.collect::<Vec<String>>().join(" ")
}
