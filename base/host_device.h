// EMBANK_HOST_DEVICE: on functions that a CUDA kernel and the host run alike.
#ifndef EMBANK_BASE_HOST_DEVICE_H_
#define EMBANK_BASE_HOST_DEVICE_H_

#if defined(__CUDACC__)
#define EMBANK_HOST_DEVICE __host__ __device__
#else
#define EMBANK_HOST_DEVICE
#endif

#endif  // EMBANK_BASE_HOST_DEVICE_H_
