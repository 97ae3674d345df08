// Functions of the device's library beside the usual ones: faster forms, and those that are made of others elsewhere.

#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// What OpenCL calls native.
kernel void natives(global const float *restrict in, global float *restrict out, int n)
{
    size_t item = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) {
        float x = in[item * n + k] + 0.25f;
        sum += native_exp(-x) * native_sin(x) + native_log(x) * native_cos(x);
        sum += native_exp2(x) - native_log2(x) * native_sqrt(x) + native_rsqrt(x) * native_recip(x);
        sum += native_exp10(-x) + native_log10(x) * native_tan(x) + native_powr(x, 0.75f) - native_divide(x, sum + 3.0f);
    }
    out[item] = sum;
}

// What it calls half: single precision with fewer right digits.
kernel void halved(global const float *restrict in, global float *restrict out, int n)
{
    size_t item = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) {
        float x = in[item * n + k] + 0.25f;
        sum += half_exp(-x) * half_sin(x) + half_log(x) * half_cos(x);
        sum += half_exp2(x) - half_log2(x) * half_sqrt(x) + half_rsqrt(x) * half_recip(x);
        sum += half_exp10(-x) + half_log10(x) * half_tan(x) + half_powr(x, 0.75f) - half_divide(x, sum + 3.0f);
    }
    out[item] = sum;
}

// Near zero, and far from it; powers; both of sine and cosine.
kernel void careful(global const float *restrict in, global const double *restrict wide, global float *restrict out,
                    int n)
{
    size_t item = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) {
        float x = in[item * n + k] - 0.5f, cosine;
        double y = wide[item * n + k], wide_cosine;
        float sine = sincos(x, &cosine);
        double wide_sine = sincos(y, &wide_cosine);
        sum += log1p(x) + expm1(x * 0.001f) * erfc(x) + sine * cosine + (float)(wide_sine - wide_cosine);
        sum += pown(x, k - 3) * 0.001f + powr(fabs(x), 1.25f) + (float)(pown(y, 3 - k) + log1p(y) - erfc(y));
    }
    out[item] = sum;
}

// Vectors of four.
kernel void in_fours(global const float4 *restrict in, global float4 *restrict out, int n)
{
    size_t item = get_global_id(0);
    float4 sum = 0.0f;
    for (int k = 0; k < n; ++k) {
        float4 x = in[item * n + k], cosine;
        float4 sine = sincos(x, &cosine);
        sum += native_exp(-x) * sine + half_log(x + 1.0f) * cosine + log1p(x) + pown(x, (int4)(1, 2, 3, k));
    }
    out[item] = sum;
}
