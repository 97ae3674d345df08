//! The kernels of `tests/in` with the launches and plans that their headers describe.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use headstart::device::sim::functional::BufferMemory;
use headstart::device::{Argument, Buffer, Fill, Launch, Pattern};
use headstart::ir::{self, Kernel, Type, Value};
use headstart::prefetch::Plan;

/// A kernel of `tests/in` with the launch that its header describes.
pub struct Case {
    pub name: String,
    pub kernel: Kernel,
    pub groups: u32,
    pub group: u32,
    pub plans: Vec<Plan>,
    /// What each parameter is: `2112 below 500`, `192`, `9.5`.
    given: Vec<(String, String)>,
}

pub fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/in");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("tests/in is there")
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let hsir = files
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "hsir"));
    let cases: Vec<Case> = hsir.filter_map(|path| case(&path)).collect();
    assert!(cases.len() >= 10, "the kernels with launches are there");
    cases
}

fn case(path: &Path) -> Option<Case> {
    let text = fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let kernel = ir::read(&text, &name).unwrap();
    let mut header = text
        .lines()
        .filter_map(|line| line.strip_prefix("; "))
        .filter_map(|line| line.split_once(": "));
    let (_, plans) = header.by_ref().find(|(key, _)| *key == "plans")?;
    let plans = plans.split("; ").map(|plan| plan.parse().unwrap()).collect();
    let (_, launch) = header.by_ref().find(|(key, _)| *key == "launch")?;
    let (groups, group) = launch.split_once(" × ").unwrap();
    let given = header
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    Some(Case {
        name,
        kernel,
        plans,
        groups: groups.parse().unwrap(),
        group: group.parse().unwrap(),
        given,
    })
}

impl Case {
    fn given(&self, name: &str) -> &str {
        &self
            .given
            .iter()
            .find(|(key, _)| key == name)
            .unwrap_or_else(|| panic!("{}: {name}", self.name))
            .1
    }

    /// The launch with fresh buffers, and those buffers.
    pub fn launch(&self) -> (Launch, Vec<Arc<BufferMemory>>) {
        let mut memories = Vec::new();
        let mut arguments = Vec::new();
        let mut lengths: Vec<(Value, u64)> = Vec::new();
        for param in &self.kernel.params {
            let Some(facts) = param.facts else {
                continue;
            };
            let words: Vec<&str> = self.given(&param.name).split(' ').collect();
            let length: u64 = words[0].parse().unwrap();
            let pattern = match &words[1..] {
                ["below", bound] => Pattern::Below {
                    bound: bound.parse().unwrap(),
                    seed: 1,
                },
                ["fractions"] => Pattern::Fractions { low: 1.0 },
                ["ramp", first, step] => Pattern::Steps {
                    first: first.parse().unwrap(),
                    step: step.parse().unwrap(),
                },
                [] => Pattern::Constant(0),
                other => panic!("{}: {other:?}", self.name),
            };
            lengths.extend(facts.length.map(|value| (value, length)));
            let memory = BufferMemory::new(facts.element, length, Fill::Pattern(pattern)).unwrap();
            memories.push((facts.element, length, Arc::new(memory)));
        }
        let mut next = memories.iter();
        for param in &self.kernel.params {
            let ty = self.kernel.ty(param.value);
            if param.facts.is_some() {
                let (element, length, memory) = next.next().unwrap();
                arguments.push(Argument::Buffer(Buffer::new(*element, *length, memory.clone())));
                continue;
            }
            let length = lengths.iter().find(|(value, _)| *value == param.value);
            let bits = match length {
                Some(&(_, length)) => length,
                None if ty == Type::F32 => {
                    u64::from(self.given(&param.name).parse::<f32>().unwrap().to_bits())
                }
                None if ty == Type::F64 => self.given(&param.name).parse::<f64>().unwrap().to_bits(),
                None => self.given(&param.name).parse::<i64>().unwrap() as u64,
            };
            arguments.push(Argument::Scalar(ty, bits));
        }
        let memories = memories.into_iter().map(|(_, _, memory)| memory).collect();
        (Launch::new(self.groups, self.group, arguments), memories)
    }
}
