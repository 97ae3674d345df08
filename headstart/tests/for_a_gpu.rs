//! Jobs for a GPU: entries as they were and with a plan, with their launch data and the functional engine's results.
//!
//! ```text
//! HEADSTART_CASES_IN=FOLDER HEADSTART_CASES_OUT=FOLDER cargo test -p headstart --test for_a_gpu -- --ignored
//! ```
//!
//! The folder has modules, and a launch file for each entry, `launch/ENTRY.toml`. `scripts/standin.d/cases.py` runs what comes out.

use std::fs;
use std::path::PathBuf;

use headstart::device::sim::functional::{CompiledKernel, Groups, Options};
use headstart::front::ptx::{Module, Origin};
use headstart::prefetch::{PlanTarget, apply};
use headstart::tune::drop_in::placed;
use headstart::tune::{ArgumentSpec, FileSubject, LaunchFile, Subject};
use headstart_testing::bind;
use serde_json::{Value, json};

#[test]
#[ignore = "writes files for a machine with a GPU"]
fn cases_are_written() {
    let from = PathBuf::from(std::env::var_os("HEADSTART_CASES_IN").expect("a folder"));
    let out = PathBuf::from(std::env::var_os("HEADSTART_CASES_OUT").expect("a folder"));
    fs::create_dir_all(&out).expect("made");
    let mut cases: Vec<Value> = Vec::new();
    let mut files: Vec<PathBuf> = fs::read_dir(&from)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .collect();
    files.sort();
    for path in files {
        let text = fs::read_to_string(&path).expect("text");
        let file = path.file_stem().expect("a name").to_string_lossy().into_owned();
        fs::write(out.join(format!("{file}.ptx")), &text).expect("written");
        let names: Vec<String> = Module::new(&text, &file)
            .expect("a module")
            .entries()
            .into_iter()
            .map(str::to_owned)
            .collect();
        let mut again = text.clone();
        for name in names {
            let launch = from.join("launch").join(format!("{name}.toml"));
            let Ok(launch) = LaunchFile::read(&launch) else {
                println!("{file}:{name}: no launch");
                continue;
            };
            let module = Module::new(&text, &file).expect("a module");
            let imported = match module.import_alone(&name, &launch.facts()) {
                Ok(imported) => imported,
                Err(error) => {
                    println!("{file}:{name}: {error}");
                    continue;
                }
            };
            let original = imported.original.clone();
            // Into what was written so far: all entries of one module are edited.
            let written = Module::new(&again, &file)
                .and_then(|module| module.import_alone(&name, &launch.facts()))
                .and_then(|imported| {
                    let plan = "unroll:2".parse()?;
                    let applied = apply(&imported.kernel, &plan, &PlanTarget::default())?;
                    placed(&imported.original, &imported.kernel, &applied.kernel)
                });
            let is_written = match written {
                Ok(written) => {
                    again = written.text;
                    true
                }
                Err(error) => {
                    println!("{file}:{name}: not written: {error}");
                    false
                }
            };
            let workload = FileSubject::of_module(imported, launch)
                .workload()
                .unwrap_or_else(|error| panic!("{file}:{name}: {error}"));
            let (bound, memories) = bind(&workload).expect("bound");
            let mut params = Vec::new();
            let mut memory = memories.iter();
            for (number, (given, origin)) in workload.given.iter().zip(&original.parameters).enumerate() {
                let (position, kind) = match origin {
                    Origin::Parameter { position, .. } => (*position, "pointer"),
                    Origin::Structure { position, .. } => (*position, "structure"),
                    Origin::Variable { .. } => (0, "variable"),
                    Origin::Workspace => (0, "workspace"),
                };
                let compared = matches!(given, ArgumentSpec::Output { .. });
                params.push(match given {
                    ArgumentSpec::Scalar(ty, bits) => {
                        json!({"kind": "scalar", "position": position, "bytes": ty.bytes(), "bits": bits.to_string()})
                    }
                    ArgumentSpec::Input { element, .. } | ArgumentSpec::Output { element, .. } => {
                        let memory = memory.next().expect("a buffer");
                        let mut bytes = vec![0; memory.bytes() as usize];
                        memory.copy_out(0, &mut bytes).expect("read");
                        let data = format!("{file}.{name}.{number}.in");
                        fs::write(out.join(&data), bytes).expect("written");
                        json!({"kind": kind, "position": position, "element": element.name(), "data": data,
                            "compared": compared})
                    }
                    ArgumentSpec::Part { .. } => panic!("{file}:{name}: cases have no pointers into other buffers"),
                });
            }
            let compiled = CompiledKernel::new(workload.kernel.clone());
            let ran = compiled.run(&bound, 32, Options::CHECKING, &Groups::All);
            let engine = match &ran {
                Ok(_) => {
                    let buffers = workload.given.iter().enumerate();
                    let buffers = buffers.filter(|(_, given)| !matches!(given, ArgumentSpec::Scalar(..)));
                    for ((number, _), memory) in buffers.zip(&memories) {
                        let mut bytes = vec![0; memory.bytes() as usize];
                        memory.copy_out(0, &mut bytes).expect("read");
                        fs::write(out.join(format!("{file}.{name}.{number}.out")), bytes).expect("written");
                    }
                    Value::Null
                }
                Err(error) => json!(error.to_string()),
            };
            cases.push(
                json!({"file": file, "entry": name, "groups": workload.groups, "group": workload.group,
                "shared_bytes": original.dynamic_shared_bytes, "parameter_bytes": original.parameter_bytes,
                "params": params, "written": is_written, "engine": engine}),
            );
        }
        fs::write(out.join(format!("{file}.again.ptx")), again).expect("written");
    }
    fs::write(
        out.join("cases.json"),
        serde_json::to_string_pretty(&cases).expect("JSON"),
    )
    .expect("written");
    println!("{} cases", cases.len());
}
