// Sums of rows of a table, in a graph that is launched again and again: with other bags by each of the ways that there are, and
// with another kernel in a node.
#include "check.h"
#include <chrono>
#include <cstring>

__global__ void bag(const int* indices, const float* table, float* out, int items, int columns) {
    float sum = 0;
    for (int item = 0; item < items; ++item)
        sum += table[size_t(indices[blockIdx.x * items + item]) * columns + threadIdx.x];
    out[blockIdx.x * columns + threadIdx.x] = sum;
}

// The same parameters, and another result.
__global__ void first(const int* indices, const float* table, float* out, int items, int columns) {
    out[blockIdx.x * columns + threadIdx.x] = table[size_t(indices[blockIdx.x * items]) * columns + threadIdx.x];
}

static int bags, items, rounds, rows, columns = 128;
static cudaStream_t stream;
static float* table;

// Bags, and where their sums go: memory of their own, as large as that of all others.
struct Bags {
    int* indices;
    float* out;

    explicit Bags(unsigned state) {
        std::vector<int> host(size_t(bags) * items);
        for (auto& index : host) index = (next(state) ^ next(state) << 12) % rows;
        indices = to_device(host);
        out = to_device(std::vector<float>(size_t(bags) * columns));
    }
    void launch() const { bag<<<bags, columns, 0, stream>>>(indices, table, out, items, columns); }
    void print(const char* name) const { print_sum(name, out, size_t(bags) * columns); }
};

// A graph of two nodes, one after the other.
static cudaGraph_t of_two(const Bags& one, const Bags& other) {
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    one.launch();
    other.launch();
    CHECK(cudaStreamEndCapture(stream, &graph));
    return graph;
}

static void replay(cudaGraphExec_t exec, const char* name) {
    auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < rounds; ++round) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::fprintf(stderr, "%s: %d rounds in %.2f ms\n", name, rounds, took.count());
}

int main(int argc, char** argv) {
    bags = argc > 1 ? std::atoi(argv[1]) : 16, items = argc > 2 ? std::atoi(argv[2]) : 32;
    rounds = argc > 3 ? std::atoi(argv[3]) : 6, rows = argc > 4 ? std::atoi(argv[4]) : 1 << 10;
    std::vector<float> values(size_t(rows) * columns);
    unsigned state = 1;
    for (auto& value : values) value = float(next(state) % 1000) / 64;
    table = to_device(values);
    CHECK(cudaStreamCreate(&stream));
    Bags one(2), other(3), third(4), fourth(5);
    one.launch();
    CHECK(cudaStreamSynchronize(stream));

    cudaGraph_t graph = of_two(one, other);
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    replay(exec, "captured");
    one.print("one"), other.print("other");

    // A node gets other bags, in the executable graph.
    cudaGraphNode_t nodes[2];
    size_t count = 2;
    CHECK(cudaGraphGetNodes(graph, nodes, &count));
    void* of_third[] = {&third.indices, &table, &third.out, &items, &columns};
    cudaKernelNodeParams parameters = {};
    parameters.func = (void*)bag, parameters.gridDim = dim3(bags), parameters.blockDim = dim3(columns);
    parameters.kernelParams = of_third;
    CHECK(cudaGraphExecKernelNodeSetParams(exec, nodes[1], &parameters));
    replay(exec, "set");
    third.print("third");

    // All nodes get those of another graph.
    cudaGraph_t next_graph = of_two(fourth, one);
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(exec, next_graph, &info));
    replay(exec, "updated");
    fourth.print("fourth");
    CHECK(cudaGraphExecDestroy(exec));

    // A node of the graph gets another kernel, then the graph is instantiated; and the first one again.
    parameters.func = (void*)first;
    CHECK(cudaGraphKernelNodeSetParams(nodes[1], &parameters));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    replay(exec, "another kernel");
    one.print("one"), third.print("first of third");
    parameters.func = (void*)bag;
    CHECK(cudaGraphExecKernelNodeSetParams(exec, nodes[1], &parameters));
    replay(exec, "the first kernel again");
    third.print("third");
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(next_graph));
    CHECK(cudaGraphDestroy(graph));
}
