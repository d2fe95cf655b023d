// A build without CUDA.
#include "gpu/device.h"

namespace embank {

StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int32_t) {
  return UnimplementedError("this is a build without CUDA: a store can have the twin of a device");
}

const char* CudaBuildInfo() { return nullptr; }

}  // namespace embank
