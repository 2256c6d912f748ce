/* Answers of a CUDA device that is not here: what ATen and c10 ask before they look at a tensor.
 *
 * Preloaded into the process that generates code, and into no other. c10's device guards ask which
 * device is current; scaled_dot_product_attention asks for the compute capability to choose its
 * kernel. Every other function stays the CUDA runtime's, which fails, because there is no driver.
 * Nothing here allocates memory or runs a kernel.
 *
 * The library calls itself libcuda.so.1, so that c10 finds the driver's functions here, too. The
 * layout of cudaDeviceProp is that of the runtime's own header, which the release installs.
 */
#include <string.h>

#include <driver_types.h>

#define ANSWER __attribute__((visibility("default")))

static int described(struct cudaDeviceProp *properties) {
    memset(properties, 0, sizeof *properties);
    strncpy(properties->name, TARGET_NAME, sizeof properties->name - 1);
    properties->major = TARGET_MAJOR;
    properties->minor = TARGET_MINOR;
    properties->multiProcessorCount = TARGET_MULTIPROCESSORS;
    properties->maxThreadsPerMultiProcessor = TARGET_THREADS;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
    properties->maxThreadsDim[2] = 64;
    properties->maxGridSize[0] = 2147483647;
    properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
    properties->regsPerBlock = properties->regsPerMultiprocessor = TARGET_REGISTERS;
    properties->warpSize = 32;
    properties->sharedMemPerBlock = 49152;
    properties->sharedMemPerBlockOptin = TARGET_SHARED_BLOCK;
    properties->sharedMemPerMultiprocessor = TARGET_SHARED;
    properties->l2CacheSize = TARGET_L2;
    properties->totalGlobalMem = TARGET_MEMORY;
    properties->totalConstMem = 65536;
    properties->unifiedAddressing = properties->managedMemory = 1;
    properties->cooperativeLaunch = properties->concurrentKernels = 1;
    return 0;
}

/* The runtime. The second name is that of CUDA 12. */
ANSWER int cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    (void)device;
    return described(properties);
}
ANSWER int cudaGetDeviceProperties_v2(struct cudaDeviceProp *properties, int device) {
    (void)device;
    return described(properties);
}
ANSWER int cudaGetDeviceCount(int *count) { *count = 1; return 0; }
ANSWER int cudaGetDevice(int *device) { *device = 0; return 0; }
ANSWER int cudaSetDevice(int device) { (void)device; return 0; }
ANSWER int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return 0;
}
ANSWER int cudaDeviceCanAccessPeer(int *can, int one, int other) {
    (void)one; (void)other; *can = 0; return 0;
}
ANSWER int cudaStreamIsCapturing(void *stream, int *status) { (void)stream; *status = 0; return 0; }
ANSWER int cudaStreamQuery(void *stream) { (void)stream; return 0; }
ANSWER int cudaStreamSynchronize(void *stream) { (void)stream; return 0; }
ANSWER int cudaDeviceSynchronize(void) { return 0; }

/* The driver. Only the first is ever called: libcaffe2_nvrtc.so needs the others to be loaded. */
ANSWER int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    /* Active: else the autograd engine of 2.4 reads the stream of a device that it has not seen. */
    (void)device; *flags = 0; *active = 1; return 0;
}
enum { NO_DEVICE = 100 };
#define ABSENT(name) ANSWER int name(void) { return NO_DEVICE; }
ABSENT(cuCtxGetCurrent)
ABSENT(cuCtxSetCurrent)
ABSENT(cuCtxFromGreenCtx)
ABSENT(cuCtxPopCurrent_v2)
ABSENT(cuCtxPushCurrent_v2)
ABSENT(cuDeviceGet)
ABSENT(cuDeviceGetAttribute)
ABSENT(cuDeviceGetDevResource)
ABSENT(cuDevicePrimaryCtxRetain)
ABSENT(cuDevSmResourceSplitByCount)
ABSENT(cuDevResourceGenerateDesc)
ABSENT(cuFuncGetAttribute)
ABSENT(cuFuncSetAttribute)
ABSENT(cuFuncSetCacheConfig)
ABSENT(cuGetErrorString)
ABSENT(cuGreenCtxCreate)
ABSENT(cuGreenCtxDestroy)
ABSENT(cuLaunchCooperativeKernel)
ABSENT(cuLaunchKernel)
ABSENT(cuLaunchKernelEx)
ABSENT(cuLinkAddData)
ABSENT(cuLinkAddData_v2)
ABSENT(cuLinkComplete)
ABSENT(cuLinkCreate)
ABSENT(cuLinkCreate_v2)
ABSENT(cuModuleGetFunction)
ABSENT(cuModuleLoad)
ABSENT(cuModuleLoadData)
ABSENT(cuModuleLoadDataEx)
ABSENT(cuModuleUnload)
ABSENT(cuOccupancyMaxActiveBlocksPerMultiprocessor)
ABSENT(cuOccupancyMaxActiveClusters)
ABSENT(cuPointerGetAttribute)
ABSENT(cuTensorMapEncodeTiled)
