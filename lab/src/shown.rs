//! A measured plan as a line of text and as JSON.

use std::time::Duration;

use headstart::Result;
use headstart::tune::gpu::Measured;
use serde_json::{Value, json};

/// One plan's line of text.
pub fn line(plan: &str, measured: &Result<Measured>, plain_ns: Option<f64>) -> String {
    match measured {
        Ok(measured) => {
            let timing = &measured.timing;
            let speedup = plain_ns.map_or(1.0, |plain| plain / timing.median_ns);
            let outputs = measured
                .outputs
                .map_or(String::new(), |outputs| format!(" {outputs:?}"));
            let compiled = &measured.loaded.compiled;
            format!(
                "  {:9.4} ms {speedup:5.2}× ±{:.1} % {plan}  [{} registers, {} local, {} groups/core, compiled in {:.0} ms]{outputs}\n",
                timing.median_ns * 1e-6,
                timing.spread() * 100.0,
                compiled.registers,
                compiled.local_bytes,
                measured.loaded.groups_per_core,
                milliseconds(compiled.load_time),
            )
        }
        Err(error) => format!("  failed      {plan}: {error}\n"),
    }
}

/// One plan as JSON.
pub fn trial(plan: &str, measured: &Result<Measured>, plain_ns: Option<f64>) -> Value {
    match measured {
        Ok(measured) => json!({
            "plan": plan,
            "status": "ok",
            "timing": measured.timing,
            "speedup": plain_ns.map(|plain| plain / measured.timing.median_ns),
            "outputs": measured.outputs.map(|outputs| format!("{outputs:?}").to_lowercase()),
            "registers": measured.loaded.compiled.registers,
            "local_bytes": measured.loaded.compiled.local_bytes,
            "groups_per_core": measured.loaded.groups_per_core,
            "groups_promised": measured.groups_promised,
            "emit_ms": milliseconds(measured.emit_time),
            "load_ms": milliseconds(measured.loaded.compiled.load_time),
            "hints": measured.hints.iter().map(|hint| json!({
                "asked": hint.asked, "reached": hint.reached.map(|level| level.name()), "by": hint.by,
            })).collect::<Vec<_>>(),
        }),
        Err(error) => json!({"plan": plan, "status": "failed", "reason": error.to_string()}),
    }
}

/// A duration in milliseconds.
pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
