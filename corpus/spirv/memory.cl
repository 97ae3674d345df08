// Kernels whose loads a plan can fetch ahead: indirect, strided, in structures, in constant memory.

// Sums of values that indices name.
kernel void gather(global const int *restrict indices, global const float *restrict values,
                   global float *restrict sums, int per_item)
{
    size_t item = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k < per_item; ++k)
        sum += values[indices[item * per_item + k]];
    sums[item] = sum;
}

// A sparse matrix in CSR form times a vector, a row for each work-item.
kernel void spmv(global const int *restrict rows, global const int *restrict columns,
                 global const float *restrict values, global const float *restrict x, global float *restrict y,
                 int count)
{
    int row = get_global_id(0);
    if (row >= count)
        return;
    float sum = 0.0f;
    for (int k = rows[row]; k < rows[row + 1]; ++k)
        sum = fma(values[k], x[columns[k]], sum);
    y[row] = sum;
}

// A stride that only the launch knows, and a pointer that no one promises to be alone.
kernel void column_sum(global const float *matrix, global float *sums, int rows, int stride)
{
    int column = get_global_id(0);
    float sum = 0.0f;
    for (int row = 0; row < rows; ++row)
        sum += matrix[row * stride + column];
    sums[column] = sum;
}

// Vectors of four, which a load moves at once.
kernel void dot4(global const float4 *restrict a, global const float4 *restrict b, global float *restrict out, int n)
{
    size_t item = get_global_id(0);
    size_t items = get_global_size(0);
    float4 sum = (float4)(0.0f);
    for (int k = 0; k < n; ++k)
        sum = fma(a[k * items + item], b[k * items + item], sum);
    out[item] = sum.x + sum.y + (sum.z + sum.w);
}

// Vectors of three, eight and sixteen, aligned to one element only.
kernel void odd_vectors(global const uint *restrict in, global uint *restrict out, int n)
{
    size_t item = get_global_id(0);
    uint8 sums = (uint8)(0);
    uint3 small = (uint3)(0);
    for (int k = 0; k < n; ++k) {
        sums += vload8(k * get_global_size(0) + item, in);
        small ^= vload3(k + item, in);
    }
    uint16 all = (uint16)(sums, sums.hi, small.x, small.y, small.z, 1);
    vstore16(all.s02468ace13579bdf, item, out);
}

// Structures in memory.
typedef struct {
    float position[3];
    float mass;
    int kind;
    uchar flags;
} particle;

kernel void heaviest(global const particle *restrict all, global const uint *restrict near, global float *restrict out,
                     int count)
{
    size_t item = get_global_id(0);
    float most = 0.0f;
    for (int k = 0; k < count; ++k) {
        particle other = all[near[item * count + k]];
        float weight = other.mass * (other.position[0] + other.position[1] + other.position[2]);
        most = other.flags & 1 ? fmax(most, weight) : most;
    }
    out[item] = most;
}

// A structure that is passed by value, and a vector that is.
typedef struct {
    int start;
    int step;
    float scale;
    long limit;
} range;

kernel void by_value(range own, float2 shift, global const float *restrict in, global float *restrict out)
{
    size_t item = get_global_id(0);
    float sum = shift.x;
    for (long k = own.start; k < own.limit; k += own.step)
        sum += in[k + item] * own.scale;
    out[item] = sum - shift.y;
}

// A table of constants, and constant memory that the launch gives.
constant int weights[8] = {1, 4, 6, 4, 1, -2, 3, 7};

kernel void filter(global const int *restrict in, constant int *extra, global int *restrict out, int rounds)
{
    int item = get_global_id(0);
    int sum = 0;
    for (int k = 0; k < rounds; ++k)
        sum += in[item + k] * weights[k & 7] + extra[k & 3];
    out[item] = sum;
}

// A list that is followed; the pointer chase of memory's latency.
kernel void chase(global const uint *restrict next, global uint *restrict out, int steps)
{
    uint at = get_global_id(0);
    for (int k = 0; k < steps; ++k)
        at = next[at];
    out[get_global_id(0)] = at;
}

// OpenCL's own prefetch, written by hand.
kernel void by_hand(global const int *restrict indices, global const float *restrict values,
                    global float *restrict sums, int per_item)
{
    size_t item = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k < per_item; ++k) {
        if (k + 4 < per_item)
            prefetch(&values[indices[item * per_item + k + 4]], 1);
        sum += values[indices[item * per_item + k]];
    }
    sums[item] = sum;
}
