//! Every conversion that PTX has between two number types, on 65,536 numbers each: the GPU's bits against what the front end
//! and `ir::eval` make of it. Types of up to 16 bits are tried on all their numbers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::entry::{laid, run};
use super::file::Settings;
use super::job::{Job, Trial};
use super::pool::Pool;
use crate::Random;
use crate::device::cuda::ptxas::assembled_by;
use crate::front::ptx::{Facts, ParameterFacts, import};
use crate::source::Launch;
use crate::source::campaign::{Prepared, rule};
use crate::source::launches::{LaunchOutcome, bytes_of, unusual_float};
use crate::source::tree::{ArrayParameter, Content, Program, Scalar};
use crate::tools;

/// Numbers that each conversion is tried on.
const SAMPLES: u64 = 1 << 16;
/// Conversions in one module.
const A_MODULE: usize = 40;
/// Differences that are shown.
const SHOWN: usize = 8;
/// Work-items of a work-group.
const GROUP: u32 = 256;

/// A number type of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    name: &'static str,
    bits: u32,
    /// Bits of a float's exponent and mantissa.
    float: Option<(u32, u32)>,
}

const fn integer(name: &'static str, bits: u32) -> Kind {
    Kind {
        name,
        bits,
        float: None,
    }
}

const fn float(name: &'static str, exponent: u32, mantissa: u32) -> Kind {
    let bits = exponent + mantissa + 1;
    Kind {
        name,
        bits,
        float: Some((exponent, mantissa)),
    }
}

const KINDS: [Kind; 12] = [
    float("f16", 5, 10),
    float("bf16", 8, 7),
    float("f32", 8, 23),
    float("f64", 11, 52),
    integer("u8", 8),
    integer("s8", 8),
    integer("u16", 16),
    integer("s16", 16),
    integer("u32", 32),
    integer("s32", 32),
    integer("u64", 64),
    integer("s64", 64),
];

impl Kind {
    /// Where a number of it is kept; what is narrower than 32 bits and no float comes to 32 bits as the instruction leaves it.
    fn kept(self) -> Scalar {
        match (self.float, self.bits) {
            (Some(_), 16) => Scalar::U16,
            (_, 64) => Scalar::U64,
            _ => Scalar::U32,
        }
    }

    /// Where a number of it comes from.
    fn given(self) -> Scalar {
        match self.bits {
            8 => Scalar::U8,
            16 => Scalar::U16,
            32 => Scalar::U32,
            _ => Scalar::U64,
        }
    }

    /// A register of it, as a source or as a result.
    fn register(self, result: bool) -> &'static str {
        match (self.float, self.bits, result) {
            (Some(_), 16, false) => "%h1",
            (Some(_), 16, true) => "%h2",
            (Some(_), 32, false) => "%f1",
            (Some(_), 32, true) => "%f2",
            (Some(_), _, false) => "%d1",
            (Some(_), _, true) => "%d2",
            (None, 8 | 16, false) => "%h1",
            (None, 64, false) => "%rd7",
            (None, 64, true) => "%rd8",
            (None, _, false) => "%r5",
            (None, _, true) => "%r6",
        }
    }

    fn samples(self, random: &mut Random) -> Vec<u64> {
        let mask = u64::MAX >> (64 - self.bits);
        let mut one = |number: u64| match (self.float, self.bits) {
            (_, 8 | 16) => number & mask,
            (Some((exponent, mantissa)), _) if random.chance(75) => unusual_float(random, exponent, mantissa),
            (None, _) if random.chance(75) => {
                // Near powers of two, and those with few bits.
                let power = 1u64 << random.below(u64::from(self.bits));
                let near = power.wrapping_add(random.below(5)).wrapping_sub(2);
                let more = random
                    .chance(40)
                    .then(|| 1u64 << random.below(u64::from(self.bits)));
                let number = near ^ more.unwrap_or(0);
                (if random.chance(50) {
                    number.wrapping_neg()
                } else {
                    number
                }) & mask
            }
            _ => random.bits() & mask,
        };
        (0..SAMPLES).map(&mut one).collect()
    }

    fn is_nan(self, bits: u64) -> bool {
        self.float.is_some_and(|(exponent, mantissa)| {
            let infinity = ((1u64 << exponent) - 1) << mantissa;
            bits & (u64::MAX >> (65 - self.bits)) > infinity
        })
    }
}

/// An instruction, and its types.
struct Form {
    text: String,
    from: Kind,
    to: Kind,
}

