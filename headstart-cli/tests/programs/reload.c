/* reload PTX ROUNDS: loads the module, launches, and unloads it, again and again. */
#include "driver.h"

int main(int argc, char **argv) {
    int count = 256, steps = 32, rounds = atoi(argv[2]);
    start();
    int *indices = malloc(sizeof(int) * count * steps);
    float values[512], out[256];
    for (int i = 0; i < count * steps; ++i) indices[i] = i * 7 % 512;
    for (int i = 0; i < 512; ++i) values[i] = i;
    CUdeviceptr on_indices = filled(indices, sizeof(int) * count * steps), on_values = filled(values, sizeof values),
                on_out = filled(out, sizeof out);
    void *parameters[] = {&on_indices, &on_values, &on_out, &count, &steps};
    for (int round = 0; round < rounds; ++round) {
        CUmodule module = load(argv[1]);
        CUfunction gather;
        OK(cuModuleGetFunction(&gather, module, "gather"));
        for (int launch = 0; launch < 2; ++launch)
            OK(cuLaunchKernel(gather, 2, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
        OK(cuModuleUnload(module));
    }
    OK(cuMemcpyDtoH(out, on_out, sizeof out));
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += out[i];
    printf("%.1f\n", sum);
    return 0;
}
