// A growable array of trivially copyable elements. Growing can fail, and says
// so: nothing throws. Pointers to elements end with the next growth.

#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "runtime/base/heap.h"
#include "runtime/base/span.h"

namespace izh {

template <typename T>
class Array {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  Array(Array&& other) noexcept { swap(other); }
  Array& operator=(Array&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Array() { heap_free(data_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t index) { return data_[index]; }
  const T& operator[](size_t index) const { return data_[index]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  Span<T> span() { return {data_, size_}; }
  Span<const T> span() const { return {data_, size_}; }

  // Room for `count` elements in all. False, and unchanged, if there is no memory.
  [[nodiscard]] bool reserve(size_t count) {
    if (count <= capacity_) return true;
    if (count > SIZE_MAX / 2 / sizeof(T)) return false;
    void* block = heap_resize(data_, count * sizeof(T));
    if (!block) return false;
    data_ = static_cast<T*>(block);
    capacity_ = count;
    return true;
  }

  // New elements are zero bytes.
  [[nodiscard]] bool resize(size_t count) {
    if (count > capacity_ && !reserve(count)) return false;
    if (count > size_) {
      memset(static_cast<void*>(data_ + size_), 0, (count - size_) * sizeof(T));
    }
    size_ = count;
    return true;
  }

  [[nodiscard]] bool push(const T& value) {
    const T copy = value;
    if (!grow(1)) return false;
    data_[size_++] = copy;
    return true;
  }

  // `values` may not lie in this array.
  [[nodiscard]] bool append(const T* values, size_t count) {
    if (count == 0) return true;
    if (!grow(count)) return false;
    memcpy(static_cast<void*>(data_ + size_), values, count * sizeof(T));
    size_ += count;
    return true;
  }

  void pop() { --size_; }
  void clear() { size_ = 0; }

  void swap(Array& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  bool grow(size_t more) {
    if (more <= capacity_ - size_) return true;
    if (more > SIZE_MAX / 2 - size_) return false;
    size_t wanted = capacity_ < 8 ? 16 : capacity_ * 2;
    if (wanted < size_ + more) wanted = size_ + more;
    return reserve(wanted);
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace izh
