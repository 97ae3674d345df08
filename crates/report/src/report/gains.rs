//! Upper bounds of the gain, in sentences, so that a reader knows when to stop. The limits are as exact as the device's model:
//! the limit of scattered accesses is within some per cent.

use super::number::{duration, figures, percent, speedup};
use crate::evidence::Bounds;

/// Limits that are listed.
const ROOFS: usize = 4;
/// How far over a limit a speedup is beyond it: the limits are as exact as the model.
const BEYOND: f64 = 1.02;

/// The bounds in sentences, the useful ones first. `fastest` is the speedup of the fastest plan, and `advised` that of the advice.
pub fn sentences(bounds: &Bounds, fastest: f64, advised: Option<f64>) -> Vec<String> {
    let is_far = bounds.is_far(fastest.max(advised.unwrap_or(1.0)));
    let roofs = roofs(bounds, advised, is_far);
    let others = others(bounds, advised);
    match is_far {
        true => others.into_iter().chain(roofs).collect(),
        false => roofs.into_iter().chain(others).collect(),
    }
}

/// The device's limits.
fn roofs(bounds: &Bounds, advised: Option<f64>, is_far: bool) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(roof) = bounds.roofs.first() {
        let time = duration(roof.least_ns);
        let factor = speedup(bounds.best_speedup);
        sentences.push(match (is_far, advised) {
            (true, _) => format!(
                "The device's limits are far away, so they bound no plan: the nearest is {}, {time} or {factor}.",
                roof.name
            ),
            (false, None) => format!("At most about {factor}: the limit is {}, {time}.", roof.name),
            (false, Some(advised)) if advised > BEYOND * bounds.best_speedup => format!(
                "In the geometry as it is, the limit is {}, {time} or {factor}; the advice goes beyond that.",
                roof.name
            ),
            (false, Some(advised)) => format!(
                "At most about {factor}: the limit is {}, {time}; the advice reaches {} of it.",
                roof.name,
                percent(advised / bounds.best_speedup)
            ),
        });
    }
    let others: Vec<String> = bounds
        .roofs
        .iter()
        .skip(1)
        .take(ROOFS - 1)
        .map(|roof| format!("{} {}", roof.name, duration(roof.least_ns)))
        .collect();
    if !others.is_empty() {
        sentences.push(format!("The next limits: {}.", others.join(", ")));
    }
    sentences
}

/// What waiting leaves, and how far ahead a load has to start.
fn others(bounds: &Bounds, advised: Option<f64>) -> Vec<String> {
    let mut sentences = Vec::new();
    let nearer = bounds
        .without_waiting
        .filter(|factor| *factor <= bounds.best_speedup);
    sentences.extend(nearer.map(|factor| {
        format!(
            "If no sub-group waited for a load and nothing else changed: {} (Amdahl){}.",
            speedup(factor),
            match advised.is_some_and(|advised| advised > factor) {
                true => "; the advised change goes beyond that",
                false => "",
            }
        )
    }));
    sentences.extend(bounds.distance.map(|distance| {
        match (distance, bounds.iterations) {
            (_, Some(iterations)) if f64::from(distance) >= iterations => format!(
                "To arrive in time, a load would have to start {distance} iterations ahead. The loop has {}: a plan hides a \
                 part of the latency.",
                figures(iterations)
            ),
            (1, _) => "To arrive in time, a load has to start at least 1 iteration ahead.".to_owned(),
            _ => format!("To arrive in time, a load has to start at least {distance} iterations ahead."),
        }
    }));
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Roof;

    #[test]
    fn the_longest_limit_is_the_bound() {
        let roof = |name: &str, least_ns| Roof {
            name: name.to_owned(),
            least_ns,
        };
        let bounds = Bounds {
            roofs: vec![
                roof("bandwidth of device memory", 441e3),
                roof("issue of instructions", 55e3),
            ],
            best_speedup: 2.78,
            without_waiting: Some(5.81),
            distance: Some(1),
            iterations: Some(1024.0),
        };
        // Waiting that a limit leaves is no gain.
        assert_eq!(
            sentences(&bounds, 2.78, Some(2.78)),
            [
                "At most about 2.78×: the limit is bandwidth of device memory, 441 µs; the advice reaches 100 % of it.",
                "The next limits: issue of instructions 55 µs.",
                "To arrive in time, a load has to start at least 1 iteration ahead.",
            ]
        );
    }

    #[test]
    fn a_bound_that_no_plan_comes_near_is_not_said_first() {
        let bounds = Bounds {
            roofs: vec![Roof {
                name: "bandwidth of device memory".to_owned(),
                least_ns: 1e3,
            }],
            best_speedup: 940.0,
            without_waiting: Some(1.9),
            distance: None,
            iterations: None,
        };
        let said = sentences(&bounds, 1.2, None);
        assert!(said[0].contains("1.90× (Amdahl)"), "{said:?}");
        let last = "The device's limits are far away, so they bound no plan: the nearest is bandwidth of device memory, 1 µs or 940×.";
        assert_eq!(said[1], last);
        assert_eq!(bounds.nearest(1.2), Some(("no waiting for loads at all", 1.9)));
        // A plan that comes near makes it a bound.
        let said = sentences(&bounds, 400.0, None);
        assert!(said[0].starts_with("At most about 940×"), "{said:?}");
        assert_eq!(bounds.nearest(400.0), Some(("bandwidth of device memory", 940.0)));
    }
}
