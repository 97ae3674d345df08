// Kernels that compute on what they read in order.

extern "C" __global__ void stencil(const float *__restrict__ in, float *__restrict__ out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    const float *p = in + y * width + x;
    out[y * width + x] = 0.25f * (p[-1] + p[1] + p[-width] + p[width]) - p[0];
}

extern "C" __global__ void n_body(const float4 *__restrict__ bodies, float4 *__restrict__ force, int n)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    float4 own = bodies[id];
    float fx = 0, fy = 0, fz = 0;
    for (int j = 0; j < n; ++j) {
        float4 other = bodies[j];
        float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
        float d2 = dx * dx + dy * dy + dz * dz + 1e-6f;
        float inverse = rsqrtf(d2);
        float s = other.w * inverse * inverse * inverse;
        fx += dx * s; fy += dy * s; fz += dz * s;
    }
    force[id] = make_float4(fx, fy, fz, 0);
}

extern "C" __global__ void monte_carlo(unsigned *hits, int steps, unsigned seed)
{
    unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned state = seed ^ (id * 2654435761u);
    unsigned inside = 0;
    for (int i = 0; i < steps; ++i) {
        state = state * 1664525u + 1013904223u;
        float x = (state >> 8) * (1.0f / 16777216.0f);
        state = state * 1664525u + 1013904223u;
        float y = (state >> 8) * (1.0f / 16777216.0f);
        inside += x * x + y * y < 1.0f;
    }
    hits[id] = inside;
}

extern "C" __global__ void k_means(const float2 *__restrict__ points, const float2 *__restrict__ centers,
                                   int *__restrict__ nearest, int n, int k)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    float2 p = points[id];
    float best = 3.4e38f;
    int which = 0;
    for (int c = 0; c < k; ++c) {
        float dx = p.x - centers[c].x, dy = p.y - centers[c].y;
        float d = dx * dx + dy * dy;
        if (d < best) { best = d; which = c; }
    }
    nearest[id] = which;
}

extern "C" __global__ void saxpy_half(const unsigned short *__restrict__ a, short *__restrict__ b, int n)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id < n) b[id] = (short)(b[id] * 3 - (a[id] >> 2));
}

extern "C" __global__ void bits(const unsigned *__restrict__ in, unsigned *__restrict__ out, int n)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    unsigned x = in[id];
    unsigned y = __popc(x) + __clz(x) * 100 + (__brev(x) >> 20);
    y ^= __byte_perm(x, y, 0x3715);
    y += __funnelshift_l(x, y, x & 63);
    y = y * 3 + (unsigned)__ffs(x);
    out[id] = (y & x) | (~y & (x >> 3)) ^ (unsigned)__mulhi((int)x, (int)y) + __usad(x, y, 7u);
}

extern "C" __global__ void sort_step(int *data, int j, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int other = i ^ j;
    if (other > i) {
        int a = data[i], b = data[other];
        bool up = (i & k) == 0;
        if ((a > b) == up) { data[i] = b; data[other] = a; }
    }
}
