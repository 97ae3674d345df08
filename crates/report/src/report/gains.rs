//! Upper bounds of the gain, in sentences, so that a reader knows when to stop. The limits are as exact as the device's model:
//! the limit of scattered accesses is within some per cent.

use super::number::{duration, figures, percent, speedup};
use crate::evidence::Bounds;

/// Limits that are listed.
const ROOFS: usize = 4;

/// The bounds in sentences. `reached` is the speedup of the advised plan.
pub fn sentences(bounds: &Bounds, reached: Option<f64>) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(roof) = bounds.roofs.first() {
        let reached = reached.map_or(String::new(), |reached| {
            let share = (reached / bounds.best_speedup).min(1.0);
            format!("; the advice reaches {} of it", percent(share))
        });
        sentences.push(format!(
            "At most about {}: {} alone takes {}{reached}.",
            speedup(bounds.best_speedup),
            roof.name,
            duration(roof.least_ns)
        ));
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
    sentences.extend(bounds.without_waiting.map(|factor| {
        format!(
            "If no sub-group waited for a load and nothing else changed: {} (Amdahl){}.",
            speedup(factor),
            match reached.is_some_and(|reached| reached > factor) {
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
        assert_eq!(
            sentences(&bounds, Some(2.78)),
            [
                "At most about 2.78×: bandwidth of device memory alone takes 441 µs; the advice reaches 100 % of it.",
                "The next limits: issue of instructions 55 µs.",
                "If no sub-group waited for a load and nothing else changed: 5.81× (Amdahl).",
                "To arrive in time, a load has to start at least 1 iteration ahead.",
            ]
        );
    }
}
