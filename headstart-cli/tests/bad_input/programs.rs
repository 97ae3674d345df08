//! The program is wrong: a project that `headstart new` cannot create, or a program that leaves no launch.

use std::fs;
use std::path::Path;

#[cfg(unix)]
use crate::HALF_A_BARRIER;
use crate::{folder, headstart, refused, table, write};

#[test]
fn a_program_that_cannot_be_started_from_nothing() {
    let folder = folder();
    let inside = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    for (name, similar) in [
        ("9lives", "`lives`"),
        ("My Kernel", "`my-kernel`"),
        ("fn", "`fn-kernel`"),
    ] {
        refused(
            &["new", &inside(name)],
            2,
            &[&format!("`{name}`"), "a letter, then", similar],
        );
    }
    table("2 new .. => `..` does not end in a name & `my-kernel`");
    refused(
        &["new", &inside("no/such")],
        2,
        &["there is no folder", "a path whose parent folder exists"],
    );
    write(folder.path(), "taken", "");
    refused(
        &["new", &inside("taken")],
        2,
        &["exists and is not a folder", "an empty folder"],
    );
    fs::create_dir(folder.path().join("full")).expect("a folder");
    write(&folder.path().join("full"), "notes", "");
    refused(
        &["new", &inside("full")],
        2,
        &["exists and is not empty", "an empty folder"],
    );
    let path = inside("full");
    refused(
        &["new", &inside("free"), "--path", &path],
        2,
        &["no package `headstart`", "a checkout"],
    );
    refused(
        &["new", &inside("free"), "--path", &inside("gone")],
        2,
        &["--path", "a checkout"],
    );
    let left = fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 2, "nothing was written");
}

#[test]
fn a_new_program_depends_on_what_is_asked_for() {
    let folder = folder();
    let started = |arguments: &[&str]| {
        let program = folder.path().join("program");
        let _ = fs::remove_dir_all(&program);
        // An empty folder is accepted.
        fs::create_dir(&program).expect("a folder");
        let output = headstart(&[&["new", &*program.to_string_lossy()], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        let manifest = fs::read_to_string(program.join("Cargo.toml")).expect("a manifest");
        manifest.parse::<toml::Table>().expect("TOML")
    };
    let published = started(&[]);
    assert_eq!(
        published["dependencies"]["headstart"].as_str(),
        Some(env!("CARGO_PKG_VERSION"))
    );
    assert!(!published.contains_key("workspace"));
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let library = fs::canonicalize(checkout.join("headstart")).expect("the library");
    // Both the checkout and the package in it are accepted.
    for path in [&checkout, &library] {
        let table = started(&["--path", &path.to_string_lossy()]);
        assert_eq!(
            table["dependencies"]["headstart"]["path"].as_str(),
            library.to_str()
        );
    }
    // The folder is inside another workspace.
    write(folder.path(), "Cargo.toml", "[workspace]\n");
    assert!(started(&[]).contains_key("workspace"));
}

/// A stand-in for a program: what it leaves is what a real one left.
#[cfg(unix)]
#[test]
fn programs_that_leave_no_launch() {
    use std::os::unix::fs::PermissionsExt;

    let folder = folder();
    let script = |name: &str, text: &str| {
        let path = write(folder.path(), name, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
        path
    };
    let idle = script("idle", "exit 0");
    let failing = script("failing", "exit 3");
    table(&format!(
        "
        1 tune --bin {idle} => launched no `#[kernel]` & headstart capture
        1 kernels --bin {failing} => failed, exit status: 3
        2 tune --bin no/such => `no/such` cannot be run & a built program
    "
    ));
    // A kernel whose launch was kept, and one whose launch could not be.
    let kernel = write(folder.path(), "half.hsir", HALF_A_BARRIER);
    let launch = write(
        folder.path(),
        "half.toml",
        "groups = [2, 1, 1]\ngroup = [128, 1, 1]\n[parameters.\"data\"]\nlength = 128\n[parameters.\"length\"]\nvalue = 128\n",
    );
    let two = script(
        "two",
        &format!(
            "cp {kernel} {launch} $HEADSTART_LAUNCHES\necho inside > $HEADSTART_LAUNCHES/other.refused\necho $1"
        ),
    );
    let output = headstart(&["kernels", "--bin", &two, "--", "loud"]);
    assert!(output.status.success(), "{output:?}");
    let (listed, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(
        listed,
        "half  2 work-groups of 128 work-items, 512 bytes of data\n"
    );
    assert!(
        said.contains("no launch of `other` was recorded: inside"),
        "{said}"
    );
    table(&format!(
        "2 tune hafl --bin {two} => no kernel `hafl` & did you mean `half`?"
    ));
}
