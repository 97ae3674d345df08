// Breadth-first search, bottom up: each node that was not reached looks for a neighbour that was.
#include "graphs.h"
#include <chrono>

__global__ void reach(const int* starts, const int* neighbours, const int* before, int* after, int nodes, int level) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) return;
    int own = before[node];
    if (own < 0) {
        for (int at = starts[node]; at < starts[node + 1]; ++at) {
            if (before[neighbours[at]] == level) {
                own = level + 1;
                break;
            }
        }
    }
    after[node] = own;
}

int main(int argc, char** argv) {
    int nodes = argc > 1 ? std::atoi(argv[1]) : 2048, degree = argc > 2 ? std::atoi(argv[2]) : 8;
    int rounds = argc > 3 ? std::atoi(argv[3]) : 2;
    Graph graph = random_graph(nodes, degree);
    std::vector<int> levels(nodes, -1);
    int *starts = to_device(graph.starts), *neighbours = to_device(graph.neighbours);
    int *before = to_device(levels), *after = to_device(levels);
    auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < rounds; ++round) {
        levels.assign(nodes, -1);
        levels[round % nodes] = 0;
        CHECK(cudaMemcpy(before, levels.data(), nodes * sizeof(int), cudaMemcpyHostToDevice));
        for (int level = 0; level < 8; ++level) {
            reach<<<(nodes + 127) / 128, 128>>>(starts, neighbours, before, after, nodes, level);
            std::swap(before, after);
        }
    }
    CHECK(cudaDeviceSynchronize());
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::fprintf(stderr, "%d rounds in %.2f ms\n", rounds, took.count());
    print_sum("levels", before, nodes);
}
