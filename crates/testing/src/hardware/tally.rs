//! What a campaign on a GPU has tried and found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counts of a campaign, or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Files of entries.
    pub files: u64,
    /// Programs that were generated.
    pub generated: u64,
    /// Entries that a compiler was given: programs with enough launches that mean something. All shares are of these.
    pub entries: u64,
    /// Entries that the front end reads.
    pub read: u64,
    /// Of these, entries with a load in a loop.
    pub looped: u64,
    /// Of these, entries with a legal plan: the entries that count.
    pub planned: u64,
    /// Entries without a legal plan, by what refuses them.
    pub refused: BTreeMap<String, u64>,
    /// The seed of an entry that each of these refuses.
    #[serde(default)]
    pub refused_seeds: BTreeMap<String, u64>,
    /// Plans that are legal.
    pub legal: u64,
    /// Plans that are refused, by rule.
    pub rules: BTreeMap<String, u64>,
    /// Legal plans by each of their strategies.
    pub strategies: BTreeMap<String, u64>,
    /// Launches of original entries on the GPU.
    pub launches: u64,
    /// Launches of planned entries on the GPU, compared with the original's.
    pub pairs: u64,
    /// Launches of planned entries that the driver refuses.
    pub not_launched: u64,
    /// Entries whose results the engine was compared with.
    pub engine: u64,
    /// Of these, entries with sums left to the assembler, of which one choice agrees.
    pub engine_by_choice: u64,
    /// Entries with too many such sums.
    pub engine_open: u64,
    /// Plans' texts that were read again and run by the engine.
    #[serde(default)]
    pub read_again: u64,
    /// Modules that the assembler was not done with in time.
    pub slow: u64,
    /// What was found, by kind.
    pub differences: BTreeMap<String, u64>,
    /// Entries that the engine does not run, by what it says.
    pub engine_fails: BTreeMap<String, u64>,
    /// Entries, those that the engine has other bits of, and those that a plan changes, by what an aside of theirs does.
    pub features: BTreeMap<String, [u64; 3]>,
    /// The same by the compiler's options.
    pub options: BTreeMap<String, [u64; 3]>,
    /// Seconds of all threads together, by stage.
    pub seconds: BTreeMap<String, f64>,
}

impl Tally {
    /// Adds others.
    pub fn add(&mut self, other: &Tally) {
        fn sum<K: Ord + Clone, V: Copy + Default>(
            into: &mut BTreeMap<K, V>,
            other: &BTreeMap<K, V>,
            add: impl Fn(V, V) -> V,
        ) {
            for (key, more) in other {
                let own = into.entry(key.clone()).or_default();
                *own = add(*own, *more);
            }
        }
        let three = |a: [u64; 3], b: [u64; 3]| [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
        self.files += other.files;
        self.generated += other.generated;
        self.entries += other.entries;
        self.read += other.read;
        self.looped += other.looped;
        self.planned += other.planned;
        self.legal += other.legal;
        self.launches += other.launches;
        self.pairs += other.pairs;
        self.not_launched += other.not_launched;
        self.engine += other.engine;
        self.engine_by_choice += other.engine_by_choice;
        self.engine_open += other.engine_open;
        self.slow += other.slow;
        self.read_again += other.read_again;
        sum(&mut self.refused, &other.refused, |a, b| a + b);
        for (rule, seed) in &other.refused_seeds {
            self.refused_seeds.entry(rule.clone()).or_insert(*seed);
        }
        sum(&mut self.rules, &other.rules, |a, b| a + b);
        sum(&mut self.strategies, &other.strategies, |a, b| a + b);
        sum(&mut self.differences, &other.differences, |a, b| a + b);
        sum(&mut self.engine_fails, &other.engine_fails, |a, b| a + b);
        sum(&mut self.seconds, &other.seconds, |a, b| a + b);
        sum(&mut self.features, &other.features, three);
        sum(&mut self.options, &other.options, three);
    }

    /// Counts an entry that is refused.
    pub(super) fn refuse(&mut self, rule: String, seed: u64) {
        self.refused_seeds.entry(rule.clone()).or_insert(seed);
        Tally::count(&mut self.refused, rule);
    }

    /// Counts one more.
    pub(super) fn count(into: &mut BTreeMap<String, u64>, key: impl Into<String>) {
        *into.entry(key.into()).or_default() += 1;
    }
}

/// Something that differs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Found {
    /// What kind of difference.
    pub kind: &'static str,
    /// The program's seed.
    pub seed: u64,
    /// The compiler and its options.
    pub options: String,
    /// What its asides do.
    pub features: Vec<&'static str>,
    /// The plan; none of the entry as it was.
    pub plan: Option<String>,
    /// The launch, by number, and its scalars.
    pub launch: usize,
    /// The launch's scalars, by name.
    pub scalars: Vec<String>,
    /// What is wrong.
    pub why: String,
    /// The program.
    pub source: String,
    /// The entry as the compiler wrote it, with what else its module has.
    pub module: String,
    /// The module with the plan.
    pub planned: String,
}

impl Found {
    /// The same without its texts.
    #[must_use]
    pub fn brief(self) -> Found {
        Found {
            source: String::new(),
            module: String::new(),
            planned: String::new(),
            ..self
        }
    }
}
