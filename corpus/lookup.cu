// Kernels that look things up: what prefetching is for.

__device__ __noinline__ unsigned mix(unsigned x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

__device__ __noinline__ float polynomial(float x, int degree)
{
    if (degree == 0) return 1.0f;
    float sum = 0.5f;
    for (int i = 0; i < degree; ++i) sum = sum * x + 1.0f;
    return sum;
}

extern "C" __global__ void hash_probe(const unsigned *__restrict__ table, const unsigned *__restrict__ keys,
                                      int *found, unsigned mask, int per_thread)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    int total = gridDim.x * blockDim.x;
    int hits = 0;
    for (int j = 0; j < per_thread; ++j) {
        unsigned key = keys[j * total + id];
        unsigned slot = mix(key) & mask;
        while (true) {
            unsigned there = table[slot];
            if (there == key) { ++hits; break; }
            if (there == 0xffffffffu) break;
            slot = (slot + 1) & mask;
        }
    }
    found[id] = hits;
}

extern "C" __global__ void embedding_bag(const float4 *__restrict__ rows, const int *__restrict__ indices,
                                         const int *__restrict__ offsets, float4 *__restrict__ out, int width)
{
    int bag = blockIdx.x;
    int begin = offsets[bag], end = offsets[bag + 1];
    float4 sum = make_float4(0, 0, 0, 0);
    for (int i = begin; i < end; ++i) {
        float4 row = rows[(long long)indices[i] * width + threadIdx.x];
        sum.x += row.x; sum.y += row.y; sum.z += row.z; sum.w += row.w;
    }
    out[bag * width + threadIdx.x] = sum;
}

extern "C" __global__ void pointer_chase(const unsigned *__restrict__ next, unsigned *out, int steps)
{
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < steps; ++i) at = next[at];
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

extern "C" __global__ void string_hash(const unsigned char *__restrict__ text, const int *__restrict__ starts,
                                       unsigned long long *out, int n)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    unsigned long long hash = 0xcbf29ce484222325ull;
    for (int i = starts[id]; i < starts[id + 1]; ++i) hash = (hash ^ text[i]) * 0x100000001b3ull;
    out[id] = hash;
}

extern "C" __global__ void polynomials(const float *__restrict__ x, const int *__restrict__ degree, float *y, int n)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id < n) y[id] = polynomial(x[id], degree[id]) + polynomial(x[id] * 2.0f, 3);
}

extern "C" __global__ void bfs_step(const int *__restrict__ rows, const int *__restrict__ columns, const int *level,
                                    int *next_level, int depth, int n)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || level[v] != depth) return;
    for (int e = rows[v]; e < rows[v + 1]; ++e) {
        int u = columns[e];
        if (level[u] < 0) next_level[u] = depth + 1;
    }
}

extern "C" __global__ void page_rank(const int *__restrict__ rows, const int *__restrict__ columns,
                                     const double *__restrict__ share, double *__restrict__ rank, double damping, int n)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    double sum = 0;
    for (int e = rows[v]; e < rows[v + 1]; ++e) sum += share[columns[e]];
    rank[v] = (1 - damping) / n + damping * sum;
}
