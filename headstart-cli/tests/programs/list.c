/* list PTX: a linked list in device memory, found through a structure that is passed by value. */
#include "driver.h"

struct node { CUdeviceptr next; int value; };
struct work { CUdeviceptr head, out; int scale; };

int main(int argc, char **argv) {
    start();
    CUmodule module = load(argv[1]);
    CUfunction walk;
    OK(cuModuleGetFunction(&walk, module, "walk"));
    CUdeviceptr factor;
    size_t bytes;
    int five = 5;
    OK(cuModuleGetGlobal(&factor, &bytes, module, "factor"));
    OK(cuMemcpyHtoD(factor, &five, bytes));
    CUdeviceptr head = 0;
    for (int i = 0; i < 10; ++i) {
        struct node node = {head, 1 << i};
        head = filled(&node, sizeof node);
    }
    int out[32] = {0};
    struct work work = {head, filled(out, sizeof out), 7};
    void *parameters[] = {&work};
    OK(cuLaunchKernel(walk, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
    OK(cuMemcpyDtoH(out, work.out, sizeof out));
    printf("%d %d\n", out[0], out[31]);
    return argc > 2 ? atoi(argv[2]) : 0;
}
