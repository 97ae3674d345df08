//! Our crates as they are published, in a registry that is a folder, and Cargo that takes every crate from there.
//!
//! Third-party crates come from Cargo's own cache; if some are missing, there is no registry.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, OnceLock};

use headstart_testing::tools;

/// The package of the programs in `examples/`.
pub const EXAMPLES: &str = "headstart-examples";

/// The tests fill the same folders.
static ALONE: Mutex<()> = Mutex::new(());

pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package is in the workspace")
}

/// A program in a folder, without what the Cargo around this test told it of this package.
fn program(name: &OsStr, folder: &Path) -> Command {
    let mut command = Command::new(name);
    command.current_dir(folder);
    for (name, _) in std::env::vars_os() {
        let said = name.to_string_lossy();
        if said.starts_with("CARGO_PKG_")
            || said.starts_with("CARGO_MANIFEST")
            || said.starts_with("CARGO_BIN_EXE")
        {
            command.env_remove(&name);
        }
    }
    command
}

/// The path of Cargo, or its name.
fn cargo_itself() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

pub fn cargo(folder: &Path) -> Command {
    program(&cargo_itself(), folder)
}

pub fn run(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs a command that must succeed; what it printed.
pub fn succeeds(command: &mut Command) -> String {
    let output = run(command);
    let (said, complained) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}{complained}",
        output.status
    );
    said.into_owned()
}

