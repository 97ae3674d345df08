//! The results of earlier runs of the workloads: a run that a time limit stopped is resumed.

use std::path::PathBuf;

use headstart::files;
use headstart::suggest::quoted;
use headstart::{Error, Result};
use serde_json::{Value, json};

/// The results of workloads, an object each with its `case`.
#[derive(Debug, Default)]
pub struct Runs {
    results: Vec<Value>,
    /// The bandwidth of a copy in the run that is read last, in bytes per second.
    pub copy: Option<f64>,
}

/// The longest file, in bytes.
const MAX_BYTES: u64 = 256 << 20;

impl Runs {
    /// Reads the results in files: of several for one case the last one without an error, each with the date of its run.
    ///
    /// # Errors
    /// A file cannot be read or is no report of the benchmarks.
    pub fn open(files: &[PathBuf]) -> Result<Runs> {
        let mut runs = Runs::default();
        for file in files {
            let name = quoted(&file.to_string_lossy());
            let text = files::text(file, MAX_BYTES)
                .map_err(|error| Error::usage(format!("--from {name} cannot be read: {error}")))?;
            let report: Value = serde_json::from_str(&text)
                .map_err(|error| Error::input(format!("--from {name} is not JSON: {error}")))?;
            let results = report["workloads"].as_array().ok_or_else(|| {
                Error::input(format!("--from {name} has no `workloads`"))
                    .accepted("a file that `headstart-lab bench --suite workloads --json FILE` wrote")
            })?;
            for result in results.iter().filter(|result| result["error"].is_null()) {
                let mut result = result.clone();
                if result["date"].is_null() {
                    result["date"] = report["date"].clone();
                }
                runs.add(result);
            }
            runs.copy = report["copy_bytes_per_s"].as_f64().or(runs.copy);
        }
        Ok(runs)
    }

    /// Whether a case was measured.
    pub fn has(&self, case: &str) -> bool {
        let of = |result: &&Value| result["case"] == case;
        self.results.iter().find(of).is_some_and(|r| r["error"].is_null())
    }

    /// Keeps a result in the place of an earlier one.
    pub fn add(&mut self, result: Value) {
        self.results.retain(|known| known["case"] != result["case"]);
        self.results.push(result);
    }

    /// All results in the order of these names, those of no name last.
    pub fn in_order<'n>(&self, names: impl Iterator<Item = &'n str>) -> Value {
        let names: Vec<&str> = names.collect();
        let place = |result: &&Value| {
            let is_its = |name: &&str| result["case"] == **name;
            names.iter().position(is_its).unwrap_or(names.len())
        };
        let mut results: Vec<&Value> = self.results.iter().collect();
        results.sort_by_key(place);
        json!(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_gone_on_with() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, report: Value| {
            let path = folder.path().join(name);
            std::fs::write(&path, report.to_string()).expect("written");
            path
        };
        let one = json!({"date": "one", "copy_bytes_per_s": 4e12, "workloads": [
            {"case": "b", "plain_ns": 1.0}, {"case": "a", "error": "no memory"}, {"case": "c", "plain_ns": 3.0},
        ]});
        let two = json!({"date": "two", "copy_bytes_per_s": null, "workloads": [
            {"case": "b", "plain_ns": 2.0}, {"case": "c", "error": "no memory"},
        ]});
        let files = [file("one.json", one), file("two.json", two)];
        let mut runs = Runs::open(&files).expect("they are reports");
        assert_eq!(runs.copy, Some(4e12));
        assert!(!runs.has("a") && runs.has("b") && runs.has("c"));
        runs.add(json!({"case": "a", "plain_ns": 4.0}));
        assert_eq!(
            runs.in_order(["a", "b"].into_iter()),
            json!([
                {"case": "a", "plain_ns": 4.0},
                {"case": "b", "plain_ns": 2.0, "date": "two"},
                {"case": "c", "plain_ns": 3.0, "date": "one"},
            ])
        );
        let other = file("other.json", json!({"trials": []}));
        let error = Runs::open(&[other]).expect_err("no report of workloads");
        assert!(error.to_string().contains("has no `workloads`"), "{error}");
        let missing = Runs::open(&[folder.path().join("none")]).expect_err("no file");
        assert!(missing.to_string().contains("cannot be read"), "{missing}");
    }
}
