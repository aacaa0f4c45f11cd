// A view of consecutive elements that someone else owns.

#pragma once

#include <cstddef>

namespace izh {

template <typename T>
struct Span {
  T* data = nullptr;
  size_t size = 0;

  T& operator[](size_t index) const { return data[index]; }
  T* begin() const { return data; }
  T* end() const { return data + size; }
  bool empty() const { return size == 0; }
};

}  // namespace izh
