// Loops whose trip counts show when they are entered, and not before: counters that might wrap around, steps that the launch
// gives, bounds that are loaded, searches.

// A loop over a grid, 32 bits wide: nothing says that `i` stays below 2³¹.
extern "C" __global__ void grid_sums(const float* __restrict__ a, float* __restrict__ sums, int n)
{
    int threads = gridDim.x * blockDim.x, id = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.f;
    for (int i = id; i < n; i += threads) sum += a[i];
    sums[id] = sum;
}

// The same through indices, 64 bits wide, as `size_t` makes it.
extern "C" __global__ void grid_gather(const int* __restrict__ indices, const float* __restrict__ values, float* __restrict__ sums, size_t n)
{
    size_t threads = (size_t)gridDim.x * blockDim.x, id = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.f;
#pragma unroll 1
    for (size_t i = id; i < n; i += threads) sum += values[indices[i]];
    sums[id] = sum;
}

// A warp for each row: where a row ends is loaded.
extern "C" __global__ void row_sums(const int* __restrict__ rows, const int* __restrict__ columns, const float* __restrict__ values, float* __restrict__ sums, int count)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= count) return;
    float sum = 0.f;
    for (int j = rows[row] + lane; j < rows[row + 1]; j += 32) sum += values[columns[j]];
    for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
    if (lane == 0) sums[row] = sum;
}

// From the end to the start, four at a time.
extern "C" __global__ void every_fourth(const double* __restrict__ a, double* __restrict__ sums, int first, int last)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    double sum = 0;
#pragma unroll 1
    for (int i = last; i > first; i -= 4) sum = sum * 0.5 + a[(size_t)i * threads + id];
    sums[id] = sum;
}

// A sum over tiles that a block goes through together, and a barrier after each.
extern "C" __global__ void tile_maxima(const float* __restrict__ a, float* __restrict__ maxima, unsigned n)
{
    __shared__ float tile[256];
    float most = -1e30f;
    for (unsigned start = blockIdx.x * 256; start < n; start += gridDim.x * 256) {
        unsigned i = start + threadIdx.x;
        tile[threadIdx.x] = i < n ? a[i] : -1e30f;
        __syncthreads();
        float other = tile[threadIdx.x ^ 1];
        most = fmaxf(most, other);
        __syncthreads();
    }
    maxima[blockIdx.x * 256 + threadIdx.x] = most;
}

// Where each of many numbers belongs in a sorted list: a search, of which only the length of the list says how long it takes.
extern "C" __global__ void lower_bounds(const unsigned* __restrict__ sorted, const unsigned* __restrict__ wanted, unsigned* __restrict__ places, unsigned n, unsigned count)
{
    unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= count) return;
    unsigned low = 0, high = n, key = wanted[id];
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (sorted[middle] < key) low = middle + 1; else high = middle;
    }
    places[id] = low;
}
