/* Stands for CUDA's driver: the devices of SIMULATED_GPUS, "uuid name" with ';' between them.

   CUDA_VISIBLE_DEVICES is a list of indices here. The first index that does not exist ends the list,
   as in the real driver. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[4096], *gpus[16];
static int visible[16], count, started;

int cuDriverGetVersion(int *version) {
    *version = atoi(getenv("SIMULATED_CUDA"));
    return 0;
}

int cuInit(unsigned flags) {
    char *chosen = getenv("CUDA_VISIBLE_DEVICES"), *fault = getenv("SIMULATED_FAULT"), *one;
    int here = 0;
    if (fault) return atoi(fault);
    strncpy(text, getenv("SIMULATED_GPUS"), sizeof text - 1);
    for (one = strtok(text, ";"); one; one = strtok(NULL, ";")) gpus[here++] = one;
    if (!chosen) for (count = 0; count < here; count++) visible[count] = count;
    while (chosen && *chosen) {
        char *end;
        long index = strtol(chosen, &end, 10);
        if (end == chosen || index < 0 || index >= here) break;
        visible[count++] = index;
        chosen = *end ? end + 1 : end;
    }
    started = 1;
    return count ? 0 : 100;
}

int cuDeviceGetCount(int *found) { *found = count; return started ? 0 : 3; }
int cuDeviceGet(int *device, int ordinal) { *device = visible[ordinal]; return 0; }

int cuDeviceGetName(char *name, int size, int device) {
    snprintf(name, size, "%s", strchr(gpus[device], ' ') + 1);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 1ul << 33; return 0; }

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    int digits = 0;
    for (char *one = gpus[device]; digits < 32; one++) {
        char digit[2] = {*one, 0};
        if (*one == '-') continue;
        uuid[digits / 2] = uuid[digits / 2] * (digits % 2 ? 16 : 0) + strtol(digit, NULL, 16);
        digits++;
    }
    return 0;
}

int cuGetErrorName(int status, const char **name) {
    *name = status == 802 ? "CUDA_ERROR_SYSTEM_NOT_READY" : "CUDA_ERROR_UNKNOWN";
    return 0;
}
