/* variables PTX COUNT STEPS LAUNCHES: sums of a table that is a variable of the module, with weights in constant memory that
 * change before every launch, and a variable that counts launches. With a fifth argument the sums
 * go into the table. */
#include "driver.h"

int main(int argc, char **argv) {
    int count = atoi(argv[2]), steps = atoi(argv[3]), launches = atoi(argv[4]);
    start();
    CUmodule module = load(argv[1]);
    CUfunction smooth;
    OK(cuModuleGetFunction(&smooth, module, "smooth"));
    CUdeviceptr table, calls, weights;
    size_t table_bytes, calls_bytes, weights_bytes;
    OK(cuModuleGetGlobal(&table, &table_bytes, module, "table"));
    OK(cuModuleGetGlobal(&calls, &calls_bytes, module, "calls"));
    OK(cuModuleGetGlobal(&weights, &weights_bytes, module, "weights"));
    float values[4096], weight[16];
    for (int i = 0; i < 4096; ++i) values[i] = 1.0f + (float)(i % 97) / 64.0f;
    OK(cuMemcpyHtoD(table, values, table_bytes));
    int *indices = malloc(sizeof(int) * count * steps);
    float *out = calloc(count, sizeof(float));
    unsigned state = 7;
    for (int i = 0; i < count * steps; ++i) {
        state = state * 1664525u + 1013904223u;
        indices[i] = (state >> 8) % 4096;
    }
    CUdeviceptr on_indices = filled(indices, sizeof(int) * count * steps), on_out = filled(out, sizeof(float) * count);
    if (argc > 5) on_out = table;
    void *parameters[] = {&on_indices, &on_out, &count, &steps};
    double sum = 0;
    for (int launch = 0; launch < launches; ++launch) {
        for (int i = 0; i < 16; ++i) weight[i] = 0.25f * (float)(i + launch + 1);
        OK(cuMemcpyHtoD(weights, weight, weights_bytes));
        OK(cuLaunchKernel(smooth, (count + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
        OK(cuMemcpyDtoH(out, on_out, sizeof(float) * count));
        for (int i = 0; i < count; ++i) sum += out[i] * (i % 7 + 1);
    }
    int called = 0;
    OK(cuMemcpyDtoH(&called, calls, calls_bytes));
    printf("%.3f, %d launches\n", sum, called);
    return 0;
}
