// CUDA's mathematical functions, a kernel each: what nvcc makes of them, with and without fast-math.
#define ONE(type, name)                                                                         \
    extern "C" __global__ void of_##name(type* y, const type* x, int n) {                       \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                          \
        if (i < n) y[i] = name(x[i]);                                                           \
    }
#define TWO(type, name)                                                                         \
    extern "C" __global__ void of_##name(type* y, const type* x, const type* z, int n) {        \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                          \
        if (i < n) y[i] = name(x[i], z[i]);                                                     \
    }

ONE(float, acosf) ONE(float, acoshf) ONE(float, asinf) ONE(float, asinhf) ONE(float, atanf) ONE(float, atanhf)
ONE(float, cbrtf) ONE(float, ceilf) ONE(float, cosf) ONE(float, coshf) ONE(float, cospif) ONE(float, erff)
ONE(float, erfcf) ONE(float, erfcinvf) ONE(float, erfcxf) ONE(float, erfinvf) ONE(float, exp10f) ONE(float, exp2f)
ONE(float, expf) ONE(float, expm1f) ONE(float, floorf) ONE(float, j0f) ONE(float, j1f) ONE(float, lgammaf)
ONE(float, log10f) ONE(float, log1pf) ONE(float, log2f) ONE(float, logbf) ONE(float, logf) ONE(float, normcdff)
ONE(float, normcdfinvf) ONE(float, rcbrtf) ONE(float, rintf) ONE(float, roundf) ONE(float, rsqrtf) ONE(float, sinf)
ONE(float, sinhf) ONE(float, sinpif) ONE(float, sqrtf) ONE(float, tanf) ONE(float, tanhf) ONE(float, tgammaf)
ONE(float, truncf) ONE(float, y0f) ONE(float, y1f) ONE(float, cyl_bessel_i0f) ONE(float, cyl_bessel_i1f)
TWO(float, atan2f) TWO(float, fdimf) TWO(float, fdividef) TWO(float, fmodf) TWO(float, hypotf) TWO(float, nextafterf)
TWO(float, powf) TWO(float, remainderf) TWO(float, rhypotf)
ONE(double, exp) ONE(double, log) ONE(double, sin) ONE(double, cos) ONE(double, tan) ONE(double, tanh)
ONE(double, erf) ONE(double, cbrt) ONE(double, rsqrt) ONE(double, sinh) ONE(double, asin) ONE(double, atan)
TWO(double, pow) TWO(double, hypot)
