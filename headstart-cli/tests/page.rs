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

/// What a test notes of a page: the body of a function of the page and of its window.
type Looking = &'static str;

/// What there is to see.
const OVERVIEW: Looking = r##"
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
    page.getElementById("zoom-1").checked = true;
    // What reaches out of its frame: boxes that would have to be scrolled, and text outside of its drawing.
    const cut = visible(".scroll, pre, .strips, #pair, .layouts")
        .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
        .map((e) => e.className + " " + (e.firstElementChild?.id ?? ""));
    for (const text of visible("svg.figure text")) {
        const [inner, outer] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
        if (inner.left < outer.left - 1 || inner.right > outer.right + 1) cut.push(text.textContent);
    }
    return {
        verdict: text("verdict"), plan: text("plan"), trials: rows("trials"), stalls: rows("stalls"),
        loads: rows("loads"), iterations: rows("iterations"),
        timelines: visible("svg.timeline").length, strips, bars: bars.length, doing: [...new Set(bars)].sort(),
        zoomed, names, cut,
        times: [...page.querySelectorAll("#trials tbody tr td:nth-child(3)")].map((e) => e.textContent),
        overflow: page.documentElement.scrollWidth - view.innerWidth,
        paper: style.backgroundColor, ink: style.color,
        unnamed: visible("svg").filter((svg) => svg.getAttribute("aria-hidden") !== "true"
            && !svg.getAttribute("aria-label") && !svg.querySelector("title")).length,
        sorts: page.querySelector("#trials button") !== null, foreign: view.performance.getEntriesByType("resource").length,
        lang: page.documentElement.lang, headings: page.querySelectorAll("h1").length,
    };
"##;

/// Sorts the plans by time, once up and once down, and filters them.
const TABLES: Looking = r##"
    const table = page.getElementById("trials");
    const head = table.tHead.rows[0].cells[1];
    const times = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[1].dataset.v));
    const press = () => head.querySelector("button").click();
    press();
    const [up, said] = [times(), head.getAttribute("aria-sort")];
    press();
    const down = times();
    const input = table.closest("section").querySelector("input[type=search]");
    input.value = "ROLLING -unroll";
    input.dispatchEvent(new view.Event("input"));
    const left = [...table.tBodies[0].rows].filter((row) => row.getClientRects().length > 0);
    const plans = left.map((row) => row.cells[0].textContent);
    const counted = table.closest("section").querySelector("output").textContent;
    input.value = "";
    input.dispatchEvent(new view.Event("input"));
    const all = [...table.tBodies[0].rows].filter((row) => !row.hidden).length;
    return { up, said, down, plans, counted, all };
"##;

/// Puts plans side by side in each form, and asks where a line comes from.
const PAIR: Looking = r##"
    const section = page.getElementById("code");
    const view_of = () => section.querySelector(".pair");
    const [left, right, form] = section.querySelectorAll("#pair select");
    const choose = (box, value) => { box.value = value; box.dispatchEvent(new view.Event("change")); };
    const forms = {};
    for (const option of form.options) {
        choose(form, option.value);
        const rows = [...view_of().querySelectorAll(".row")];
        const differing = rows.filter((row) => row.classList.contains("differs"));
        const colour = (name) => {
            const cell = view_of().querySelector(".differs ." + name + ":not(.gap)");
            return cell && view.getComputedStyle(cell).backgroundColor;
        };
        forms[option.text] = {
            rows: rows.length, differing: differing.length, gone: colour("a"), come: colour("b"),
            places: view_of().querySelectorAll(".cell[data-at]").length,
            shares: view_of().querySelectorAll(".share").length,
            said: section.querySelector("#pair output").textContent,
        };
        const place = [...view_of().querySelectorAll(".cell.a")].find((cell) => cell.dataset.at?.endsWith("gather.rs:46"));
        place.querySelector("button").click();
        forms[option.text].told = section.querySelector(".told").textContent;
        forms[option.text].linked = [...view_of().querySelectorAll(".linked")].map((cell) => cell.dataset.at);
    }
    choose(right, left.value);
    const same = section.querySelector("#pair output").textContent;
    const plans = [...left.options].map((option) => option.text);
    choose(left, 1);
    choose(right, 2);
    choose(form, 1);
    const others = view_of().querySelectorAll(".differs").length;
    const cells = [...view_of().querySelectorAll(".cell")].filter((cell) => cell.getClientRects().length > 0);
    const wide = cells.filter((cell) => cell.getBoundingClientRect().right > view.innerWidth).length;
    return { forms, same, plans, others, wide, listings: section.querySelectorAll("details.listing").length };
