//! Graphs with a few vertices that have most of the edges, as web and social networks do: R-MAT with the parameters of
//! Graph500 (0.57, 0.19, 0.19, 0.05), in compressed rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use headstart::Result;
use headstart::device::splitmix64;
use rayon::prelude::*;
use zerocopy::FromBytes;

use super::{Words, counted, kept, parts_of_rows};

const SEED: u64 = 13;
/// The chances of the four quarters, in 1/65536: as Graph500 has them.
const QUARTERS: [u64; 3] = [37_356, 49_807, 62_259];

/// A directed graph.
#[derive(Clone, Debug)]
pub struct Graph {
    /// One more than there are vertices: where each vertex's neighbours start.
    pub starts: Words,
    /// The neighbours.
    pub columns: Words,
    /// Vertices.
    pub vertices: u32,
}

/// Where a breadth-first search stands after some steps.
#[derive(Clone, Debug)]
pub struct Frontier {
    /// The vertices that were reached in the last step, in ascending order.
    pub vertices: Words,
    /// A bit for each vertex: whether it was reached.
    pub visited: Words,
}

impl Graph {
    /// A graph of 2^`scale` vertices with `degree` edges each on average. Built once, then kept.
    ///
    /// # Errors
    /// It has more edges than 32 bits count.
    pub fn new(scale: u32, degree: u32) -> Result<Arc<Graph>> {
        counted(Graph::counts(scale, degree).1, "edges")?;
        Ok(kept(&format!("graph {scale} {degree}"), || build(scale, degree)))
    }

    /// The vertices and the edges, without building the graph.
    pub fn counts(scale: u32, degree: u32) -> (u64, u64) {
        (1 << scale, u64::from(degree) << scale)
    }

    /// The neighbours of a vertex.
    pub fn neighbours(&self, vertex: u32) -> impl Iterator<Item = u32> + '_ {
        let own = self.starts.get(vertex as usize)..self.starts.get(vertex as usize + 1);
        own.map(|edge| self.columns.get(edge as usize))
    }

    /// A search from the vertex with the most edges, after this many steps. Built once, then kept.
    pub fn frontier(self: &Arc<Self>, degree: u32, steps: u32) -> Arc<Frontier> {
        let name = format!("frontier {} {degree} {steps}", self.vertices);
        kept(&name, || search(self, steps))
    }
}

fn search(graph: &Graph, steps: u32) -> Frontier {
    let degree = |vertex: &u32| graph.starts.get(*vertex as usize + 1) - graph.starts.get(*vertex as usize);
    let root = (0..graph.vertices).max_by_key(degree).unwrap_or(0);
    let mut visited = vec![0u32; graph.vertices.div_ceil(32) as usize];
    visited[root as usize / 32] |= 1 << (root % 32);
    let mut frontier = vec![root];
    for _ in 0..steps {
        let mut next = Vec::new();
        for &vertex in &frontier {
            for neighbour in graph.neighbours(vertex) {
                let (word, bit) = (neighbour as usize / 32, 1 << (neighbour % 32));
                if visited[word] & bit == 0 {
                    visited[word] |= bit;
                    next.push(neighbour);
                }
            }
        }
        next.sort_unstable();
        frontier = next;
    }
    Frontier {
        vertices: Words::new(&frontier),
        visited: Words::new(&visited),
    }
}

fn build(scale: u32, degree: u32) -> Graph {
    let vertices = 1u32 << scale;
    let edges = u64::from(vertices) * u64::from(degree);
    // Edges are computed twice rather than kept, on all cores. The order in which they come does not matter: those of a
    // vertex are sorted in the end.
    let counts: Vec<AtomicU32> = (0..vertices).map(|_| AtomicU32::new(0)).collect();
    (0..edges).into_par_iter().for_each(|index| {
        counts[edge(index, scale).0 as usize].fetch_add(1, Ordering::Relaxed);
    });
    let mut starts = Vec::with_capacity(vertices as usize + 1);
    let mut end = 0u32;
    starts.push(0);
    for count in &counts {
        // From here on it is the next free place.
        end += count.swap(end, Ordering::Relaxed);
        starts.push(end);
    }
    let next = counts;
    let columns = Words::filled(edges as usize, |columns| {
        let columns = <[AtomicU32]>::mut_from_bytes(columns.as_flattened_mut())
            .expect("what an Arc holds lies behind its two counters, and is aligned like these");
        (0..edges).into_par_iter().for_each(|index| {
            let (from, to) = edge(index, scale);
            let place = next[from as usize].fetch_add(1, Ordering::Relaxed);
            columns[place as usize].store(to.to_le(), Ordering::Relaxed);
        });
        parts_of_rows(&starts, columns)
            .into_par_iter()
            .for_each(|(rows, part)| {
                let first = starts[rows.start];
                for row in rows {
                    let own = (starts[row] - first) as usize..(starts[row + 1] - first) as usize;
                    part[own].sort_unstable_by_key(|to| u32::from_le(to.load(Ordering::Relaxed)));
                }
            });
    });
    Graph {
        starts: Words::new(&starts),
        columns,
        vertices,
    }
}

/// One edge, its vertices renamed so that the busy ones lie apart.
fn edge(index: u64, scale: u32) -> (u32, u32) {
    let (mut from, mut to) = (0u64, 0u64);
    // A random number has the bits of four levels.
    for first in (0..scale).step_by(4) {
        let mut bits = splitmix64(index, SEED + u64::from(first / 4));
        for _ in first..scale.min(first + 4) {
            let quarter: u64 = QUARTERS
                .iter()
                .map(|&below| u64::from(bits & 0xffff >= below))
                .sum();
            from = from << 1 | quarter >> 1;
            to = to << 1 | quarter & 1;
            bits >>= 16;
        }
    }
    let mask = (1u64 << scale) - 1;
    // A multiplication by an odd number names each vertex anew, and no two alike.
    let renamed = |vertex: u64| (vertex.wrapping_mul(0x9E37_79B1).wrapping_add(12_345) & mask) as u32;
    (renamed(from), renamed(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_vertices_have_most_of_the_edges() {
        let graph = Graph::new(12, 16).expect("it fits");
        assert_eq!(graph.columns.len(), 4096 * 16);
        let mut degrees: Vec<u32> = (0..4096)
            .map(|vertex| graph.neighbours(vertex).count() as u32)
            .collect();
        degrees.sort_unstable();
        let busiest: u32 = degrees[4096 - 410..].iter().sum();
        assert!(
            busiest > 4096 * 16 / 2,
            "a tenth of the vertices has {busiest} edges"
        );
    }

    #[test]
    fn a_search_goes_outwards() {
        let graph = Graph::new(10, 8).expect("it fits");
        let (one, two) = (graph.frontier(8, 1), graph.frontier(8, 2));
        let count = |frontier: &Frontier| -> u32 { frontier.visited.iter().map(u32::count_ones).sum() };
        assert_eq!(count(&one), 1 + one.vertices.len() as u32);
        assert_eq!(count(&two), count(&one) + two.vertices.len() as u32);
    }

    #[test]
    fn more_edges_than_32_bits_count_are_refused_before_they_are_made() {
        let error = Graph::new(26, 64).expect_err("one too many");
        assert!(error.to_string().contains("4,294,967,296 edges"), "{error}");
    }
}
