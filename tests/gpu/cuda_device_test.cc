// The device of CUDA with the streams and the memory of its caller. Built with EMBANK_CUDA; skipped
// where there is no device. Its kernels are compared with the twin's by embank_gpu_check.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu/device.h"

namespace embank::test::cuda_device_test {
namespace {

constexpr uint64_t kBytes = 256;

class CudaDevice : public testing::Test {
 protected:
  void SetUp() override {
    auto device = OpenCudaDevice(0);
    if (!device.ok()) GTEST_SKIP() << device.status();
    device_ = *std::move(device);
    memory_ = device_->Allocate(kBytes).value();
    pinned_ = device_->AllocatePinned(kBytes).value();
    for (cudaStream_t* stream : {&stream_, &other_}) {
      ASSERT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
    }
    Fill(memory_, 1);
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    is_open_ = true;  // a test that failed may have left a stream stopped
    for (const cudaStream_t stream : {stream_, other_}) cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream_);
    cudaStreamDestroy(other_);
    device_->Free(memory_);
    device_->FreePinned(pinned_);
  }

  // Sets all bytes of device memory.
  void Fill(std::byte* memory, int value) {
    ASSERT_EQ(cudaMemset(memory, value, kBytes), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  // Stops a stream until is_open_.
  void Stop(cudaStream_t stream) {
    const auto wait = [](void* is_open) {
      while (!static_cast<std::atomic<bool>*>(is_open)->load()) std::this_thread::yield();
    };
    ASSERT_EQ(cudaLaunchHostFunc(stream, wait, &is_open_), cudaSuccess);
  }

  std::unique_ptr<Device> device_;
  std::byte* memory_ = nullptr;
  std::byte* pinned_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaStream_t other_ = nullptr;
  std::atomic<bool> is_open_{false};
};

TEST_F(CudaDevice, ReadsTheCallersMemoryBehindJoinOnly) {
  for (const bool joins : {false, true}) {
    is_open_ = false;
    Fill(memory_, 1);
    Stop(stream_);
    ASSERT_EQ(cudaMemsetAsync(memory_, 2, kBytes, stream_), cudaSuccess);
    if (joins) {
      ASSERT_TRUE(device_->Join(stream_).ok());
    }
    device_->Copy(pinned_, memory_, kBytes);
    const DeviceEvent copied = device_->Record();
    // Without Join the copy ends while the stream stands still.
    if (!joins) {
      ASSERT_TRUE(device_->Wait(copied).ok());
    }
    is_open_ = true;
    ASSERT_TRUE(device_->Wait(copied).ok());
    EXPECT_EQ(pinned_[kBytes - 1], joins ? std::byte{2} : std::byte{1});
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
}

TEST_F(CudaDevice, IsWaitedForBehindReleaseOnly) {
  std::byte* const seen = device_->AllocatePinned(kBytes).value();
  for (const bool releases : {false, true}) {
    is_open_ = false;
    Fill(memory_, 1);
    std::fill_n(pinned_, kBytes, std::byte{2});
    Stop(other_);
    ASSERT_TRUE(device_->Join(other_).ok());
    device_->Copy(memory_, pinned_, kBytes);
    if (releases) {
      ASSERT_TRUE(device_->Release(stream_).ok());
    }
    ASSERT_EQ(cudaMemcpyAsync(seen, memory_, kBytes, cudaMemcpyDefault, stream_), cudaSuccess);
    if (!releases) {
      ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    }
    is_open_ = true;
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(seen[kBytes - 1], releases ? std::byte{2} : std::byte{1});
    ASSERT_TRUE(device_->Wait(device_->Record()).ok());
  }
  device_->FreePinned(seen);
}

TEST_F(CudaDevice, RefusesAStreamThatIsCapturing) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(device_->Join(stream_).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(device_->Release(stream_).code(), StatusCode::kFailedPrecondition);
  // Other work goes on, and the capture is not broken.
  device_->Copy(pinned_, memory_, kBytes);
  EXPECT_TRUE(device_->Wait(device_->Record()).ok());
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  if (graph != nullptr) cudaGraphDestroy(graph);
  EXPECT_TRUE(device_->Join(stream_).ok());
}

TEST_F(CudaDevice, TakesTheDefaultStream) {
  ASSERT_EQ(cudaMemsetAsync(memory_, 7, kBytes, nullptr), cudaSuccess);
  ASSERT_TRUE(device_->Join(nullptr).ok());
  device_->Copy(pinned_, memory_, kBytes);
  ASSERT_TRUE(device_->Release(nullptr).ok());
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(pinned_[0], std::byte{7});
}

TEST_F(CudaDevice, OwnsAllMemoryOfItsDevice) {
  EXPECT_TRUE(device_->Owns(memory_, kBytes));
  void* others = nullptr;
  ASSERT_EQ(cudaMalloc(&others, kBytes), cudaSuccess);
  EXPECT_TRUE(device_->Owns(others, kBytes));
  EXPECT_EQ(cudaFree(others), cudaSuccess);
  const std::vector<std::byte> host(kBytes);
  EXPECT_FALSE(device_->Owns(host.data(), kBytes));
  EXPECT_FALSE(device_->Owns(pinned_, kBytes));
  EXPECT_FALSE(device_->Owns(memory_, ~uint64_t{0}));
}

TEST_F(CudaDevice, NamesBothSizesWhereMemoryIsShort) {
  const DeviceFigures figures = device_->figures();
  const uint64_t bytes = figures.total_bytes + 1;
  const Status status = device_->Allocate(bytes).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find(std::to_string(bytes)), std::string_view::npos) << status;
  EXPECT_NE(status.message().find("bytes free"), std::string_view::npos) << status;
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  device_->Copy(pinned_, memory_, kBytes);
  EXPECT_TRUE(device_->Wait(device_->Record()).ok());
}

TEST_F(CudaDevice, IsNamedWhereThereIsNone) {
  const Status status = OpenCudaDevice(99).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("99"), std::string_view::npos) << status;
}

}  // namespace
}  // namespace embank::test::cuda_device_test