/// All that may be written; the assembler says which of them PTX has.
fn forms() -> Vec<Form> {
    const TO_WHOLE: &[&str] = &[".rni", ".rzi", ".rmi", ".rpi"];
    const TO_FLOAT: &[&str] = &[".rn", ".rz", ".rm", ".rp"];
    const BETWEEN: &[&str] = &["", ".rn", ".rz", ".rm", ".rp", ".rna"];
    const SAME: &[&str] = &["", ".rni", ".rzi", ".rmi", ".rpi"];
    let mut forms = Vec::new();
    for from in KINDS {
        for to in KINDS {
            let roundings = match (from.float, to.float) {
                (Some(_), None) => TO_WHOLE,
                (None, Some(_)) => TO_FLOAT,
                (None, None) => &[""],
                (Some(_), Some(_)) if from == to => SAME,
                (Some(_), Some(_)) => BETWEEN,
            };
            let has_single = from.name == "f32" || to.name == "f32";
            for rounding in roundings {
                for flush in ["", ".ftz"].into_iter().take(if has_single { 2 } else { 1 }) {
                    for limit in ["", ".sat", ".relu"] {
                        if limit == ".relu" && (from.name != "f32" || to.bits != 16 || to.float.is_none()) {
                            continue;
                        }
                        let text = match limit {
                            ".relu" => format!("cvt{rounding}{limit}.{}.{}", to.name, from.name),
                            _ => format!("cvt{rounding}{flush}{limit}.{}.{}", to.name, from.name),
                        };
                        if !forms.iter().any(|form: &Form| form.text == text) {
                            forms.push(Form { text, from, to });
                        }
                    }
                }
            }
        }
    }
    forms
}

const HEADER: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

impl Form {
    fn entry(&self, name: &str) -> String {
        let (from, to) = (self.from, self.to);
        let bytes = |scalar: Scalar| scalar.ir().bytes();
        let load = match (from.float, from.bits) {
            (Some(_), 16) => "b16".to_owned(),
            (None, 8) => from.name.to_owned(),
            _ => format!("{}{}", if from.float.is_some() { "f" } else { "u" }, from.bits),
        };
        let store = match (to.float, to.bits) {
            (Some(_), 16) => "b16",
            (Some(_), 32) => "f32",
            (Some(_), _) => "f64",
            (None, 64) => "u64",
            (None, _) => "u32",
        };
        format!(
            ".visible .entry {name}(.param .u64 given, .param .u64 out)\n{{\n.reg .b16 %h<3>;\n.reg .b32 %r<7>;\n.reg .f32 \
             %f<3>;\n.reg .f64 %d<3>;\n.reg .b64 %rd<9>;\nld.param.u64 %rd1, [given];\nld.param.u64 %rd2, [out];\nmov.u32 %r1, \
             %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.s32 %r4, %r1, %r2, %r3;\nmul.wide.s32 %rd3, \
             %r4, {};\nadd.s64 %rd4, %rd1, %rd3;\nld.global.{load} {}, [%rd4];\n{} {}, {};\nmul.wide.s32 %rd5, %r4, \
             {};\nadd.s64 %rd6, %rd2, %rd5;\nst.global.{store} [%rd6], {};\nret;\n}}\n",
            bytes(from.given()),
            from.register(false),
            self.text,
            to.register(true),
            from.register(false),
            bytes(to.kept()),
            to.register(true),
        )
    }

    /// The form as a program of its own, of which only the launch matters.
    fn prepared(&self, number: u64) -> Prepared {
        let mut random = Random::new(number ^ 0x00c0_4e75);
        let array = |name, element, written| ArrayParameter {
            name,
            element,
            length: SAMPLES,
            written,
            volatile: false,
            content: Content::Any,
        };
        let program = Program {
            seed: number,
            arrays: vec![
                array("given", self.from.given(), false),
                array("out", self.to.kept(), true),
            ],
            scalars: Vec::new(),
            locals: Vec::new(),
            body: Vec::new(),
            groups: (SAMPLES / u64::from(GROUP)) as u32,
            group: GROUP,
            partial: false,
            waits: false,
            unordered: false,
            aside: None,
        };
        let launch = Launch {
            scalars: Vec::new(),
            contents: vec![self.from.samples(&mut random), vec![0; SAMPLES as usize]],
            aliases: vec![None, None],
        };
        let outcome = LaunchOutcome {
            launch,
            results: Vec::new(),
        };
        Prepared::alone(program, vec![outcome], random)
    }
}

/// A number of which the engine and the GPU make something else.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// The number's bits.
    pub given: String,
    /// The GPU's result.
    pub gpu: String,
    /// Ours.
    pub engine: String,
}

