//! A file of random programs on its way through the compiler, the front end, plans, the assembler, the GPU and the engine.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::entry::{self, Drawn, Laid, Opinion};
use super::job::{Job, Ran, Trial};
use super::pool::{Done, Pool};
use super::tally::{Found, Tally};
use crate::Random;
use crate::device::cuda::failure::FailureKind;
use crate::device::cuda::ptxas::assembled_by;
use crate::front::ptx::{Facts, Imported};
use crate::source::asides::{PRELUDE, weave};
use crate::source::campaign::{Counts, Prepared, prepare, rule, strategies_of};
use crate::source::compilers::{Compiler, apart, nvcc_for};
use crate::source::{cuda, program};
use crate::tools;

/// How long the assembler may take for a module of a file.
const ASSEMBLY: Duration = Duration::from_secs(150);

/// How files are tried.
pub struct Settings {
    compiler: Compiler,
    /// Without one the driver's compiler gets the text.
    assembler: Option<PathBuf>,
    generation: String,
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
    /// For a GPU of this compute capability, with the tools that are here.
    ///
    /// # Errors
    /// A tool is missing.
    pub fn new((major, minor): (u32, u32), by_driver: bool, folder: &Path) -> Result<Settings, String> {
        let generation = format!("sm_{major}{minor}");
        let assembler = match by_driver {
            true => None,
            false => Some(
                tools::program("ptxas").ok_or("no ptxas; HEADSTART_TOOLS names a folder with bin/ptxas")?,
            ),
        };
        Ok(Settings {
            compiler: nvcc_for(&generation, PRELUDE)
                .ok_or("no nvcc; HEADSTART_TOOLS names a folder with bin/nvcc")?,
            assembler,
            generation,
            folder: folder.to_owned(),
            plans: 6,
            launches: 4,
            engine: true,
        })
    }

