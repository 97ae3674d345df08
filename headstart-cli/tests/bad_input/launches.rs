//! The launch is wrong: its parameters, its trace, its launch file or its geometry.

use crate::{PREFIX_SUM, folder, headstart, limited, refused, table, write};

#[test]
fn an_unknown_parameter() {
    table(
        "
        2 tune gather --set itmes=4 => no parameter `itmes` & did you mean `items`?
        2 tune gather --set items=many => `many` is not a value for `items` & 1 to 1,048,576
        2 run gather --set group=100 => `group` cannot be 100 & a multiple of 32
        2 run article --trace amg_gpu => takes no trace & gather
        2 sweep gather --device sim:h200 --over latency=400,800 => no parameter `latency` & `dram.latency`
        2 sweep gather --device sim:h200 --over mshr=8,16 => no parameter `mshr` & parameters: groups & `l1.outstanding`
    ",
    );
}

#[test]
fn an_index_out_of_bounds_in_the_users_data() {
    let folder = folder();
    let trace = write(
        folder.path(),
        "t.json",
        r#"[{"kernel":"Gather","pattern":[0,5,77],"delta":0,"count":9}]"#,
    );
    let set = ["--set", "groups=1", "--set", "items=2", "--set", "table=77"];
    let planned = ["emit", "gather", "--plan", "unroll:2"];
    for command in [&["run", "gather"][..], &["tune", "gather"], &planned] {
        let arguments = [command, &["--trace", &trace], &set].concat();
        refused(&arguments, 1, &["gather.rs:", "values", "thread"]);
    }
    // Without a plan nothing is checked, and nothing runs.
    let emitted = headstart(&[&planned[..2], &["--trace", &trace], &set].concat());
    assert!(emitted.status.success(), "{emitted:?}");
}

#[test]
fn a_truncated_or_hostile_trace() {
    let folder = folder();
    let whole = r#"[{"kernel":"Gather","pattern":[0,1,2],"delta":1,"count":2}]"#;
    let cuts = (0..whole.len() - 1).map(|length| &whole[..length]);
    let hostile = [
        r#"[{"kernel":"Gather","pattern":[-1],"delta":1,"count":2}]"#,
        r#"[{"kernel":"Gather","pattern":[0],"delta":9999999999,"count":9999999999}]"#,
        r#"[{"kernel":"Scatter","pattern":[0],"delta":1,"count":2}]"#,
        r#"{"kernel":"Gather"}"#,
        "[[[[[[",
    ];
    for text in cuts.step_by(7).chain(hostile) {
        let trace = write(folder.path(), "t.json", text);
        table(&format!("1 run gather --set groups=1 --trace {trace} => t.json"));
    }
}

#[test]
fn a_launch_file_that_does_not_fit() {
    let folder = folder();
    let kernel = write(folder.path(), "k.hsir", PREFIX_SUM);
    for (text, status, expected) in [
        ("groups = 4\nblock = 3", 1, "line 2"),
        ("groups = -4", 1, "expected a number from 0 on, or three of them"),
        (
            "[parameters.data]\nlength = 8\noutput = \"close\"",
            1,
            "expected `\"bits\"`, `\"multiset\"`, `\"any\"` or the largest relative error",
        ),
        ("[parameters.date]\nlength = 4", 2, "did you mean `data`?"),
        ("groups = 0", 2, "empty"),
        ("group = 64", 2, "requires"),
        (
            "[parameters.length]\nvalue = 8\n[parameters.data]\nlength = 4",
            2,
            "length",
        ),
    ] {
        let launch = write(folder.path(), "launch.toml", text);
        refused(&["run", &kernel, "--launch", &launch], status, &[expected]);
    }
    let small = ["tune", "gather", "--model", "dram.size=1"];
    refused(
        &small,
        3,
        &["the buffers of the launch take", "sim:h200", "has 1.07 GB"],
    );
}

/// A launch file may name any length: no memory is taken for what nothing touches, and what is read back has a limit.
#[cfg(target_os = "linux")]
#[test]
fn a_buffer_larger_than_the_hosts_memory() {
    let folder = folder();
    // Its slice is as long as the launch file says, and one work-item writes it.
    let text = PREFIX_SUM.replace("i32[%length]", "i32[]");
    let text = text.replace("group 32,1,1", "group 1,1,1");
    let kernel = write(folder.path(), "k.hsir", &text);
    for (fill, expected) in [
        ("sequence", Err("`data`, whose 8000000000 bytes are too many")),
        ("zero", Ok("output    data ")),
    ] {
        let text = format!(
            "groups = 1\n[parameters.data]\nlength = 2000000000\nfill = {fill:?}\n[parameters.length]\nvalue = 8\n"
        );
        let launch = write(folder.path(), "launch.toml", &text);
        let output = limited(1 << 30, &["run", &kernel, "--launch", &launch]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match expected {
            Err(expected) => {
                assert_eq!(output.status.code(), Some(3), "{said}");
                assert!(said.contains(expected), "{said}");
            }
            Ok(expected) => {
                assert_eq!(output.status.code(), Some(0), "{said}");
                let found = String::from_utf8_lossy(&output.stdout);
                assert!(found.contains(expected), "{found}");
            }
        }
    }
}

#[test]
fn a_work_group_too_large_for_the_device() {
    table("3 run gather --set group=2048 => 2048 & too large for sim:h200 & at most 1024");
    let gen11 = ["tune", "gather", "--set", "group=512", "--device", "sim:gen11"];
    refused(&gen11, 3, &["512", "too large for sim:gen11", "at most 256"]);
}
