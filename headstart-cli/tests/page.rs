//! The page of `headstart tune --html`, as a real browser sees it: its values are those of the JSON, it fits a phone, it
//! is light and dark, it asks for nothing from elsewhere.
//!
//! Skipped, and says so, where there is no Chromium (`CHROMIUM` names another one).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than a browser takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

fn browser() -> Option<PathBuf> {
    let given = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let found = given.or_else(|| {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let path = std::env::var_os("PATH")?;
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        names.iter().find_map(|name| {
            folders
                .iter()
                .map(|folder| folder.join(name))
                .find(|file| file.is_file())
        })
    });
    if found.is_none() {
        eprintln!("SKIPPED: there is no Chromium to look at the page with");
    }
    found
}

/// What the browser makes of a page that is written to `folder`: the document after its scripts ran.
fn seen(browser: &Path, folder: &Path, page: &str, arguments: &[&str]) -> String {
    let file = folder.join("seen.html");
    fs::write(&file, page).expect("written");
    let output = folder.join("seen.txt");
    let mut child = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(arguments)
        .arg("--dump-dom")
        .arg(format!("file://{}", file.display()))
        .stdout(fs::File::create(&output).expect("a file"))
        .stderr(Stdio::null())
        .spawn()
        .expect("the browser starts");
    let started = Instant::now();
    while child.try_wait().expect("a status").is_none() {
        if started.elapsed() > LIMIT {
            let _ = child.kill();
            panic!("the browser does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    fs::read_to_string(output).expect("what it printed")
}

/// The page in a frame of this width, with a script that notes what it sees as JSON in `<pre id="noted">`.
fn noted(browser: &Path, folder: &Path, page: &str, width: u32, arguments: &[&str]) -> Value {
    // The page forbids scripts; the script that looks at it stands outside of it.
    let framed = page.replace('&', "&amp;").replace('"', "&quot;");
    let looking = r##"
        const frame = document.querySelector("iframe");
        frame.onload = () => {
            const page = frame.contentDocument, view = frame.contentWindow;
            const text = (id) => page.getElementById(id)?.textContent ?? null;
            const rows = (id) => page.querySelectorAll("#" + id + " tbody tr").length;
            const visible = (name) => [...page.querySelectorAll(name)].filter((e) => e.getClientRects().length > 0);
            const style = view.getComputedStyle(page.body);
            const strips = visible("svg.timeline").map((svg) => svg.querySelectorAll("g").length);
            // The class of a bar, and its height: the `v` of its path.
            const bars = visible("svg.timeline").flatMap((svg) => [...svg.querySelectorAll("path")])
                .flatMap((e) => [...e.getAttribute("d").matchAll(/h\d+v(\d+)/g)].map((bar) => e.getAttribute("class") + " " + bar[1]));
            const scaled = () => page.querySelector(".scaled").getBoundingClientRect().width;
            const before = scaled();
            page.getElementById("zoom-4").checked = true;
            const zoomed = scaled() / before;
            const names = visible(".strip-name").map((e) => e.textContent);
            document.getElementById("noted").textContent = JSON.stringify({
                verdict: text("verdict"), plan: text("plan"), trials: rows("trials"), stalls: rows("stalls"),
                loads: rows("loads"), iterations: rows("iterations"), source: text("source"),
                timelines: visible("svg.timeline").length, strips, bars: bars.length, doing: [...new Set(bars)].sort(),
                zoomed, names,
                times: [...page.querySelectorAll("#trials tbody tr td:nth-child(3)")].map((e) => e.textContent),
                overflow: page.documentElement.scrollWidth - view.innerWidth,
                paper: style.backgroundColor, ink: style.color,
                unnamed: visible("svg").filter((svg) => svg.getAttribute("aria-hidden") !== "true"
                    && !svg.getAttribute("aria-label") && !svg.querySelector("title")).length,
                foreign: view.performance.getEntriesByType("resource").length,
                lang: page.documentElement.lang, headings: page.querySelectorAll("h1").length,
            });
        };"##;
    let outer = format!(
        "<!doctype html><html><body><iframe style=\"width:{width}px;height:4000px;border:0\" srcdoc=\"{framed}\"></iframe>\
         <pre id=\"noted\"></pre><script>{looking}</script></body></html>"
    );
    let document = seen(
        browser,
        folder,
        &outer,
        &[
            &["--window-size=1400,4200", "--virtual-time-budget=4000"],
            arguments,
        ]
        .concat(),
    );
    let start = document.find("<pre id=\"noted\">").expect("the note") + "<pre id=\"noted\">".len();
    let end = document[start..].find("</pre>").expect("its end") + start;
    let text = document[start..end]
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// How bright a colour is, 0 to 1, as WCAG 2 counts it.
fn luminance(colour: &Value) -> f64 {
    let text = colour.as_str().expect("a colour");
    let parts: Vec<f64> = text
        .trim_start_matches("rgb(")
        .trim_end_matches(')')
        .split(',')
        .map(|part| part.trim().parse::<f64>().expect("a number") / 255.0)
        .collect();
    let linear = |part: f64| {
        if part <= 0.04045 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * linear(parts[0]) + 0.7152 * linear(parts[1]) + 0.0722 * linear(parts[2])
}

#[test]
fn a_browser_shows_what_was_found() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [html, json] = ["page.html", "report.json"].map(|name| folder.path().join(name));
    let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(["tune", "gather", "--device", "sim:h200", "--set", "groups=132", "--set", "items=64"])
        .args(["--plans", "unroll:4;values=rolling-async:4;values=rolling-registers:2;values=cache:L2:4;unroll:8,values=rolling-async:8"])
        .arg("--html")
        .arg(&html)
        .arg("--json")
        .arg(&json)
        .output()
        .expect("the command runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let page = fs::read_to_string(&html).expect("a page");
    if let Some(keep) = std::env::var_os("HEADSTART_PAGE") {
        fs::write(keep, &page).expect("kept");
    }
    let report: Value = serde_json::from_str(&fs::read_to_string(&json).expect("a report")).expect("JSON");

    let wide = noted(&browser, folder.path(), &page, 1200, &[]);
    let said = wide["verdict"].as_str().expect("a verdict").to_lowercase();
    assert_eq!(Some(said.as_str()), report["verdict"].as_str());
    assert_eq!(wide["plan"], report["best"]["plan"]);
    // Five plans, the plain kernel, and elsewhere the plain kernel and the best plan.
    let elsewhere =
        ["plain_best_geometry", "best_elsewhere"].map(|name| usize::from(!report[name].is_null()));
    let elsewhere: usize = elsewhere.iter().sum();
    assert_eq!(wide["trials"], 6 + elsewhere);
    let fastest = format!("{:.2}×", report["best"]["speedup"].as_f64().expect("a speedup"));
    assert!(
        wide["times"]
            .as_array()
            .expect("speedups")
            .iter()
            .any(|time| time == fastest.as_str()),
        "{fastest}: {}",
        wide["times"]
    );
    assert!(
        wide["stalls"].as_u64() > Some(2) && wide["loads"].as_u64() > Some(0),
        "{wide}"
    );
    assert!(
        wide["iterations"].as_u64() > Some(16) && wide["bars"].as_u64() > Some(100),
        "{wide}"
    );
    assert!(
        wide["source"]
            .as_str()
            .is_some_and(|text| text.contains("kernel")),
        "{wide}"
    );
    // The middle of the launch: with the plan a sub-group waits for loads far less than without.
    let waiting = |number: usize| {
        let text = wide["names"][number].as_str().expect("a name");
        let (_, share) = text.rsplit_once("waits for loads ").expect("a share");
        share.trim_end_matches(" %").parse::<f64>().expect("a number")
    };
    assert!(waiting(0) > 60.0 && waiting(1) < 0.75 * waiting(0), "{wide}");
    assert_eq!(wide["strips"], serde_json::json!([4, 4]));
    // What differs in colour differs in height, too.
    assert_eq!(wide["doing"].as_array().map(Vec::len), Some(3), "{wide}");
    let phone = noted(&browser, folder.path(), &page, 390, &[]);
    for (name, seen) in [("wide", &wide), ("phone", &phone)] {
        assert!(seen["overflow"].as_i64() <= Some(0), "{name}: {seen}");
        assert_eq!(
            (&seen["timelines"], &seen["zoomed"]),
            (&Value::from(2), &Value::from(4)),
            "{name}"
        );
        assert_eq!(
            (&seen["unnamed"], &seen["foreign"]),
            (&Value::from(0), &Value::from(0)),
            "{name}"
        );
        assert_eq!(
            (seen["lang"].as_str(), seen["headings"].as_u64()),
            (Some("en"), Some(1)),
            "{name}"
        );
    }

    let dark = noted(
        &browser,
        folder.path(),
        &page,
        1200,
        &["--blink-settings=preferredColorScheme=0"],
    );
    for (name, seen) in [("light", &wide), ("dark", &dark)] {
        let (paper, ink) = (luminance(&seen["paper"]), luminance(&seen["ink"]));
        let contrast = (paper.max(ink) + 0.05) / (paper.min(ink) + 0.05);
        assert!(contrast >= 7.0, "{name}: {contrast}");
    }
    assert!(
        luminance(&wide["paper"]) > 0.5 && luminance(&dark["paper"]) < 0.1,
        "{} {}",
        wide["paper"],
        dark["paper"]
    );
}
