// Products and sums that devices may fuse: compiled as OpenCL C is by default.

kernel void polynomial(global const float *restrict in, global float *restrict out, float a, float b, float c, int n)
{
    size_t item = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) {
        float x = in[item * n + k];
        sum += (a * x + b) * x + c;
    }
    out[item] = sum;
}

kernel void sparse(global const int *restrict columns, global const float *restrict values,
                   global const float *restrict x, global float *restrict y, int per_row)
{
    size_t row = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k < per_row; ++k)
        sum += values[row * per_row + k] * x[columns[row * per_row + k]];
    y[row] = sum;
}