/// What came of a conversion.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Conversion {
    /// The instruction.
    pub form: String,
    /// Numbers with other bits.
    pub differ: u64,
    /// Of these, NaNs with other bits.
    pub nans: u64,
    /// Some of them.
    pub samples: Vec<Sample>,
    /// Why it was not compared, if it was not.
    pub why: Option<String>,
}

/// What came of all of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Conversions {
    /// Forms that PTX does not have.
    pub not_of_ptx: usize,
    /// Forms that were compared, without a difference.
    pub same: Vec<String>,
    /// Forms with differences.
    pub differ: Vec<Conversion>,
    /// Forms that the front end refuses or that did not run, by why.
    pub not_compared: BTreeMap<String, Vec<String>>,
}

/// Tries all conversions.
///
/// # Errors
/// The assembler or a worker is missing.
pub fn conversions(settings: &Settings, pool: &Pool) -> Result<Conversions, String> {
    let assembler =
        tools::program("ptxas").ok_or("no ptxas; HEADSTART_TOOLS names a folder with bin/ptxas")?;
    let mut all = Conversions::default();
    let is_ptx = |form: &Form| {
        let text = format!("{HEADER}{}", form.entry("k0"));
        let limit = Duration::from_secs(60);
        assembled_by(assembler.as_os_str(), "", "sm_90", limit, &text).is_ok()
    };
    let (forms, others) = in_parallel(forms(), is_ptx);
    all.not_of_ptx = others.len();
    for (module, forms) in forms.chunks(A_MODULE).enumerate() {
        for found in a_module(settings, pool, module, forms)? {
            match (&found.why, found.differ) {
                (Some(why), _) => all.not_compared.entry(why.clone()).or_default().push(found.form),
                (None, 0) => all.same.push(found.form),
                (None, _) => all.differ.push(found),
            }
        }
    }
    Ok(all)
}

/// Those for which it is true, and the others, asked on all cores.
fn in_parallel(all: Vec<Form>, ask: impl Fn(&Form) -> bool + Sync) -> (Vec<Form>, Vec<Form>) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = all.len().div_ceil(threads).max(1);
    let answers: Vec<bool> = std::thread::scope(|scope| {
        let ask = &ask;
        let parts: Vec<_> = all
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().map(ask).collect::<Vec<bool>>()))
            .collect();
        let joined = parts.into_iter().flat_map(|part| part.join().unwrap_or_default());
        joined.collect()
    });
    let mut answers = answers.into_iter();
    all.into_iter().partition(|_| answers.next().unwrap_or(false))
}

fn a_module(
    settings: &Settings,
    pool: &Pool,
    module: usize,
    forms: &[Form],
) -> Result<Vec<Conversion>, String> {
    let mut text = HEADER.to_owned();
    let mut data = Vec::new();
    let mut trials = Vec::new();
    let mut all = Vec::new();
    for (number, form) in forms.iter().enumerate() {
        let prepared = form.prepared(number as u64);
        text.push_str(&form.entry(&prepared.program.name()));
        let laid = laid(&prepared, &prepared.tried[0], &mut data);
        trials.push(Trial {
            number,
            entry: prepared.program.name(),
            groups: prepared.program.groups,
            group: prepared.program.group,
            images: vec![0],
            launches: vec![laid.arena.clone()],
        });
        all.push((form, prepared, laid));
    }
    let name = format!("conversions-{module}");
    let image = settings
        .image(&text, &format!("{name}.image"))
        .map_err(|(_, why)| why)?;
    let job = Job {
        images: vec![image],
        data: settings.path(&format!("{name}.data")),
        results: settings.path(&format!("{name}.results")),
        trials,
    };
    let failed = |error: std::io::Error| error.to_string();
    std::fs::write(&job.data, &data)
        .and_then(|()| std::fs::write(&job.results, &data))
        .map_err(failed)?;
    let done = pool.run(&job)?;
    let results = std::fs::read(&job.results).map_err(failed)?;
    for path in job.images.iter().chain([&job.data, &job.results]) {
        let _ = std::fs::remove_file(path);
    }
    let found = all
        .iter()
        .zip(&done.trials)
        .map(|((form, prepared, laid), tried)| {
            let start = (laid.arena.at + laid.starts[1]) as usize;
            let gpu = &results[start..start + (SAMPLES as usize) * form.to.kept().ir().bytes() as usize];
            let mut found = match (tried.ran, tried.lost.first(), done.not_loaded.first()) {
                (_, Some((_, _, why)), _) | (_, _, Some((_, why))) => Conversion {
                    why: Some(why.clone()),
                    ..Conversion::default()
                },
                (false, ..) => Conversion {
                    why: Some("it did not run".to_owned()),
                    ..Conversion::default()
                },
                (true, ..) => against(form, prepared, gpu),
            };
            found.form.clone_from(&form.text);
            found
        });
    Ok(found.collect())
}

