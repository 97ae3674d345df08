//! Code that relies on warps in lockstep, as GPUs before Volta had them: `lockstep.cu`, as nvcc compiled it, is refused without
//! `warp_synchronous`, runs with it, and is written again with the barriers that it lacks.

use headstart::back::ptx::{Options as Emit, PtxTarget as Gpu, emit};
use headstart::device::sim::functional::Options;
use headstart::front::ptx::import;
use headstart::tune::{FileSubject, LaunchFile, Subject};
use headstart_testing::ptxas::Ptxas;
use headstart_testing::run;

const MODULE: &str = include_str!("lockstep.ptx");

/// The launch of a kernel, with these further statements.
fn launch(inputs: u32, outputs: u32, more: &str) -> String {
    format!(
        "groups = 2\ngroup = 128\n{more}\n[parameters.param_0]\nlength = {inputs}\nfill = \"sequence\"\n[parameters.param_1]\n\
         length = {outputs}\nfill = \"zero\"\noutput = \"bits\"\n"
    )
}

/// What a kernel leaves of inputs 0, 1, 2, …
fn ran(entry: &str, launch: &str) -> headstart::Result<Vec<f32>> {
    let launch = LaunchFile::parse(launch, "launch.toml")?;
    let imported = import(MODULE, "lockstep.ptx", Some(entry), &launch.facts())?;
    let alone = emit(&imported.kernel, &Emit::new(Gpu::Sm90))?.text;
    if launch.facts().warp_synchronous {
        assert!(alone.contains("bar.warp.sync"), "{alone}");
    }
    if let Some(ptxas) = Ptxas::find() {
        ptxas
            .assemble_module(&alone)
            .unwrap_or_else(|error| panic!("{error}\n{alone}"));
    }
    let workload = FileSubject::of_module(imported, launch).workload()?;
    let outputs = run(&workload, &workload.kernel, Options::CHECKING)?;
    let (_, bytes) = outputs
        .iter()
        .find(|(name, _)| name == "param_1")
        .expect("an output");
    let words = bytes.chunks_exact(4);
    Ok(words
        .map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect())
}

/// The sum of 256 numbers from this one on, in the order of the kernels.
fn summed(first: u32) -> f32 {
    let mut values: Vec<f32> = (0..128)
        .map(|t| (first + t) as f32 + (first + t + 128) as f32)
        .collect();
    for (active, distance) in [(64, 64), (32, 32), (32, 16), (32, 8), (32, 4), (32, 2), (32, 1)] {
        let before = values.clone();
        (0..active).for_each(|t| values[t] = before[t] + before[t + distance]);
    }
    values[0]
}

#[test]
fn warps_in_lockstep_are_a_statement_of_the_launch_file() {
    let sums = [summed(0), summed(256)];
    let said = ran("tail", &launch(512, 2, ""))
        .expect_err("nothing orders the accesses")
        .to_string();
    assert!(
        said.contains("tail") && said.contains("`warp_synchronous = true`"),
        "{said}"
    );
    assert_eq!(
        ran("tail", &launch(512, 2, "warp_synchronous = true")).expect("in lockstep"),
        sums
    );
    // Volatile accesses are ordered already.
    for more in ["", "warp_synchronous = true"] {
        assert_eq!(
            ran("volatile_tail", &launch(512, 2, more)).expect("volatile"),
            sums,
            "{more}"
        );
    }
}

#[test]
fn a_warp_is_together_behind_a_branch() {
    assert!(ran("passed_on", &launch(256, 256, "")).is_err());
    let found = ran("passed_on", &launch(256, 256, "warp_synchronous = true")).expect("in lockstep");
    let expected: Vec<f32> = (0..256).map(|i| (((i & !16) ^ 1) * 10) as f32).collect();
    assert_eq!(found, expected);
}

#[test]
fn warps_of_their_own_do_not_run_in_lockstep() {
    // The first addition is between warps: without its barrier nothing makes it right.
    let text = MODULE.replace("bar.sync \t0;", "");
    let launch =
        LaunchFile::parse(&launch(512, 2, "warp_synchronous = true"), "launch.toml").expect("a launch file");
    let imported = import(&text, "lockstep.ptx", Some("tail"), &launch.facts()).expect("an entry");
    let workload = FileSubject::of_module(imported, launch)
        .workload()
        .expect("a workload");
    let error = run(&workload, &workload.kernel, Options::CHECKING)
        .expect_err("a race")
        .to_string();
    assert!(!error.contains("warp_synchronous"), "{error}");
}
