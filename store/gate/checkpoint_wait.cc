#include "store/gate/checkpoint_wait.h"

#include "base/check.h"

namespace embank {

CheckpointWait::UnderWay::UnderWay(CheckpointWait* wait) : wait_(wait) {
  MutexLock lock(&wait_->mutex_);
  EMBANK_CHECK(wait_->maker_ == std::thread::id());
  wait_->maker_ = std::this_thread::get_id();
}

CheckpointWait::UnderWay::~UnderWay() {
  {
    MutexLock lock(&wait_->mutex_);
    EMBANK_CHECK(wait_->maker_ == std::this_thread::get_id());
    wait_->maker_ = {};
    ++wait_->ended_;
  }
  wait_->has_ended_.NotifyAll();
}

uint64_t CheckpointWait::ended() {
  MutexLock lock(&mutex_);
  return ended_;
}

bool CheckpointWait::IsUnderWay() {
  MutexLock lock(&mutex_);
  return maker_ != std::thread::id();
}

bool CheckpointWait::WaitFor(uint64_t ended) {
  MutexLock lock(&mutex_);
  if (maker_ == std::this_thread::get_id()) return false;
  while (ended_ == ended && maker_ != std::thread::id()) has_ended_.Wait(&mutex_);
  return ended_ != ended;
}

}  // namespace embank
