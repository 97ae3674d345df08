//! Malformed SPIR-V: broken copies of the corpus through the reader and back into their modules.
//! `HEADSTART_FUZZ_SECONDS=600` runs for so long; the seed is that of the other random tests.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use headstart_testing::{self as testing, Random};

use crate::spirv_modules;

/// Longest that one broken module may take, in an unoptimised build.
const PATIENCE: Duration = Duration::from_secs(30);

fn limit() -> Duration {
    let seconds = std::env::var("HEADSTART_FUZZ_SECONDS").ok();
    Duration::from_secs(seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or(4))
}

/// The corpus's modules as instructions, the header in front; and those of a folder that `HEADSTART_SPIRV` names.
fn corpus() -> Vec<Vec<Vec<u32>>> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/spirv");
    let more = std::env::var_os("HEADSTART_SPIRV");
    let mut files: Vec<_> = std::iter::once(own)
        .chain(more.map(Into::into))
        .flat_map(|folder| fs::read_dir(folder).expect("the corpus is there"))
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "spv"))
        .collect();
    files.sort();
    let instructions = |path: &std::path::PathBuf| {
        let bytes = fs::read(path).expect("readable");
        let (words, _) = bytes.as_chunks::<4>();
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let mut found = vec![words[..5].to_vec()];
        let mut at = 5;
        while at < words.len() {
            let end = (at + (words[at] >> 16).max(1) as usize).min(words.len());
            found.push(words[at..end].to_vec());
            at = end;
        }
        found
    };
    files.iter().map(instructions).collect()
}

/// The module with some of its instructions and words exchanged, doubled or gone.
fn mutated(random: &mut Random, module: &[Vec<u32>]) -> Vec<u8> {
    let mut module = module.to_vec();
    for _ in 0..random.between(1, 8) {
        let count = module.len() as u64;
        let (at, other) = (random.below(count) as usize, random.below(count) as usize);
        match random.below(10) {
            0 => drop(module.remove(at)),
            1 => module.swap(at, other),
            2 => module.insert(at, module[other].clone()),
            // Another operation on the same operands.
            3 => module[at][0] = module[at][0] & 0xffff_0000 | random.below(420) as u32,
            4 => module[at][0] = module[other][0],
            5 => {
                let word = *random.choose(&[0, 1, 2, 3, 16, 255, 0xffff, 1 << 31, u32::MAX, 4_194_303]);
                let position = random.below(module[at].len() as u64) as usize;
                module[at][position] = word;
            }
            _ => {
                let word = *random.choose(&module[other]);
                let position = random.below(module[at].len() as u64) as usize;
                module[at][position] = word;
            }
        }
        if module.is_empty() {
            break;
        }
    }
    module
        .concat()
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

#[test]
fn broken_modules_are_read_or_refused() {
    let (modules, mut random) = (corpus(), Random::new(testing::base_seed()));
    let start = Instant::now();
    let (mut rounds, mut read, mut refused, mut longest) = (0u64, 0, 0, Duration::ZERO);
    while start.elapsed() < limit() {
        let module = &modules[(rounds % modules.len() as u64) as usize];
        let bytes = mutated(&mut random, module);
        let begun = Instant::now();
        let checked = std::panic::catch_unwind(|| spirv_modules::check(&bytes));
        let (more, fewer) = checked.unwrap_or_else(|panic| {
            let path = std::env::temp_dir().join("broken.spv");
            fs::write(&path, &bytes).expect("it can be kept");
            eprintln!("round {rounds}: the module is {}", path.display());
            std::panic::resume_unwind(panic)
        });
        longest = longest.max(begun.elapsed());
        assert!(longest < PATIENCE, "round {rounds}: {longest:?}");
        (read, refused, rounds) = (read + more, refused + fewer, rounds + 1);
    }
    println!("{rounds} broken modules: {read} entries read, {refused} refused; the longest took {longest:?}");
    assert!(read > 0 && refused > 0);
}