"##;

/// The page in a frame of this width, and what was noted of it. With `scripts` off, its own do not run.
fn looked(
    browser: &Path,
    folder: &Path,
    page: &str,
    (width, scripts): (u32, bool),
    arguments: &[&str],
    looking: Looking,
) -> Value {
    // The page forbids scripts that are not its own; the script that looks at it stands outside of it.
    let framed = page.replace('&', "&amp;").replace('"', "&quot;");
    let sandbox = if scripts {
        ""
    } else {
        "sandbox=\"allow-same-origin\""
    };
    let script = format!(
        "const frame = document.querySelector(\"iframe\");
         const look = (page, view) => {{ {looking} }};
         frame.onload = () => {{
             let seen;
             try {{ seen = look(frame.contentDocument, frame.contentWindow); }}
             catch (error) {{ seen = {{ error: String(error.stack) }}; }}
             document.getElementById(\"noted\").textContent = JSON.stringify(seen);
         }};"
    );
    let outer = format!(
        "<!doctype html><html><body><pre id=\"noted\"></pre><script>addEventListener(\"DOMContentLoaded\", () => {{ {script} \
         }});</script><iframe {sandbox} style=\"width:{width}px;height:4000px;border:0\" srcdoc=\"{framed}\"></iframe></body>\
         </html>"
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
    let noted: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(noted["error"].is_null(), "{}", noted["error"]);
    noted
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

/// A page and the report that it shows, of five plans of `gather`.
fn tuned(folder: &Path) -> (String, Value) {
    let [html, json] = ["page.html", "report.json"].map(|name| folder.join(name));
    let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
        // Where the kernels' sources are.
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
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
    let report = serde_json::from_str(&fs::read_to_string(&json).expect("a report")).expect("JSON");
    (page, report)
}

#[test]
fn tables_sort_and_filter() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, _) = tuned(folder.path());
    for width in [390, 1280] {
        let seen = looked(&browser, folder.path(), &page, (width, true), &[], TABLES);
        let times = |name: &str| -> Vec<f64> {
            let times = seen[name].as_array().expect("times").iter();
            times.map(|time| time.as_f64().expect("a time")).collect()
        };
        let (up, down) = (times("up"), times("down"));
        assert!(up.is_sorted() && up.len() >= 6 && up[0] < up[5], "{seen}");
        assert!(down.is_sorted_by(|one, other| one >= other), "{seen}");
        assert_eq!(seen["said"], "ascending");
        let plans = seen["plans"].as_array().expect("plans");
        assert!(!plans.is_empty() && plans.len() < up.len(), "{seen}");
        for plan in plans {
            let plan = plan.as_str().expect("a plan");
            assert!(plan.contains("rolling") && !plan.contains("unroll"), "{plan}");
        }
        assert_eq!(seen["counted"], format!("{} of {}", plans.len(), up.len()));
        assert_eq!(seen["all"].as_u64(), Some(up.len() as u64));
    }
}

/// Names of C++ and parameters may have no place to break.
#[test]
fn a_programs_page_fits_a_phone() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let long = "DeviceSegmentedReduceKernel".repeat(8);
    let kind = serde_json::json!({
        "kernel": long, "image": "0", "launches": 3, "share": 1.0, "groups": [1, 1, 1], "group": [32, 1, 1],
        "shared_bytes": 0, "parameters": long, "answer": "kept", "why": long,
    });
    let program =
        serde_json::json!({ "program": [long], "device": "cuda:0", "speedup": 1.0, "kinds": [kind] });
    let program = serde_json::from_value(program).expect("a program");
    let page = headstart::report::page::program(&program);
    for width in [390, 1280] {
        let looking = "return page.documentElement.scrollWidth - view.innerWidth;";
        let over = looked(&browser, folder.path(), &page, (width, true), &[], looking);
        assert!(over.as_i64() <= Some(0), "{width}: {over}");
    }
}

