// Loops whose strides only the launch knows. Compilers unroll them by four: the main loop's pointers then take four equal
// steps an iteration, and what is left over runs in a loop of its own.
//
// `ROLLED` compiles the same loops without that, for comparison.
#ifdef ROLLED
#define LOOP _Pragma("unroll 1")
#else
#define LOOP
#endif

// The sum of each column: one work-item a column, down the rows.
extern "C" __global__ void column_sum(const float* __restrict__ a, float* __restrict__ sums, int rows, int columns)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= columns) return;
    float sum = 0.f;
    LOOP for (int i = 0; i < rows; ++i) sum += a[i * columns + j];
    sums[j] = sum;
}

// Every `stride`-th element from a start of one's own, as sums over a dimension in the middle of a tensor are.
extern "C" __global__ void strided_sum(const float* __restrict__ a, float* __restrict__ sums, int items, unsigned long stride, unsigned long gap)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    const float* p = a + id * gap;
    float sum = 0.f;
    LOOP for (int i = 0; i < items; ++i, p += stride) sum += *p;
    sums[id] = sum;
}

// A matrix that is stored by columns, times a vector.
extern "C" __global__ void matrix_vector(const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ y, int rows, int columns)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    float sum = 0.f;
    LOOP for (int j = 0; j < columns; ++j) sum += a[(unsigned long)j * rows + i] * x[j];
    y[i] = sum;
}

// A stencil of seven points that goes up along z.
extern "C" __global__ void sweep(const float* __restrict__ in, float* __restrict__ out, int nx, int ny, int nz)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int y = blockIdx.y + 1;
    if (x >= nx - 1 || y >= ny - 1) return;
    int plane = nx * ny;
    LOOP for (int z = 1; z < nz - 1; ++z) {
        int at = z * plane + y * nx + x;
        out[at] = 0.4f * in[at]
            + 0.1f * (in[at - 1] + in[at + 1] + in[at - nx] + in[at + nx] + in[at - plane] + in[at + plane]);
    }
}

// Particles as a structure of arrays whose pitch the run tells, through a list of neighbours.
extern "C" __global__ void near_force(const int* __restrict__ neighbours, const float* __restrict__ fields, float* __restrict__ force, int near, int particles, unsigned long pitch)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= particles) return;
    float x = fields[i], y = fields[pitch + i], z = fields[2 * pitch + i], sum = 0.f;
    LOOP for (int k = 0; k < near; ++k) {
        int j = neighbours[k * particles + i];
        float dx = fields[j] - x, dy = fields[pitch + j] - y, dz = fields[2 * pitch + j] - z;
        sum += fields[3 * pitch + j] / (dx * dx + dy * dy + dz * dz + 0.01f);
    }
    force[i] = sum;
}

// The dot product of two strided vectors, as BLAS has it.
extern "C" __global__ void strided_dot(const double* __restrict__ x, const double* __restrict__ y, double* __restrict__ dots, int n, int step_x, int step_y)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    x += id;
    y += id;
    double sum = 0;
    LOOP for (int i = 0; i < n; ++i) sum += x[i * step_x] * y[i * step_y];
    dots[id] = sum;
}

// Codes of several tables, as product quantisation looks distances up.
extern "C" __global__ void table_distance(const unsigned char* __restrict__ codes, const float* __restrict__ tables, float* __restrict__ distances, int tables_count, int entries, int vectors)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= vectors) return;
    float sum = 0.f;
    LOOP for (int m = 0; m < tables_count; ++m) sum += tables[m * entries + codes[m * vectors + v]];
    distances[v] = sum;
}

// Linear interpolation between neighbouring rows of an image, down a column.
extern "C" __global__ void interpolate(const float* __restrict__ image, float* __restrict__ out, int height, int width, int pitch, float weight)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= width) return;
    LOOP for (int y = 0; y < height - 1; ++y) {
        float above = image[y * pitch + x], below = image[(y + 1) * pitch + x];
        out[y * pitch + x] = above + weight * (below - above);
    }
}

// The maximum of each row of each matrix of a batch, rows apart by a leading dimension.
extern "C" __global__ void batched_maximum(const float* __restrict__ a, float* __restrict__ maxima, int n, int leading, unsigned long batch)
{
    const float* matrix = a + blockIdx.y * batch;
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float most = matrix[row];
    LOOP for (int j = 1; j < n; ++j) {
        float value = matrix[(unsigned long)j * leading + row];
        most = value > most ? value : most;
    }
    maxima[blockIdx.y * gridDim.x * blockDim.x + row] = most;
}

// Two levels of indices, each by a stride of its own: rows of a permuted, then renumbered table.
extern "C" __global__ void two_levels(const int* __restrict__ order, const int* __restrict__ places, const float* __restrict__ values, float* __restrict__ sums, int items, int order_step, int row)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.f;
    LOOP for (int i = 0; i < items; ++i) sum += values[places[order[i * order_step + id]] * row];
    sums[id] = sum;
}

// A running average with a decay, the strides counted in bytes, as tensor libraries pass them.
extern "C" __global__ void decay(const char* __restrict__ in, char* __restrict__ out, long steps, long in_bytes, long out_bytes, float keep)
{
    long id = blockIdx.x * blockDim.x + threadIdx.x;
    in += id * 4;
    out += id * 4;
    float state = 0.f;
    LOOP for (long t = 0; t < steps; ++t) {
        state = keep * state + *(const float*)(in + t * in_bytes);
        *(float*)(out + t * out_bytes) = state;
    }
}

// A histogram's cumulative sum, downwards from the last bin.
extern "C" __global__ void from_the_end(const unsigned* __restrict__ bins, unsigned* __restrict__ tails, int count, int columns)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = 0;
    LOOP for (int i = count - 1; i >= 0; --i) {
        sum += bins[i * columns + j];
        tails[i * columns + j] = sum;
    }
}
