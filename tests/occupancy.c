/* NVIDIA's own occupancy, from its header: a line of numbers in, blocks and limits out. */
#include <stdio.h>

#include <cuda_occupancy.h>

int main(void) {
    int major, minor, threads, registers, shared_sm, shared_block, reserved, warps, used;
    int shared;
    while (scanf("%d %d %d %d %d %d %d %d %d %d", &major, &minor, &threads, &registers, &shared_sm,
                 &shared_block, &reserved, &warps, &used, &shared) == 10) {
        cudaOccDeviceProp device = {0};
        cudaOccFuncAttributes kernel = {0};
        cudaOccDeviceState state = {0};
        cudaOccResult result = {0};
        device.computeMajor = major;
        device.computeMinor = minor;
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = threads;
        device.regsPerBlock = device.regsPerMultiprocessor = registers;
        device.warpSize = 32;
        device.sharedMemPerBlock = 49152;
        device.sharedMemPerMultiprocessor = shared_sm;
        device.numSms = 1;
        device.sharedMemPerBlockOptin = shared_block;
        device.reservedSharedMemPerBlock = reserved;
        kernel.maxThreadsPerBlock = 1024;
        kernel.numRegs = used;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        kernel.maxDynamicSharedSizeBytes = shared;
        kernel.numBlockBarriers = 1;
        state.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, warps * 32,
                                                    shared) != CUDA_OCC_SUCCESS) {
            puts("error 0");
            continue;
        }
        printf("%d%s%s%s%s\n", result.activeBlocksPerMultiprocessor,
               result.limitingFactors & OCC_LIMIT_WARPS ? ",warps" : "",
               result.limitingFactors & OCC_LIMIT_BLOCKS ? ",blocks" : "",
               result.limitingFactors & OCC_LIMIT_REGISTERS ? ",registers" : "",
               result.limitingFactors & OCC_LIMIT_SHARED_MEMORY ? ",shared memory" : "");
    }
    return 0;
}
