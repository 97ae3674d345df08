// PageRank: each node collects what its neighbours give, until the rounds are over.
#include "graphs.h"
#include <chrono>

__global__ void collect(const int* starts, const int* neighbours, const float* given, float* rank, int nodes) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) return;
    float sum = 0;
    for (int at = starts[node]; at < starts[node + 1]; ++at) sum += given[neighbours[at]];
    rank[node] = 0.15f + 0.85f * sum;
}

__global__ void give(const int* starts, const float* rank, float* given, int nodes) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < nodes) given[node] = rank[node] / float(starts[node + 1] - starts[node]);
}

int main(int argc, char** argv) {
    int nodes = argc > 1 ? std::atoi(argv[1]) : 2048, degree = argc > 2 ? std::atoi(argv[2]) : 8;
    int rounds = argc > 3 ? std::atoi(argv[3]) : 6;
    Graph graph = random_graph(nodes, degree);
    std::vector<float> rank(nodes, 1.0f);
    int *starts = to_device(graph.starts), *neighbours = to_device(graph.neighbours);
    float *on_rank = to_device(rank), *given = to_device(rank);
    auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < rounds; ++round) {
        give<<<(nodes + 127) / 128, 128>>>(starts, on_rank, given, nodes);
        collect<<<(nodes + 127) / 128, 128>>>(starts, neighbours, given, on_rank, nodes);
    }
    CHECK(cudaDeviceSynchronize());
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::fprintf(stderr, "%d rounds in %.2f ms\n", rounds, took.count());
    print_sum("rank", on_rank, nodes);
}
