// The prototypes and flags of libpmem, beside those of its header.
#include "base/pmem/pmem_library.h"

#include <gtest/gtest.h>

#if __has_include(<libpmem.h>)
#include <libpmem.h>
#endif

#include <type_traits>

namespace embank::pmem_library_test {
namespace {

#ifdef LIBPMEM_H
// libpmem is C: its functions throw nothing, and do not say so.
template <typename Member, typename Function>
constexpr bool kIsSame = std::is_same_v<Member, std::remove_cvref_t<Function>*>;

static_assert(kIsSame<decltype(PmemLibrary::map_file), decltype(pmem_map_file)>);
static_assert(kIsSame<decltype(PmemLibrary::unmap), decltype(pmem_unmap)>);
static_assert(kIsSame<decltype(PmemLibrary::copy), decltype(pmem_memcpy)>);
static_assert(kIsSame<decltype(PmemLibrary::drain), decltype(pmem_drain)>);
static_assert(kIsSame<decltype(PmemLibrary::msync), decltype(pmem_msync)>);
static_assert(kIsSame<decltype(PmemLibrary::error_message), decltype(pmem_errormsg)>);
static_assert(kPmemNoDrain == PMEM_F_MEM_NODRAIN);
static_assert(kPmemNonTemporal == PMEM_F_MEM_NONTEMPORAL);
#endif

TEST(PmemLibrary, HasThePrototypesOfLibpmem) {
#ifndef LIBPMEM_H
  GTEST_SKIP() << "libpmem-dev was not installed when the test was built";
#endif
}

}  // namespace
}  // namespace embank::pmem_library_test
