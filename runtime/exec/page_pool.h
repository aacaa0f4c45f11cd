// The cache's pages, which all sequences of a context share. A page is a
// number: page p of every layer's pool belongs together.

#pragma once

#include <cstdint>

#include "runtime/base/array.h"

namespace izh {

class PagePool {
 public:
  // False if there is no memory. All `count` pages are free.
  [[nodiscard]] bool init(uint32_t count) {
    if (!free_.reserve(count)) return false;
    for (uint32_t page = count; page-- > 0;) {
      if (!free_.push(static_cast<int32_t>(page))) return false;
    }
    return true;
  }

  size_t available() const { return free_.size(); }

  // One of the available pages; there has to be one. Pages freed last come
  // first, so that few pages of the pools are ever touched.
  int32_t take() {
    const int32_t page = free_.back();
    free_.pop();
    return page;
  }

  // `page` comes from take, so there is room for it.
  void give(int32_t page) { (void)free_.push(page); }

 private:
  Array<int32_t> free_;
};

}  // namespace izh
