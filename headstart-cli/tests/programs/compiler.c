/* Stands in for nvJitLink and NVRTC: "machine code" is an ELF header that holds the length of the text. */
#include <stddef.h>
#include <string.h>

static char kept[1 << 20];
static size_t length;

static int code(char *to, char kind) {
    memset(to, 0, 64);
    memcpy(to, "\177ELF\2", 5);
    to[5] = kind;
    memcpy(to + 8, &length, sizeof length);
    to[0x20] = 64; /* no segments and no sections, behind the header */
    to[0x28] = 64;
    return 0;
}

int __nvJitLinkAddData_12_4(void *link, int kind, const void *data, size_t bytes, const char *name) {
    memcpy(kept, data, length = bytes);
    return 0;
}
int nvJitLinkGetLinkedCubin(void *link, char *to) { return code(to, 1); }
int nvrtcGetCUBIN(void *program, char *to) { return code(to, 2); }
int nvrtcGetPTXSize(void *program, size_t *bytes) { return *bytes = length + 1, 0; }
int nvrtcGetPTX(void *program, char *to) { return memcpy(to, kept, length), to[length] = 0; }
