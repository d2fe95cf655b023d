// A library that the loader takes for libpmem: its functions map no file, or it has none of them.
#include <sys/types.h>

#include <cerrno>
#include <cstddef>

#ifdef EMBANK_WITHOUT_MAPS
extern "C" {

// As on a file system whose files cannot be mapped.
void* pmem_map_file(const char*, size_t, int, mode_t, size_t*, int*) {
  errno = ENODEV;
  return nullptr;
}
int pmem_unmap(void*, size_t) { return -1; }
void* pmem_memcpy(void*, const void*, size_t, unsigned) { return nullptr; }
void pmem_drain() {}
int pmem_msync(const void*, size_t) { return -1; }
const char* pmem_errormsg() { return "no maps here"; }

}  // extern "C"
#endif