/// Compares the GPU's results with the engine's.
fn against(form: &Form, prepared: &Prepared, gpu: &[u8]) -> Conversion {
    let name = prepared.program.name();
    let text = format!("{HEADER}{}", form.entry(&name));
    let known = ParameterFacts {
        length: Some(SAMPLES),
        ..ParameterFacts::default()
    };
    let parameters = ["given", "out"].map(|name| (name.to_owned(), known));
    let facts = Facts {
        parameters: parameters.into_iter().collect(),
        ..Facts::default()
    };
    let not = |why: String| Conversion {
        why: Some(why),
        ..Conversion::default()
    };
    let imported = match import(&text, "conversion.ptx", Some(&name), &facts) {
        Ok(imported) => imported,
        Err(error) => return not(format!("not read: {}", rule(&error))),
    };
    let engine = match run(prepared, &imported, &prepared.tried[0]) {
        Ok(engine) => engine,
        Err(error) => return not(format!("the engine: {error}")),
    };
    let size = form.to.kept().ir().bytes() as usize;
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0u64, |bits, &byte| bits << 8 | u64::from(byte))
    };
    let given = bytes_of(form.from.given(), &prepared.tried[0].launch.contents[0]);
    let given = given.chunks(form.from.given().ir().bytes() as usize);
    let mut found = Conversion::default();
    for ((gpu, engine), given) in gpu.chunks(size).zip(engine[1].chunks(size)).zip(given) {
        let (gpu, engine) = (number(gpu), number(engine));
        if gpu == engine {
            continue;
        }
        found.differ += 1;
        found.nans += u64::from(form.to.is_nan(gpu) && form.to.is_nan(engine));
        if found.samples.len() < SHOWN {
            let shown = |bits: u64, bytes: usize| format!("{bits:#0width$x}", width = 2 * bytes + 2);
            found.samples.push(Sample {
                given: shown(number(given), given.len()),
                gpu: shown(gpu, size),
                engine: shown(engine, size),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Form {
        let found = forms().into_iter().find(|form| form.text == text);
        found.unwrap_or_else(|| panic!("{text} is not tried"))
    }

    /// What the engine makes of a form.
    fn engine(form: &Form, prepared: &Prepared) -> Vec<u8> {
        let text = format!("{HEADER}{}", form.entry("k1"));
        let imported = import(&text, "k.ptx", None, &Facts::default()).expect("it is read");
        let results = run(prepared, &imported, &prepared.tried[0]).expect("it runs");
        results[1].clone()
    }

    #[test]
    fn a_difference_in_one_number_is_found() {
        for (text, bytes) in [
            ("cvt.rzi.s8.f32", 4),
            ("cvt.rn.f16.f64", 2),
            ("cvt.rpi.u64.f16", 8),
            ("cvt.rm.f32.s64", 4),
            ("cvt.sat.u8.s32", 4),
        ] {
            let form = form(text);
            let prepared = form.prepared(1);
            let mut gpu = engine(&form, &prepared);
            assert_eq!(gpu.len(), SAMPLES as usize * bytes);
            let same = against(&form, &prepared, &gpu);
            assert_eq!((same.differ, &same.why), (0, &None), "{text}");
            gpu[5 * bytes] ^= 1;
            let other = against(&form, &prepared, &gpu);
            assert_eq!((other.differ, other.samples.len()), (1, 1), "{text}");
        }
    }

    #[test]
    fn nans_are_told_from_numbers() {
        let form = form("cvt.rn.f32.f64");
        let prepared = form.prepared(1);
        let mut gpu = engine(&form, &prepared);
        let is_nan = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().expect("four bytes")).is_nan();
        let at = gpu
            .chunks(4)
            .position(is_nan)
            .expect("some of the samples are NaNs")
            * 4;
        gpu[at] ^= 1;
        let other = against(&form, &prepared, &gpu);
        assert_eq!((other.differ, other.nans), (1, 1));
    }

    #[test]
    fn narrow_types_are_tried_on_all_their_numbers() {
        for kind in KINDS.iter().filter(|kind| kind.bits <= 16) {
            let mut samples = kind.samples(&mut Random::new(1));
            samples.sort_unstable();
            samples.dedup();
            assert_eq!(samples.len(), 1 << kind.bits, "{}", kind.name);
        }
    }
}
