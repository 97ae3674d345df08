//! Parameters by their names in the source: `fields.cu`, as nvcc compiled it with debug information.

use std::sync::Arc;

use headstart_front::ptx::{Facts, Module, import};
use headstart_sim::functional::Options;
use headstart_testing::run;
use headstart_tune::tune::{FileSubject, LaunchFile, Subject, fitted_launch_template};

const MODULE: &str = include_str!("fields.ptx");

/// A launch that names parameters as the source does, but for one.
const LAUNCH: &str = r#"
groups = 1
group = 32
readonly = ["indices", "args.weights"]
[parameters."args.weights"]
length = 64
fill = "sequence"
[parameters."args.out"]
length = 32
fill = "zero"
output = "bits"
[parameters."args.n"]
value = 2
[parameters."args.inner[0].shift[1]"]
value = 100
[parameters."args.inner[1].scale"]
value = 0.5
[parameters."args.bias"]
value = 0.25
[parameters."args.flag"]
value = 7
[parameters.param_0_68]
value = 1000
[parameters.stride]
value = 32
[parameters.indices]
length = 64
fill = "sequence"
"#;

#[test]
fn debug_information_names_members() {
    let imported = import(MODULE, "fields.ptx", Some("apply"), &Facts::default()).expect("an entry");
    let names: Vec<(&str, Option<&str>)> = imported
        .kernel
        .params
        .iter()
        .zip(&imported.original.fields)
        .map(|(param, field)| (param.name.as_str(), field.as_deref()))
        .collect();
    for (name, field) in [
        ("param_0_0", "args.weights"),
        ("param_0_8", "args.out"),
        ("param_0_16", "args.n"),
        ("param_0_20", "args.inner[0].scale"),
        ("param_0_28", "args.inner[0].shift[1]"),
        ("param_0_36", "args.inner[1].scale"),
        ("param_0_56", "args.bias"),
        ("param_0_64", "args.flag"),
        ("param_0_68", "args.whole"),
        ("param_1", "stride"),
        ("param_2", "indices"),
    ] {
        assert!(names.contains(&(name, Some(field))), "{name} {field} {names:?}");
    }
}

#[test]
fn launch_files_name_members() {
    let launch = LaunchFile::parse(LAUNCH, "launch.toml").expect("a launch file");
    let imported = import(MODULE, "fields.ptx", Some("apply"), &launch.facts()).expect("an entry");
    let read_only = |name: &str| {
        imported
            .kernel
            .param(name)
            .and_then(|param| param.facts)
            .is_some_and(|facts| facts.read_only)
    };
    assert!(read_only("param_0_0") && read_only("param_2") && !read_only("param_0_8"));
    let workload = FileSubject::of_module(imported, launch)
        .workload()
        .expect("a workload");
    let outputs = run(&workload, &workload.kernel, Options::CHECKING).expect("it runs");
    let found = super::floats(super::named(&outputs, "param_0_8"));
    let expected: Vec<f32> = (0..32u16)
        .map(|i| (f32::from(i) + f32::from(i + 32)) * 0.5 + 0.25 + 100.0 + 7.0 + 1000.0)
        .collect();
    assert_eq!(found, expected);
    // An unknown name is refused, with those that there are.
    let wrong = LAUNCH.replace("args.bias", "args.bais");
    let launch = LaunchFile::parse(&wrong, "launch.toml").expect("a launch file");
    let error = import(MODULE, "fields.ptx", Some("apply"), &launch.facts()).expect_err("no such parameter");
    assert!(
        error.to_string().contains("args.bais") && error.to_string().contains("`args.bias`"),
        "{error}"
    );
}

#[test]
fn templates_have_the_names_and_load() {
    let imported = import(MODULE, "fields.ptx", Some("apply"), &Facts::default()).expect("an entry");
    let (kernel, original) = (
        Arc::new(imported.kernel.clone()),
        Arc::new(imported.original.clone()),
    );
    let device = headstart::device::model::built_in("h200", &[])
        .expect("a model")
        .description();
    let template = fitted_launch_template(&kernel, Some(&original), None, &device);
    assert!(
        template.contains("[parameters.\"args.inner[1].scale\"]"),
        "{template}"
    );
    assert!(
        template.contains("f32          param_0_36   args.inner[1].scale\n"),
        "{template}"
    );
    let launch = LaunchFile::parse(&template, "launch.toml").expect("a launch file");
    import(MODULE, "fields.ptx", Some("apply"), &launch.facts()).expect("an entry");
    FileSubject::of_module(imported, launch)
        .workload()
        .expect("a workload");
}

/// Broken debug information names less, and changes nothing else.
#[test]
fn debug_information_may_be_broken() {
    let whole = import(MODULE, "fields.ptx", Some("apply"), &Facts::default()).expect("an entry");
    let lines: Vec<&str> = MODULE.lines().collect();
    let first = lines
        .iter()
        .position(|line| line.contains(".section"))
        .expect("a section");
    for at in first..lines.len() {
        let mut changed = lines.clone();
        match at % 3 {
            0 => changed[at] = ".b8 255,255,255,255,127",
            1 => changed[at] = ".b64 18446744073709551615",
            _ => {
                changed.remove(at);
            }
        }
        let text = changed.join("\n");
        let Ok(module) = Module::new(&text, "fields.ptx") else {
            continue;
        };
        if let Ok(imported) = module.import_alone("apply", &Facts::default()) {
            assert_eq!(imported.original.parameters, whole.original.parameters);
            assert_eq!(imported.original.fields.len(), whole.original.fields.len());
        }
    }
}
