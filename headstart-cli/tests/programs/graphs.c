/* graphs PTX LAUNCHES: the sums of pooled.c in a graph of two nodes, from a capture and by hand. Nodes' parameters are set, the
 * graph is updated, memory is given back. Says how many nodes' launches share bytes. */
#include "driver.h"

typedef struct {
    CUfunction function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
    void *kernel, *context;
} Node;

#define GRAPHS(_) \
    _(cuStreamBeginCapture, cuStreamBeginCapture_v2, (CUstream, int)) \
    _(cuStreamEndCapture, cuStreamEndCapture, (CUstream, void **)) \
    _(cuGraphCreate, cuGraphCreate, (void **, unsigned)) \
    _(cuGraphAddKernelNode, cuGraphAddKernelNode_v2, (void **, void *, void **, size_t, Node *)) \
    _(cuGraphGetNodes, cuGraphGetNodes, (void *, void **, size_t *)) \
    _(cuGraphInstantiate, cuGraphInstantiateWithFlags, (void **, void *, unsigned long long)) \
    _(cuGraphLaunch, cuGraphLaunch, (void *, CUstream)) \
    _(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2, (void *, void *, Node *)) \
    _(cuGraphExecUpdate, cuGraphExecUpdate_v2, (void *, void *, void *)) \
    _(cuGraphExecDestroy, cuGraphExecDestroy, (void *)) \
    _(cuGraphDestroy, cuGraphDestroy, (void *))

GRAPHS(DECLARE)

enum { ITEMS = 160, STEPS = 125, SIZE = ITEMS * STEPS };
static CUfunction pooled;
static CUstream stream;
static CUdeviceptr pool;
static unsigned items = ITEMS, steps = STEPS;
static int launches, sharing;

/* A node: from one part of the pool to another, so many words on. */
typedef struct {
    CUdeviceptr reads, writes;
    int shares;
    void *parameters[4];
} Arrays;

static void between(Arrays *arrays, unsigned from, unsigned to) {
    arrays->reads = pool + 4 * (CUdeviceptr)from, arrays->writes = pool + 4 * (CUdeviceptr)to;
    arrays->shares = from < to + SIZE && to < from + SIZE;
    void *all[4] = {&arrays->reads, &arrays->writes, &items, &steps};
    for (int number = 0; number < 4; ++number) arrays->parameters[number] = all[number];
}

static Node node(Arrays *arrays) {
    Node own = {pooled, {(ITEMS + 127) / 128, 1, 1}, {128, 1, 1}, 0, arrays->parameters, NULL, NULL, NULL};
    return own;
}

static void launch(void *exec, Arrays *one, Arrays *other) {
    for (int round = 0; round < launches; ++round) OK(cuGraphLaunch(exec, stream));
    sharing += launches * (one->shares + other->shares);
    unsigned long long sum = 0;
    static int host[4 * SIZE];
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(host, pool, sizeof host));
    for (unsigned word = 0; word < 4 * SIZE; ++word) sum = sum * 31 + (unsigned)host[word];
    printf("%016llx, %d share bytes\n", sum, sharing);
}

static void launched(Arrays *arrays) {
    OK(cuLaunchKernel(pooled, (ITEMS + 127) / 128, 1, 1, 128, 1, 1, 0, stream, arrays->parameters, NULL));
}

static void *of_capture(Arrays *one, Arrays *other) {
    void *graph;
    OK(cuStreamBeginCapture(stream, 0));
    launched(one);
    launched(other);
    OK(cuStreamEndCapture(stream, &graph));
    return graph;
}

int main(int argc, char **argv) {
    launches = atoi(argv[2]);
    start();
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    GRAPHS(GET)
    CUmodule module = load(argv[1]);
    OK(cuModuleGetFunction(&pooled, module, "pooled"));
    OK(cuStreamCreate(&stream, 1));
    static int host[4 * SIZE];
    for (unsigned word = 0; word < 4 * SIZE; ++word) host[word] = word * 7 % 1001;
    pool = filled(host, sizeof host);
    Arrays apart, back, shared;
    between(&apart, 0, SIZE);
    between(&back, 2 * SIZE, 3 * SIZE);
    between(&shared, SIZE, SIZE + 2 * ITEMS);
    launched(&apart);

    void *graph = of_capture(&apart, &back), *exec, *nodes[2];
    size_t count = 2;
    OK(cuGraphGetNodes(graph, nodes, &count));
    OK(cuGraphInstantiate(&exec, graph, 0));
    launch(exec, &apart, &back);
    /* A node whose arrays share bytes, and back again. */
    Node own = node(&shared);
    OK(cuGraphExecKernelNodeSetParams(exec, nodes[1], &own));
    launch(exec, &apart, &shared);
    own = node(&apart);
    OK(cuGraphExecKernelNodeSetParams(exec, nodes[1], &own));
    launch(exec, &apart, &apart);
    /* All nodes at once. */
    void *other = of_capture(&back, &shared);
    OK(cuGraphExecUpdate(exec, other, NULL));
    launch(exec, &back, &shared);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(other));
    OK(cuGraphDestroy(graph));

    /* By hand; the graph itself is gone when it is launched. */
    void *made, *first, *second;
    OK(cuGraphCreate(&made, 0));
    own = node(&shared);
    OK(cuGraphAddKernelNode(&first, made, NULL, 0, &own));
    own = node(&back);
    OK(cuGraphAddKernelNode(&second, made, &first, 1, &own));
    OK(cuGraphInstantiate(&exec, made, 0));
    OK(cuGraphDestroy(made));
    launch(exec, &shared, &back);
    /* Memory is got: where all pointers lead is looked at again. */
    CUdeviceptr more = filled(host, sizeof host);
    launch(exec, &shared, &back);
    OK(cuMemFree(more));
    OK(cuGraphExecDestroy(exec));
    return 0;
}
