/* compiled PTX: has a text turned into machine code by nvJitLink, as text and as what is optimized when it is linked, and by
 * NVRTC, and launches its kernel from the text. */
#include "driver.h"

int main(int argc, char **argv) {
    static char data[1 << 20] = "LTO:", code[64];
    char *text = data + 4;
    FILE *file = fopen(argv[1], "rb");
    size_t bytes = fread(text, 1, sizeof data - 4, file);
    fclose(file);
    void *compiler = dlopen("./libcompiler.so", RTLD_NOW);
    if (!compiler) return 8;
    int (*create)(void **, unsigned, const char **), (*destroy)(void **), (*linked)(void *, char *);
    int (*add)(void *, int, const void *, size_t, const char *), (*compiled)(void *, char *);
    *(void **)&create = dlsym(compiler, "nvJitLinkCreate");
    *(void **)&destroy = dlsym(compiler, "nvJitLinkDestroy");
    *(void **)&add = dlsym(compiler, "__nvJitLinkAddData_12_4");
    *(void **)&linked = dlsym(compiler, "nvJitLinkGetLinkedCubin");
    *(void **)&compiled = dlsym(compiler, "nvrtcGetCUBIN");
    void *link;
    const char *options[] = {"-arch=sm_90", "-lto"};
    int program;
    if (create(&link, 1, options) || add(link, 2, text, bytes, "gather") || linked(link, code) || destroy(&link)) return 7;
    if (create(&link, 2, options) || add(link, 3, data, bytes + 4, "gather") || linked(link, code)) return 7;
    if (destroy(&link) || compiled(&program, code)) return 7;
    start();
    CUmodule module = load(argv[1]);
    CUfunction gather;
    OK(cuModuleGetFunction(&gather, module, "gather"));
    int indices[64] = {0}, count = 64, steps = 1;
    float values[4] = {1, 2, 3, 4}, out[64] = {0};
    CUdeviceptr on_indices = filled(indices, sizeof indices), on_values = filled(values, sizeof values),
                on_out = filled(out, sizeof out);
    void *parameters[] = {&on_indices, &on_values, &on_out, &count, &steps};
    OK(cuLaunchKernel(gather, 1, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
    OK(cuCtxSynchronize());
    return 0;
}