    /// A module as an image in a file.
    pub(super) fn image(&self, text: &str, name: &str) -> Result<PathBuf, (FailureKind, String)> {
        let path = self.folder.join(name);
        let written = |bytes: &[u8]| {
            std::fs::write(&path, bytes)
                .map_err(|error| (FailureKind::Request, format!("{}: {error}", path.display())))
        };
        match &self.assembler {
            None => written(text.as_bytes())?,
            Some(program) => {
                let code = assembled_by(program.as_os_str(), "", &self.generation, ASSEMBLY, text);
                written(&code.map_err(|failure| (failure.kind, failure.log + &failure.what))?)?;
            }
        }
        Ok(path)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// An entry of the file.
struct Entry {
    prepared: Prepared,
    /// The entry with all that is no entry.
    module: String,
    read: Option<(Imported, Facts)>,
    drawn: Drawn,
    laid: Vec<Laid>,
    /// The images of its plans, in their order; none where the assembler failed.
    images: Vec<Option<usize>>,
}

/// Tries the programs of these seeds as one file, at the options of the file's number. Without a GPU only the engine runs them.
///
/// # Errors
/// The compiler refuses the file, or a worker cannot be started.
pub fn check_file(
    settings: &Settings,
    pool: Option<&Pool>,
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
    let mut entries = run.entries(seeds)?;
    run.read_again(&entries);
    let Some(pool) = pool.filter(|_| !entries.is_empty()) else {
        return Ok((run.tally, run.found));
    };
    let paths = run.assemble(&mut entries)?;
    let mut data = Vec::new();
    for entry in &mut entries {
        let laid = entry
            .prepared
            .tried
            .iter()
            .map(|tried| entry::laid(&entry.prepared, tried, &mut data));
        entry.laid = laid.collect();
    }
    let job = run.job(&entries, paths, &data)?;
    let done = pool.run(&job)?;
    let results = std::fs::read(&job.results).map_err(|error| error.to_string())?;
    run.lap("GPU");
    run.judge(&entries, &done, &results);
    for path in job.images.iter().chain([&job.data, &job.results]) {
        let _ = std::fs::remove_file(path);
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
            laid: Vec::new(),
            images: Vec::new(),
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
            for planned in &entry.drawn.legal {
                self.tally.read_again += 1;
                let differs = entry::differs(&entry.prepared, imported, facts, planned, &wanted);
                if let Some((launch, why)) = differs {
                    let plan = Some(planned.plan.to_string());
                    let mut found = self.of(entry, "a plan's text is another kernel", plan, launch, why);
                    found.planned.clone_from(&planned.text);
                    self.report(found);
                }
            }
        }
        self.lap("read again");
    }

    /// The images: the first has the entries as they were, each other one a plan of each.
    fn assemble(&mut self, entries: &mut [Entry]) -> Result<Vec<PathBuf>, String> {
        let (shared, _) = apart(&entries[0].module);
        let whole = |bodies: &[&str]| format!("{shared}{}", bodies.concat());
        let mut paths: Vec<PathBuf> = Vec::new();
        let mut add = |text: &str| {
            let name = format!("{}-{}.image", self.file, paths.len());
            paths.push(self.settings.image(text, &name)?);
            Ok::<usize, (FailureKind, String)>(paths.len() - 1)
        };
        let originals: Vec<&str> = entries
            .iter()
            .map(|entry| &entry.module[shared.len()..])
            .collect();
        add(&whole(&originals))
            .map_err(|(_, why)| format!("what the compiler wrote is not assembled: {why}"))?;
        let mut refused: Vec<(usize, usize, String)> = Vec::new();
        for slot in 0..self.settings.plans {
            let having = (0..entries.len()).filter(|number| entries[*number].drawn.legal.len() > slot);
            let having: Vec<usize> = having.collect();
            let text = |number: usize, entries: &[Entry]| entries[number].drawn.legal[slot].text.clone();
            let bodies: Vec<String> = having.iter().map(|number| text(*number, entries)).collect();
            let bodies: Vec<&str> = bodies.iter().map(|body| after(body, &shared)).collect();
            if having.is_empty() {
                break;
            }
            let together = add(&whole(&bodies));
            self.tally.slow += u64::from(matches!(together, Err((FailureKind::Resources, _))));
            for number in having {
                let image = match &together {
                    Ok(image) => Ok(*image),
                    // Which of them it is, one by one says.
                    Err((FailureKind::Compilation, _)) => add(&text(number, entries)),
                    Err(other) => Err(other.clone()),
                };
                if let Err((FailureKind::Compilation, why)) = &image {
                    refused.push((number, slot, why.clone()));
                }
                entries[number].images.push(image.ok());
            }
        }
        for (number, slot, why) in refused {
            let planned = &entries[number].drawn.legal[slot];
            let plan = Some(planned.plan.to_string());
            let mut found = self.of(
                &entries[number],
                "the assembler refuses the plan's text",
                plan,
                0,
                why,
            );
            found.planned.clone_from(&planned.text);
            self.report(found);
        }
        self.lap("assembled");
        Ok(paths)
    }

    fn job(&self, entries: &[Entry], images: Vec<PathBuf>, data: &[u8]) -> Result<Job, String> {
        let job = Job {
            images,
            data: self.settings.path(&format!("{}.data", self.file)),
            results: self.settings.path(&format!("{}.results", self.file)),
            trials: entries.iter().enumerate().map(trial).collect(),
        };
        let written = std::fs::write(&job.data, data).and_then(|()| std::fs::write(&job.results, data));
        written.map_err(|error| format!("{}: {error}", job.data.display()))?;
        Ok(job)
    }

    /// Counts what came of the job, and compares with the engine.
    fn judge(&mut self, entries: &[Entry], done: &Done, results: &[u8]) {
        for (image, why) in &done.not_loaded {
            let number = entries
                .iter()
                .position(|entry| *image == 0 || entry.images.contains(&Some(*image)));
            let found = self.of(
                &entries[number.unwrap_or(0)],
                "an image is not loaded",
                None,
                0,
                why.clone(),
            );
            self.report(found);
        }
        for (entry, tried) in entries.iter().zip(&done.trials) {
            let mut changed = false;
            let plan_of = |image: usize| {
                let slot = entry.images.iter().position(|own| *own == Some(image))?;
                Some(&entry.drawn.legal[slot])
            };
            for (image, launch, why) in &tried.lost {
                let planned = plan_of(*image);
                let kind = if planned.is_some() {
                    "a plan faults or hangs"
                } else {
                    "the entry faults or hangs"
                };
                changed |= planned.is_some();
                let mut found = self.of(
                    entry,
                    kind,
                    planned.map(|planned| planned.plan.to_string()),
                    *launch,
                    why.clone(),
                );
                found.planned = planned.map(|planned| planned.text.clone()).unwrap_or_default();
                self.report(found);
            }
            if tried.ran {
                self.tally.launches += entry.laid.len() as u64;
            }
            for (image, ran) in &tried.images {
                let Some(planned) = plan_of(*image) else { continue };
                changed |= self.pairs(entry, planned, ran);
            }
            let engine = match (&entry.read, tried.ran && self.settings.engine) {
                (Some((imported, facts)), true) => self.engine(entry, imported, facts, results),
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
        self.lap("engine");
    }

    /// Counts the launches of a plan; true if one differs.
    fn pairs(&mut self, entry: &Entry, planned: &entry::Planned, ran: &[Ran]) -> bool {
        let mut first = true;
        for (launch, ran) in ran.iter().enumerate() {
            match ran {
                Ran::Same => self.tally.pairs += 1,
                Ran::Refused(_) => self.tally.not_launched += 1,
                Ran::Differs {
                    at,
                    bytes,
                    found,
                    wanted,
                    steady,
                } => {
                    self.tally.pairs += 1;
                    if !std::mem::take(&mut first) {
                        continue;
                    }
                    let array = place(entry, launch, *at);
                    let why = format!(
                        "{bytes} bytes differ, first in {array}: {} instead of {}",
                        hex(found),
                        hex(wanted)
                    );
                    let kind = if *steady {
                        "a plan changes bits"
                    } else {
                        "the entry differs from itself"
                    };
                    let mut found = self.of(entry, kind, Some(planned.plan.to_string()), launch, why);
                    found.planned.clone_from(&planned.text);
                    self.report(found);
                }
            }
        }
        !first
    }

    /// Asks the engine; true if it has other bits.
    fn engine(&mut self, entry: &Entry, imported: &Imported, facts: &Facts, results: &[u8]) -> bool {
        let opinion = entry::compared(
            &entry.prepared,
            &entry.module,
            imported,
            facts,
            &entry.laid,
            results,
        );
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
            Opinion::Differs {
                launch,
                array,
                at,
                bytes,
                engine,
                gpu,
            } => {
                self.tally.engine += 1;
                let why = format!(
                    "{bytes} bytes of `{array}` differ from byte {at} on: the engine has {}, the GPU {}",
                    hex(&engine),
                    hex(&gpu)
                );
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

fn trial((number, entry): (usize, &Entry)) -> Trial {
    let program = &entry.prepared.program;
    Trial {
        number,
        entry: program.name(),
        groups: program.groups,
        group: program.group,
        images: std::iter::once(0)
            .chain(entry.images.iter().copied().flatten())
            .collect(),
        launches: entry.laid.iter().map(|laid| laid.arena.clone()).collect(),
    }
}

/// What a rewritten module has behind the part that all entries share.
fn after<'t>(text: &'t str, shared: &str) -> &'t str {
    match text.strip_prefix(shared) {
        Some(body) => body,
        None => text,
    }
}

/// The array that a byte of an arena lies in, and where.
fn place(entry: &Entry, launch: usize, at: u64) -> String {
    let arrays = entry
        .prepared
        .program
        .arrays
        .iter()
        .zip(&entry.laid[launch].starts);
    let inside = arrays.rev().find(|(array, start)| {
        at >= **start && at < **start + array.length * u64::from(array.element.ir().bytes())
    });
    match inside {
        Some((array, start)) => format!("`{}` at byte {}", array.name, at - start),
        None => format!("what lies between the arrays, at byte {at}"),
    }
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
