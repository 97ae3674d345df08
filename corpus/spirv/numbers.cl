// Numbers of all kinds: conversions, bits, integer functions, doubles, halves, switches, arrays of a work-item.

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

// Integers: functions of OpenCL on them.
kernel void integers(global const int *restrict in, global int *restrict out, int n)
{
    size_t item = get_global_id(0);
    uint mixed = 1;
    for (int k = 0; k < n; ++k) {
        int x = in[item * n + k];
        uint u = (uint)x;
        mixed ^= popcount(u) + clz(u) * 3 + rotate(u, (uint)k);
        mixed += mul_hi(u, mixed) ^ (uint)mul_hi(x, 77) ^ abs_diff(x, (int)mixed);
        mixed = add_sat(mixed, u) - hadd(u, 77u) + (uint)sub_sat(x, (int)mixed);
        mixed ^= upsample((ushort)x, (ushort)k) + (uint)mad24(x & 0xffff, 3, k);
        mixed += (uint)clamp((int)mixed, -1000000, 1000000) + (uint)(x / (k + 1)) - (uint)(x % (k + 3));
    }
    out[item] = mixed;
}

// Conversions, saturated and rounded.
kernel void conversions(global const float *restrict in, global int *restrict out, int n)
{
    size_t item = get_global_id(0);
    uint mixed = 0;
    for (int k = 0; k < n; ++k) {
        float x = in[item * n + k] * 1000.0f - 900.0f;
        mixed += (uint)convert_int_rte(x) + convert_uchar_sat(x) * 3;
        mixed ^= (uint)convert_char_sat((int)x) + (uint)convert_short_sat_rtz(x * 100.0f);
        mixed += as_uint(convert_float(mixed)) >> 20;
        mixed += (uint)(long)(double)x + (uint)convert_ulong(fabs(x));
    }
    out[item] = mixed;
}

// Doubles, and halves in memory.
kernel void widths(global const double *restrict in, global const half *restrict small, global double *restrict out,
                   int n)
{
    size_t item = get_global_id(0);
    double sum = 0.0;
    for (int k = 0; k < n; ++k)
        sum = fma(in[item * n + k], (double)vload_half(item + k, small), sum) + sqrt(in[k]);
    out[item] = floor(sum * 16.0) + trunc(sum) + rint(sum);
}

// A small machine: a switch in a loop, and a stack of the work-item's own.
kernel void machine(global const uchar *restrict code, global const int *restrict in, global int *restrict out,
                    int length)
{
    uint stack[8];
    int top = 0, item = get_global_id(0);
    for (int k = 0; k < 8; ++k)
        stack[k] = in[item * 8 + k];
    for (int at = 0; at < length; ++at) {
        switch (code[at]) {
        case 0: stack[top] += stack[(top + 1) & 7]; break;
        case 1: stack[top] *= 3; break;
        case 2: stack[top] ^= at; break;
        case 3: top = (top + 1) & 7; break;
        case 4: top = (top + 7) & 7; break;
        case 5:
            if (stack[top] & 64)
                ++at;
            break;
        default: stack[top] -= 1;
        }
    }
    uint sum = 0;
    for (int k = 0; k < 8; ++k)
        sum = sum * 31 + stack[k];
    out[item] = sum;
}

// A search that ends early, with calls that are not inlined.
__attribute__((noinline)) static int middle(int low, int high) { return low + (high - low) / 2; }

__attribute__((noinline)) static int compare(int a, int b)
{
    if (a < b)
        return -1;
    return a > b ? 1 : 0;
}

kernel void search(global const int *restrict sorted, global const int *restrict keys, global int *restrict found,
                   int count)
{
    int key = keys[get_global_id(0)], low = 0, high = count, where = -1;
    while (low < high) {
        int at = middle(low, high);
        int order = compare(sorted[at], key);
        if (order == 0) {
            where = at;
            break;
        }
        if (order < 0)
            low = at + 1;
        else
            high = at;
    }
    found[get_global_id(0)] = where;
}

// Functions of the device's own library.
kernel void functions(global const float *restrict in, global const double *restrict wide, global float *restrict out,
                      int n)
{
    size_t item = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) {
        float x = in[item * n + k];
        sum += exp(-x) * sin(x) + pow(x, 1.5f) + log(x) + rsqrt(x) + tanh(x) * (float)cos(wide[item + k]);
    }
    out[item] = sum;
}
