// Ids of short words that were merged before: texts repeat their words, and
// looking one up is several times faster than merging it. One slot a hash; the
// latest word stays.

#pragma once

#include <cstring>

#include "runtime/base/array.h"

namespace izh {

class WordCache {
 public:
  struct Entry {
    uint8_t length;
    uint8_t count;
    uint8_t bytes[62];
    int32_t ids[16];
  };
  static_assert(sizeof(Entry) == 128);

  // Shorter texts are over before a cache pays; without memory it goes without.
  void prepare(uint32_t text_bytes) {
    if (text_bytes >= 4096 && entries_.empty()) static_cast<void>(entries_.resize(kEntries));
  }

  // The entry of a word, or NULL for words that are not cached. It holds the word
  // if its length is not 0; otherwise encode the word and store() it.
  Entry* find(const uint8_t* word, uint32_t length) {
    if (length > sizeof(Entry::bytes) || entries_.empty()) return nullptr;
    uint64_t hash = length;
    for (uint32_t at = 0; at < length; at += 8) {
      uint64_t part = 0;
      memcpy(&part, word + at, length - at < 8 ? length - at : 8);
      hash = (hash ^ hash >> 29 ^ part) * 0x9e3779b97f4a7c15u;
    }
    hash = (hash ^ hash >> 32) * 0xbf58476d1ce4e5b9u;
    Entry* entry = &entries_[hash >> (64 - kBits)];
    if (entry->length != length || memcmp(entry->bytes, word, length) != 0) entry->length = 0;
    return entry;
  }

  // `ids` are those of the word that find() gave `entry` for.
  static void store(Entry* entry, const uint8_t* word, uint32_t length, const int32_t* ids,
                    size_t count) {
    if (count > sizeof(Entry::ids) / sizeof(int32_t)) return;
    entry->length = static_cast<uint8_t>(length);
    entry->count = static_cast<uint8_t>(count);
    memcpy(entry->bytes, word, length);
    memcpy(entry->ids, ids, count * sizeof(int32_t));
  }

 private:
  static constexpr unsigned kBits = 13;
  static constexpr size_t kEntries = size_t{1} << kBits;
  Array<Entry> entries_;
};

}  // namespace izh