/// Our crates as they are published, and a registry of them and of all that they depend on.
pub struct Registry {
    /// What is built from it, kept between runs.
    pub target: PathBuf,
    /// The folder of the registry.
    pub folder: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Registry {
    /// Packages the crates. None, and a line that says so, where a tool or a crate of others is missing.
    pub fn new() -> Option<Registry> {
        let alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if Command::new("tar").arg("--version").output().is_err() {
            tools::skip("tar", "no tar");
            return None;
        }
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packaged");
        let (target, folder) = (home.join("target"), home.join("registry"));
        fs::create_dir_all(&home).expect("a folder");
        let mut vendor = cargo(workspace());
        vendor.args(["vendor", "--offline", "--locked", "--versioned-dirs"]);
        let vendored = run(vendor.arg(&folder));
        if !vendored.status.success() {
            let said = String::from_utf8_lossy(&vendored.stderr);
            let first = said.lines().find(|line| line.contains("failed")).unwrap_or(&said);
            let why = "not every crate of Cargo.lock is here, `cargo fetch --locked` fetches them";
            tools::skip("crates", &format!("{why} ({})", first.trim()));
            return None;
        }

        let packages = published();
        let mut package = cargo(workspace());
        package.args([
            "package",
            "--no-verify",
            "--offline",
            "--allow-dirty",
            "--target-dir",
        ]);
        package.arg(&target);
        // The examples are not published: they are packaged for their manifest, which then stands for itself.
        for name in packages
            .iter()
            .map(|package| package.name.as_str())
            .chain([EXAMPLES])
        {
            package.args(["--package", name]);
        }
        succeeds(&mut package);
        let packages: Vec<String> = packages
            .iter()
            .map(|package| format!("{}-{}", package.name, package.version))
            .collect();
        for package in &packages {
            unpack(&target, package, &folder);
        }
        // What Cargo computed while packaging, and compares with the lock files in the packages.
        let command = packages
            .iter()
            .find(|package| package.starts_with("headstart-cli-"));
        let sums = checksums(&folder.join(command.expect("the command is published")));
        for package in &packages {
            let mut sum = serde_json::json!({"files": {}});
            if let Some(known) = sums.get(package) {
                sum["package"] = known.clone().into();
            }
            fs::write(folder.join(package).join(".cargo-checksum.json"), sum.to_string())
                .expect("the registry can be written");
        }
        let registry = Registry {
            target,
            folder,
            _alone: alone,
        };
        registry.forget_ours();
        Some(registry)
    }

    /// Has Cargo in a folder take every crate from this registry.
    pub fn is_used_in(&self, folder: &Path) {
        let registry = self.folder.to_str().expect("a path in Unicode");
        let settings = format!(
            "[source.crates-io]\nreplace-with = \"packaged\"\n[source.packaged]\ndirectory = '{registry}'\n"
        );
        fs::create_dir(folder.join(".cargo")).expect("a folder");
        fs::write(folder.join(".cargo/config.toml"), settings).expect("a file");
    }

    /// Removes outputs of earlier versions of our crates: to Cargo a crate of a registry changes with its version only.
    fn forget_ours(&self) {
        static FORGOTTEN: OnceLock<()> = OnceLock::new();
        FORGOTTEN.get_or_init(|| {
            let user = tempfile::tempdir().expect("a folder");
            self.is_used_in(user.path());
            let mut manifest = "[package]\nname = \"user\"\nedition = \"2024\"\n[dependencies]\n".to_owned();
            for Package { name, version, .. } in published() {
                manifest += &format!("{name} = \"={version}\"\n");
            }
            fs::write(user.path().join("Cargo.toml"), manifest).expect("a manifest");
            fs::create_dir(user.path().join("src")).expect("a folder");
            fs::write(user.path().join("src/lib.rs"), "").expect("a source");
            let mut clean = self.cargo(user.path());
            clean.args(["clean", "--quiet"]);
            for package in published() {
                clean.args(["--package", &package.name]);
            }
            succeeds(&mut clean);
        });
    }

    /// Cargo in a folder that uses the registry, for a build without optimization.
    pub fn cargo(&self, folder: &Path) -> Command {
        self.with_settings(cargo(folder))
    }

    /// A shell script that stops at the first command that fails, in such a folder. `cargo` is on its path, after `bin`.
    pub fn shell(&self, folder: &Path, bin: &Path, script: &str) -> Command {
        let mut places = vec![bin.to_owned()];
        places.extend(Path::new(&cargo_itself()).parent().map(Path::to_owned));
        let path = std::env::var_os("PATH").unwrap_or_default();
        places.extend(std::env::split_paths(&path));
        let mut shell = self.with_settings(program("bash".as_ref(), folder));
        shell
            .env(
                "PATH",
                std::env::join_paths(places).expect("no colon in a folder's name"),
            )
            .args(["-e", "-o", "pipefail", "-c", script]);
        shell
    }

    fn with_settings(&self, mut command: Command) -> Command {
        command
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_INCREMENTAL", "0")
            // Compiling the library takes most of the time here, the program a second.
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
        command
    }
}

/// Unpacks `NAME-VERSION` into a folder of that name in another.
pub fn unpack(target: &Path, package: &str, into: &Path) {
    let archive = target.join("package").join(format!("{package}.crate"));
    succeeds(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(into));
}

/// The checksums in a package's lock file, by `NAME-VERSION`.
fn checksums(package: &Path) -> BTreeMap<String, String> {
    let lock =
        fs::read_to_string(package.join("Cargo.lock")).expect("the package of a program has a lock file");
    let lock: toml::Table = lock.parse().expect("TOML");
    let packages = lock["package"].as_array().expect("packages");
    let sums = packages.iter().filter_map(|package| {
        let text = |key: &str| package.get(key)?.as_str();
        Some((
            format!("{}-{}", text("name")?, text("version")?),
            text("checksum")?.to_owned(),
        ))
    });
    sums.collect()
}

/// A package of the workspace that is published.
pub struct Package {
    pub name: String,
    pub version: String,
    pub folder: PathBuf,
    /// What it uses of the workspace, and in which version.
    pub ours: Vec<(String, String)>,
}

pub fn published() -> Vec<Package> {
    let mut metadata = cargo(workspace());
    metadata.args(["metadata", "--offline", "--no-deps", "--format-version", "1"]);
    let listed: serde_json::Value = serde_json::from_str(&succeeds(&mut metadata)).expect("JSON");
    let packages = listed["packages"].as_array().expect("packages");
    let published = packages.iter().filter(|package| package["publish"].is_null());
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    let described = published.map(|package| {
        let name = text(&package["name"]);
        for key in ["description", "license", "readme", "rust_version"] {
            assert!(package[key].is_string(), "{name} has no {key}");
        }
        // One for tests alone needs no version: Cargo leaves it out of the package.
        let uses = package["dependencies"].as_array().expect("dependencies").iter();
        let ours = uses.filter(|used| used["path"].is_string() && used["kind"] != "dev");
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        Package {
            version: text(&package["version"]),
            folder: manifest.parent().expect("a folder").to_owned(),
            ours: ours
                .map(|used| (text(&used["name"]), text(&used["req"])))
                .collect(),
            name,
        }
    });
    described.collect()
}
