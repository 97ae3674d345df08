//! The parent's side against workers that are shell scripts.

use std::thread;

use super::super::MARK_VARIABLE;
use super::*;
use crate::launch::Geometry;
use crate::module::Compiled;
use crate::worker::output::MOST_PRINTED;

/// A worker that is a shell script.
fn scripted(script: &str) -> Result<Worker, Failure> {
    Worker::start(Path::new("/bin/sh"), &["-c".into(), script.into()], 0)
}

fn opened() -> String {
    let facts = GpuFacts {
        ordinal: 0,
        name: "scripted".into(),
        capability: (9, 0),
        driver: 13000,
        cores: 1,
        clock_khz: 1,
        memory_bytes: 1,
        l2_bytes: 1,
        shared_bytes_per_group: 1,
        shared_bytes_per_core: 1,
        registers_per_core: 1,
        work_items_per_core: 1,
        sub_group: 32,
    };
    serde_json::to_string(&Reply::Opened(facts)).expect("plain data")
}

/// A shell's command that replies so.
fn reply(text: &str) -> String {
    format!("printf '\\n%s%s\\n' \"${MARK_VARIABLE}\" '{text}'")
}

#[test]
fn what_kernels_print_is_no_reply() {
    // Lines, a line without an end, bytes that are no text, and something that looks like a reply.
    let printed = r#"printf 'x = 1\n"bound"\n{"failed":{"kind":"fault","what":"no"}}\n\377 half a line'"#;
    let checked = reply(r#"{"checked":{"elapsed_ns":5.0}}"#);
    let script = [
        "read a; echo noise at the start".to_owned(),
        reply(&opened()),
        "read b".to_owned(),
        reply("\"bound\""),
        format!("read c; {printed}; {checked}"),
        format!("read d; {checked}"),
        format!("read e; yes 'a long line of sixteen' | head -c 5000000; {checked}"),
    ];
    let mut worker = scripted(&script.join("; ")).expect("it opens");
    worker.bind(&[Argument::Scalar(Type::I32, 4)]).expect("it binds");
    let mut check = || {
        worker
            .check("none", Duration::from_secs(1), None)
            .expect("it answers")
    };
    let first = check();
    assert_eq!(first.elapsed_ns, 5.0);
    assert_eq!(
        first.printed,
        "x = 1\n\"bound\"\n{\"failed\":{\"kind\":\"fault\",\"what\":\"no\"}}\n\u{fffd} half a line"
    );
    assert_eq!(check().printed, "");
    let last = check().printed;
    assert!(
        last.len() <= MOST_PRINTED && last.len() > MOST_PRINTED / 2,
        "{}",
        last.len()
    );
}

#[test]
fn where_addresses_are_taken_another_process_is_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    // As many processes find them taken as the file has lines to give.
    let script = |file: &Path| {
        [
            "read a".to_owned(),
            reply(&opened()),
            "read b".to_owned(),
            format!("if [ -s '{0}' ]; then sed -i 1d '{0}'", file.display()),
            reply(r#"{"failed":{"kind":"address-taken","what":"taken"}}"#),
            "else".to_owned(),
            reply("\"bound\""),
            "fi; read c".to_owned(),
            reply(r#"{"checked":{"elapsed_ns":5.0}}"#),
        ]
        .join("\n")
    };
    let bound_after = |taken: usize| {
        let file = folder.path().join(taken.to_string());
        std::fs::write(&file, "taken\n".repeat(taken)).expect("written");
        let mut worker = scripted(&script(&file)).expect("it opens");
        let bound = worker.bind(&[Argument::Scalar(Type::I32, 4)]);
        bound.map(|()| {
            (
                worker.started(),
                worker.launch("none", Duration::from_secs(1)).is_ok(),
            )
        })
    };
    assert_eq!(bound_after(2), Ok((3, true)));
    let failure = bound_after(9).expect_err("they are taken everywhere");
    assert_eq!(failure.kind, FailureKind::AddressTaken);
}

#[test]
fn what_is_as_expected_is_not_fetched_and_a_new_worker_is_told_too() {
    // Each process is bound, told what to expect, and dies at the second launch.
    let script = [
        "read a".to_owned(),
        reply(&opened()),
        "read b".to_owned(),
        reply("\"bound\""),
        "read c".to_owned(),
        reply("\"expected\""),
        "read d".to_owned(),
        reply(r#"{"checked":{"elapsed_ns":5.0,"as_expected":[true]}}"#),
        "read e".to_owned(),
    ];
    let mut worker = scripted(&script.join("; ")).expect("it opens");
    let output = Argument::Buffer {
        element: Type::I8,
        length: 2,
        fill: &Fill::Uninitialized,
        output: true,
        align: 16,
        is_passed: true,
    };
    worker.bind(&[output]).expect("it binds");
    let expected = Arc::new(vec![vec![1, 2]]);
    let mut check = || worker.check("none", Duration::from_secs(1), Some(&expected));
    assert_eq!(check().expect("it answers").outputs, [OutputContents::Expected]);
    assert!(check().is_err(), "it died");
    assert_eq!(
        check().expect("it is told again").outputs,
        [OutputContents::Expected]
    );
    assert_eq!(worker.started(), 2);
}

#[test]
fn a_worker_whose_compiler_is_busy_is_replaced() {
    let compiled = Compiled {
        registers: 8,
        local_bytes: 0,
        static_shared_bytes: 0,
        max_group: 1024,
        load_time: Duration::ZERO,
        log: String::new(),
    };
    let loaded = Loaded {
        compiled,
        groups_per_core: 4,
    };
    let late = Failure::new(FailureKind::Resources, "not done after 2 s");
    let answer = |reply_of: &Reply| reply(&serde_json::to_string(reply_of).expect("plain data"));
    // The first process is late with one of two modules; the second is given the other one again.
    let script = [
        "read a".to_owned(),
        answer(&serde_json::from_str(&opened()).expect("plain data")),
        "read b".to_owned(),
        "case $b in *slow*)".to_owned(),
        answer(&Reply::LoadedInPart(vec![Ok(loaded.clone()), Err(late.clone())])),
        ";; *)".to_owned(),
        answer(&Reply::Loaded(vec![Ok(loaded.clone())])),
        ";; esac".to_owned(),
        "read c".to_owned(),
        reply(r#"{"checked":{"elapsed_ns":5.0}}"#),
        "sleep 60".to_owned(),
    ];
    let mut worker = scripted(&script.join("\n")).expect("it opens");
    let module = |name: &str| Module {
        name: name.into(),
        ptx: String::new(),
        entry: name.into(),
        geometry: Geometry {
            groups: [1; 3],
            group: [32, 1, 1],
            dynamic_shared_bytes: 0,
            cooperative: false,
        },
        code: None,
    };
    let found = worker
        .load(vec![module("quick"), module("slow")])
        .expect("it answers");
    assert_eq!(found, [Ok(loaded), Err(late)]);
    assert_eq!(worker.started(), 1);
    let checked = worker
        .check("quick", Duration::from_secs(5), None)
        .expect("it answers");
    assert_eq!(checked.elapsed_ns, 5.0);
    assert_eq!(worker.started(), 2);
}

#[test]
fn what_takes_long_is_compiled_by_several_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = folder.path().join("asked");
    let compiled = Compiled {
        registers: 32,
        local_bytes: 0,
        static_shared_bytes: 0,
        max_group: 1024,
        load_time: Duration::ZERO,
        log: String::new(),
    };
    let loaded = Loaded {
        compiled,
        groups_per_core: 8,
    };
    let answer = |count| {
        reply(&serde_json::to_string(&Reply::Loaded(vec![Ok(loaded.clone()); count])).expect("plain"))
    };
    // Loading the first text takes long; the processes refuse one, and the worker loads that itself.
    let script = [
        "while read a; do case $a in *'\"open\"'*)".to_owned(),
        reply(&opened()),
        ";; *assemble*wrong*)".to_owned(),
        reply(r#"{"failed":{"kind":"compilation","what":"no"}}"#),
        ";; *assemble*)".to_owned(),
        r#"code=${a##*\"code\":\"}; echo code > ${code%%\"*}"#.to_owned(),
        reply("\"assembled\""),
        format!(";; *unload*) echo unload >> {}", asked.display()),
        reply("\"unloaded\""),
        format!(
            ";; *first*) sleep 0.3; printf '%s\n' \"$a\" >> {}",
            asked.display()
        ),
        answer(1),
        format!(";; *) printf '%s\n' \"$a\" >> {}", asked.display()),
        answer(4),
        ";; esac; done".to_owned(),
    ];
    let mut worker = scripted(&script.join("\n")).expect("it opens");
    let module = |name: &str, ptx: &str| Module {
        name: name.into(),
        ptx: ptx.into(),
        entry: name.into(),
        geometry: Geometry {
            groups: [1; 3],
            group: [32, 1, 1],
            dynamic_shared_bytes: 0,
            cooperative: false,
        },
        code: None,
    };
    worker.load(vec![module("first", "kernel")]).expect("it answers");
    let texts = [
        ("a", "kernel a"),
        ("b", "kernel b"),
        ("c", "wrong"),
        ("d", "kernel d"),
    ];
    let modules = texts.map(|(name, ptx)| module(name, ptx));
    let found = worker.load(modules.into()).expect("it answers");
    assert!(found.len() == 4 && found.iter().all(Result::is_ok), "{found:?}");
    let lines = std::fs::read_to_string(&asked).expect("it was asked");
    let last = lines.lines().last().expect("a request");
    let several = thread::available_parallelism().is_ok_and(|threads| threads.get() > 1);
    assert_eq!(
        last.matches("/code-").count(),
        if several { 3 } else { 0 },
        "{last}"
    );
    // Their files go with them.
    let files = |worker: &Worker| std::fs::read_dir(worker.folder.path()).expect("a folder").count();
    assert_eq!(files(&worker), if several { 3 } else { 0 });
    worker.unload(&["a".into(), "b".into()]).expect("it answers");
    assert_eq!(files(&worker), usize::from(several));
}

#[test]
fn a_worker_that_dies_is_replaced_and_set_up_again() {
    // Each process answers `open` and `bind`, then dies at the next request.
    let script = format!(
        "read a; {}; read b; {}; read c; exit 7",
        reply(&opened()),
        reply("\"bound\"")
    );
    let mut worker = scripted(&script).expect("it opens");
    worker.bind(&[Argument::Scalar(Type::I32, 4)]).expect("it binds");
    let lost = worker
        .check("none", Duration::from_secs(1), None)
        .expect_err("it dies");
    assert_eq!(lost.kind, FailureKind::Worker);
    assert!(lost.what.contains("exit status: 7"), "{}", lost.what);
    assert_eq!(worker.started(), 1);
    // The next request finds a worker that was told of the binding, and dies in turn.
    assert!(worker.check("none", Duration::from_secs(1), None).is_err());
    assert_eq!(worker.started(), 2);
}

#[test]
fn a_worker_s_last_words_are_told() {
    let script = format!(
        "read a; {}; read b; echo 'driver: noise' >&2; echo 'headstart: the disk is full' >&2; exit 2",
        reply(&opened())
    );
    let mut worker = scripted(&script).expect("it opens");
    let lost = worker
        .bind(&[Argument::Scalar(Type::I32, 4)])
        .expect_err("it ends");
    assert!(
        lost.what.ends_with("exit status: 2: the disk is full"),
        "{}",
        lost.what
    );
}

#[test]
fn a_program_that_is_none_is_a_clear_failure() {
    let failure = Worker::start(Path::new("/no/such/program"), &[], 0)
        .err()
        .expect("there is no such program");
    assert!(
        failure.what.contains("/no/such/program cannot be started"),
        "{}",
        failure.what
    );
    let failure = scripted(&reply("hello")).err().expect("that is no answer");
    assert_eq!(failure.kind, FailureKind::Worker);
}

#[test]
fn requests_are_one_line_each() {
    let request = Request::Load {
        modules: vec![Module {
            name: "none".into(),
            ptx: "a\nb".into(),
            entry: "k".into(),
            geometry: crate::launch::Geometry {
                groups: [1; 3],
                group: [32, 1, 1],
                dynamic_shared_bytes: 0,
                cooperative: false,
            },
            code: None,
        }],
    };
    let text = serde_json::to_string(&request).expect("plain data");
    assert!(!text.contains('\n'));
    assert_eq!(
        serde_json::from_str::<Request>(&text).expect("what was written"),
        request
    );
}
