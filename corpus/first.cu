extern "C" __global__ void gather(const int* __restrict__ indices, const float* __restrict__ values, float* __restrict__ result, int items)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    int total = gridDim.x * blockDim.x;
    float sum = 0.f;
    for (int j = 0; j < items; ++j) {
        int index = indices[j * total + id];
        sum += values[index];
    }
    result[id] = sum;
}
extern "C" __global__ void spmv(const int* __restrict__ rows, const int* __restrict__ columns, const float* __restrict__ a, const float* __restrict__ x, float* y, int n)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    float sum = 0.f;
    for (int k = rows[r]; k < rows[r + 1]; ++k) sum += a[k] * x[columns[k]];
    y[r] = sum;
}
extern "C" __global__ void reduce(const float* in, float* out, int n) {
    __shared__ float tile[256];
    float s = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += in[i];
    tile[threadIdx.x] = s;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d >>= 1) {
        if (threadIdx.x < d) tile[threadIdx.x] += tile[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = tile[0];
}
extern "C" __global__ void search(const unsigned* keys, const unsigned* wanted, int* where, int n) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned k = wanted[id];
    int low = 0, high = n;
    while (low < high) {
        int mid = (low + high) / 2;
        unsigned m = keys[mid];
        if (m == k) { where[id] = mid; return; }
        if (m < k) low = mid + 1; else high = mid;
    }
    where[id] = -1;
}