#[test]
fn any_two_plans_stand_side_by_side() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, report) = tuned(folder.path());
    // Four plans in three forms, with a source that all share.
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    for width in [390, 800, 1280] {
        let seen = looked(&browser, folder.path(), &page, (width, true), &[], PAIR);
        let plans = seen["plans"].as_array().expect("plans");
        assert_eq!(plans.len(), 4, "{seen}");
        let best = report["best"]["plan"].as_str().expect("a plan");
        assert!(
            plans[1].as_str().is_some_and(|plan| plan.starts_with(best)),
            "{seen}"
        );
        for form in ["source", "IR", "PTX", "machine code"] {
            let own = &seen["forms"][form];
            let many = |name: &str| own[name].as_u64().expect("a number");
            assert!(many("rows") > 20 && many("places") > 20, "{form}: {own}");
            // Its source line, its text, and the stalls of each.
            let told = own["told"].as_str().expect("a text");
            for expected in [
                "gather.rs:46",
                "let v = values[index as usize];",
                "left: waiting for loads from global memory",
                "right: ",
            ] {
                assert!(told.contains(expected), "{form}: {told}");
            }
            let linked = own["linked"].as_array().expect("cells");
            assert!(
                linked.len() > 1 && linked.iter().all(|at| *at == linked[0]),
                "{form}: {own}"
            );
            if form == "source" {
                assert_eq!(own["said"], "");
                assert!(many("shares") > 3, "{own}");
                continue;
            }
            assert!(
                many("differing") > 20 && many("differing") < many("rows"),
                "{form}: {own}"
            );
            assert_eq!(
                own["said"],
                format!("{} of {} lines differ.", many("differing"), many("rows"))
            );
            let (gone, come) = (&own["gone"], &own["come"]);
            assert!(
                gone != come && !gone.is_null() && !come.is_null(),
                "{form}: {own}"
            );
            assert_eq!(many("shares") > 5, form == "machine code", "{form}: {own}");
        }
        assert_eq!(seen["same"], "No line differs.");
        assert!(seen["others"].as_u64() > Some(10), "{seen}");
        assert_eq!(
            (&seen["wide"], &seen["listings"]),
            (&Value::from(0), &Value::from(13)),
            "{width}"
        );
    }
}

#[test]
fn a_browser_shows_what_was_found() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, report) = tuned(folder.path());
    let at = |width: u32, scripts: bool, arguments: &[&str]| {
        looked(
            &browser,
            folder.path(),
            &page,
            (width, scripts),
            arguments,
            OVERVIEW,
        )
    };

    let wide = at(1280, true, &[]);
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
    let phone = at(390, true, &[]);
    let tablet = at(800, true, &[]);
    let plain = at(1280, false, &[]);
    assert_eq!(
        (&plain["sorts"], &wide["sorts"]),
        (&Value::from(false), &Value::from(true))
    );
    for (name, seen) in [
        ("wide", &wide),
        ("tablet", &tablet),
        ("phone", &phone),
        ("without scripts", &plain),
    ] {
        assert_eq!(seen["cut"], serde_json::json!([]), "{name}");
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

    let dark = at(1280, true, &["--blink-settings=preferredColorScheme=0"]);
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
