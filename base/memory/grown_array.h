// Arrays that keep their memory from batch to batch.
#ifndef EMBANK_BASE_MEMORY_GROWN_ARRAY_H_
#define EMBANK_BASE_MEMORY_GROWN_ARRAY_H_

#include <cstddef>
#include <vector>

namespace embank {

// Makes an array have at least `size` values, whatever they are. The next batch may have more.
template <typename Value>
void Grow(size_t size, std::vector<Value>* array) {
  if (size <= array->size()) return;
  if (size > array->capacity()) {
    *array = {};
    array->reserve(size + size / 8);
  }
  array->resize(size);
}

}  // namespace embank

#endif  // EMBANK_BASE_MEMORY_GROWN_ARRAY_H_
