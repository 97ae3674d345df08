//! The origin in a file of results: the day, the driver, and a command that its reader can run.
//!
//! Results are published without private details of the machine that made them: how the program was started and where its files
//! lie mean nothing elsewhere.

use std::time::{SystemTime, UNIX_EPOCH};

/// Options whose value is a file of the machine that measured.
const FILES: [&str; 6] = ["--json", "--html", "--log", "--from", "--output", "-o"];

/// Options whose value is a program or a folder: a path from the root is cut down to its name.
const PLACES: [&str; 2] = ["--nvcc", "--peers"];

/// Today, in UTC.
pub fn date() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Days since 1 March of the year 0, in eras of 400 years (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
    let days = now.as_secs() / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

/// The driver's own version, where the system tells it.
pub fn driver() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let word = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.split_whitespace().find(word).map(str::to_owned)
}

/// This process's command line, as its reader would type it who calls the program so.
pub fn command(program: &str) -> String {
    of(program, std::env::args())
}

fn of(program: &str, arguments: impl Iterator<Item = String>) -> String {
    let mut words = vec![program.to_owned()];
    // The rewritten value of an option that stands in the next argument.
    let mut pending: Option<String> = None;
    for argument in arguments.skip(1) {
        if let Some(option) = pending.take() {
            words.push(value(&option, &argument));
            continue;
        }
        match argument.split_once('=') {
            Some((option, given)) if is_about_a_place(option) => {
                words.push(format!("{option}={}", value(option, given)));
            }
            _ => {
                if is_about_a_place(&argument) {
                    pending = Some(argument.clone());
                }
                words.push(quoted(&argument));
            }
        }
    }
    words.join(" ")
}

fn is_about_a_place(option: &str) -> bool {
    FILES.contains(&option) || PLACES.contains(&option)
}

fn value(option: &str, given: &str) -> String {
    if FILES.contains(&option) {
        return "FILE".to_owned();
    }
    let path = given.trim_end_matches('/');
    let name = path.rsplit_once('/').filter(|_| path.starts_with('/'));
    quoted(name.map_or(path, |(_, name)| name))
}

/// In quotation marks for a shell, where it needs them.
fn quoted(argument: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=./:,+@%^".contains(letter);
    match !argument.is_empty() && argument.chars().all(plain) {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    fn published(program: &str, line: &[&str]) -> String {
        of(program, line.iter().map(ToString::to_string))
    }

    #[test]
    fn places_of_the_machine_that_measured_are_left_out() {
        let line = [
            "/root/build/hs-n",
            "bench",
            "--suite",
            "documents",
            "--json",
            "/root/out/d/bench.json",
            "--peers",
            "scripts/cuda/",
            "--nvcc=/usr/local/cuda/bin/nvcc",
        ];
        assert_eq!(
            published("headstart-lab", &line),
            "headstart-lab bench --suite documents --json FILE --peers scripts/cuda --nvcc=nvcc"
        );
    }

    #[test]
    fn files_have_no_names() {
        let line = [
            "headstart",
            "calibrate",
            "--json",
            "/root/out/m.json",
            "-o",
            "/root/out/m.toml",
        ];
        assert_eq!(
            published("headstart", &line),
            "headstart calibrate --json FILE -o FILE"
        );
    }

    #[test]
    fn words_with_blanks_can_be_pasted() {
        let line = [
            "./headstart",
            "bench",
            "--case",
            "article groups=33",
            "--case",
            "it's",
        ];
        assert_eq!(
            published("headstart-lab", &line),
            r"headstart-lab bench --case 'article groups=33' --case 'it'\''s'"
        );
    }
}
