// Equality, order and membership of values, as Python defines them.

#pragma once

#include "runtime/text/jinja/machine.h"

namespace izh::jinja {

bool equal(Machine& machine, const Value& a, const Value& b);
// Below 0, 0 or above 0. Fails for kinds that have no order.
int compare(Machine& machine, const Value& a, const Value& b);
// `item in container`.
bool contains(Machine& machine, const Value& container, const Value& item);
bool truth(const Value& value);
// nullptr if there is none.
Entry* find_entry(Machine& machine, const Dict* dict, const Value& key);
const Value* find_key(const Dict* dict, Text key);
// How messages call the kind of a value.
const char* kind_name(const Value& value);
// Stable. `order` is int(const Value&, const Value&); `scratch` has as much
// room as `items`.
template <typename Order>
void merge_sort(Machine& machine, Value* items, Value* scratch, uint32_t count,
                const Order& order) {
  for (uint64_t width = 1; width < count && machine.charge(count); width *= 2) {
    for (uint64_t begin = 0; begin < count; begin += 2 * width) {
      const uint64_t middle = begin + width < count ? begin + width : count;
      const uint64_t end = begin + 2 * width < count ? begin + 2 * width : count;
      uint64_t left = begin, right = middle;
      for (uint64_t at = begin; at < end; ++at) {
        const bool take_left =
            left < middle && (right >= end || order(items[left], items[right]) <= 0);
        scratch[at] = take_left ? items[left++] : items[right++];
      }
    }
    memcpy(static_cast<void*>(items), scratch, count * sizeof(Value));
  }
}

}  // namespace izh::jinja
