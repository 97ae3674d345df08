//! The device is wrong: unknown, too small, without a driver, or a model with impossible numbers.

use std::process::Command;

use crate::{folder, headstart, refused, table, write};

#[test]
fn an_unknown_device() {
    table(
        "
        2 tune gather --device sim:h2000 => `h2000` & did you mean `h200`?
        2 tune gather --device tpu:0 => `tpu:0` & sim:
        2 tune gather --device cuda:first => `cuda:first` & `cuda:0`
    ",
    );
    // No machine has this many GPUs; this one may have none, and no driver.
    table(
        "
        3 tune gather --device cuda:4711 =>
        2 occupancy --group 64 --device my.toml => my.toml & cannot be read
    ",
    );
}

#[test]
fn what_a_device_does_not_have() {
    let occupancy = ["occupancy", "--group", "256", "--device", "sim:h200"];
    let with = |more: &[&'static str]| [&occupancy[..], more].concat();
    refused(
        &with(&["--registers", "300"]),
        3,
        &["300 registers", "at most 255"],
    );
    refused(
        &with(&["--shared", "300000"]),
        3,
        &["no such work-group fits", "shared memory"],
    );
    for target in ["spirv", "machine"] {
        table(&format!(
            "3 emit blocks-of-eight --device sim:xe-lp --target {target} => blocks.rs & sub-groups of 32 & blocks for 16 and fewer"
        ));
    }
    table(
        "2 tune gather --device sim:h200 --measure 3 => `--measure 3` & on the simulated sim:h200 & `--plans`",
    );
}

#[test]
fn occupancy_recommends_work_groups_that_the_device_launches() {
    let run = |arguments: &[&str]| {
        let output = headstart(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    // The guide's work-groups of 448 are larger than the device launches: none is recommended, and none fits.
    let guide = |device: &str, group: &str, sub_group: &str| {
        let asked = ["occupancy", "--device", device, "--barrier", "--json", "-"];
        let rest = ["--group", group, "--sub-group", sub_group];
        serde_json::from_str::<serde_json::Value>(&run(&[&asked[..], &rest].concat())).expect("JSON")
    };
    let four = guide("sim:gen11", "256", "8");
    assert_eq!(four["recommended_group"], serde_json::json!([32, 256]));
    assert_eq!(four["occupancy"], 4.0 / 7.0);
    let recommended = &guide("sim:xe-lp", "512", "32")["recommended_group"];
    assert_eq!(*recommended, serde_json::json!([128, 512]));
    // With twice the registers a core has half the threads: 32, of 16 work-items each.
    let large = [
        "--group",
        "512",
        "--sub-group",
        "16",
        "--large-grf",
        "--registers",
        "300",
    ];
    let text = run(&[&["occupancy", "--device", "sim:pvc-1550"][..], &large].concat());
    assert!(text.contains("work-groups of 64 to 512 work-items"), "{text}");
    assert!(text.contains("has 256 registers; 44 of 300"), "{text}");
    let larger = ["--model", "core.work-group-size=448"];
    let seven = [
        "occupancy",
        "--device",
        "sim:gen11",
        "--barrier",
        "--group",
        "448",
        "--sub-group",
        "8",
    ];
    assert!(run(&[&seven[..], &larger].concat()).contains("100 % occupancy"));
    refused(
        &seven,
        3,
        &["no such work-group fits", "work-group size", "at most 256"],
    );
    let json: serde_json::Value = serde_json::from_str(&run(&[
        "occupancy",
        "--device",
        "sim:a100",
        "--group",
        "256",
        "--registers",
        "65",
        "--json",
        "-",
    ]))
    .expect("JSON");
    assert_eq!(json["groups_per_core"], 3);
    assert_eq!(json["occupancy"], 0.375);
    assert_eq!(json["limit"], "registers");
}

#[test]
fn numbers_of_a_model_that_divide() {
    for (number, why) in [
        ("registers.pooled.granule=0", "must not be 0"),
        ("shared.granule=0", "power of two"),
    ] {
        let asked = [
            "occupancy",
            "--device",
            "sim:h200",
            "--group",
            "128",
            "--model",
            number,
        ];
        refused(&asked, 2, &[why]);
    }
    // Nothing is kept back: a work-group without shared memory takes none.
    let output = headstart(&[
        "run",
        "gather",
        "--set",
        "items=4",
        "--model",
        "shared.reserved=0",
    ]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A library of the driver's name without the driver's functions.
#[test]
fn a_library_that_is_no_driver() {
    let folder = folder();
    let source = write(folder.path(), "empty.c", "int headstart_test;\n");
    let library = folder.path().join("libcuda.so.1");
    let built = Command::new("cc")
        .args(["-shared", "-o"])
        .arg(&library)
        .arg(source)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: no C compiler");
        return;
    }
    std::fs::copy(&library, folder.path().join("libcuda.so")).expect("copied");
    let run = |device: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
            .args(["run", "gather", "--set", "items=4"])
            .args(device)
            .env("LD_LIBRARY_PATH", folder.path())
            .output()
            .expect("it starts");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (status, said) = run(&["--device", "cuda:0"]);
    assert_eq!(status, Some(3), "{said}");
    assert!(
        said.contains("has no `cu") && !said.contains("panicked"),
        "{said}"
    );
    let (status, said) = run(&[]);
    assert_eq!(status, Some(0), "{said}");
}
