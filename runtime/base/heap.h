// The runtime's heap, declared here so that containers can use it; platform
// implements it. Nothing outside platform calls malloc or operator new.

#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace izh {

// Memory aligned for any scalar type, or NULL. `bytes` of 0 gives NULL.
[[nodiscard]] void* heap_alloc(size_t bytes);
// As realloc; on failure returns NULL and leaves `block` as it was.
[[nodiscard]] void* heap_resize(void* block, size_t bytes);
// NULL is allowed.
void heap_free(void* block);

// One object on the heap, or NULL if there is no memory.
template <typename T, typename... Args>
[[nodiscard]] T* heap_create(Args&&... args) {
  void* block = heap_alloc(sizeof(T));
  return block ? ::new (block) T{std::forward<Args>(args)...} : nullptr;
}

// Ends an object of heap_create; NULL is allowed.
template <typename T>
void heap_destroy(T* object) {
  if (!object) return;
  object->~T();
  heap_free(const_cast<std::remove_const_t<T>*>(object));
}

}  // namespace izh
