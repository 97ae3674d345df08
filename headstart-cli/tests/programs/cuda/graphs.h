// A random graph with edges in and out of each node, many of some and few of most.
#pragma once
#include "check.h"

struct Graph {
    std::vector<int> starts, neighbours;
};

inline Graph random_graph(int nodes, int degree) {
    Graph graph{std::vector<int>(nodes + 1), {}};
    unsigned state = 1;
    for (int node = 0; node < nodes; ++node) {
        int own = next(state) % 8 == 0 ? 3 * degree : degree / 2 + 1;
        for (int edge = 0; edge < own; ++edge)
            graph.neighbours.push_back((next(state) ^ next(state) << 12) % nodes);
        graph.starts[node + 1] = int(graph.neighbours.size());
    }
    return graph;
}
