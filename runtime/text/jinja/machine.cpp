// Memory in chunks that end together, and the error.

#include "runtime/text/jinja/machine.h"

#include <cstdarg>
#include <cstdio>

#include "runtime/base/heap.h"
#include "runtime/base/status.h"
#include "runtime/text/jinja/compare.h"

namespace izh::jinja {
namespace {

constexpr size_t kChunkBytes = 64 << 10;
constexpr size_t kAlign = alignof(Value);

size_t aligned(size_t bytes) { return (bytes + kAlign - 1) & ~(kAlign - 1); }

}  // namespace

Machine::~Machine() {
  while (chunk_) {
    Chunk* before = chunk_->before;
    heap_free(chunk_);
    chunk_ = before;
  }
}

Value Machine::fail(const char* format, ...) {
  if (failed()) return {};
  status_ = IZH_INVALID_ARGUMENT;
  char sentence[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof(sentence), format, arguments);
  va_end(arguments);
  if (line != 0) {
    set_error(error_, "the template fails in line %u: %s", line, sentence);
  } else {
    set_error(error_, "%s", sentence);
  }
  return {};
}

Value Machine::fail_limit(const char* what, uint64_t limit) {
  if (failed()) return {};
  fail("%s takes more than the %llu %s that are allowed", line != 0 ? "it" : "the context",
       static_cast<unsigned long long>(limit), what);
  status_ = IZH_LIMIT;
  return {};
}

bool Machine::add_chunk(size_t bytes) {
  size_t wanted = bytes + sizeof(Chunk) + kAlign;
  // Later chunks are larger, so that there are few.
  const size_t usual = used_ / 4 > kChunkBytes ? used_ / 4 : kChunkBytes;
  if (wanted < usual) wanted = usual;
  if (wanted > limits_.memory - used_) wanted = bytes + sizeof(Chunk) + kAlign;
  if (bytes > limits_.memory || wanted > limits_.memory - used_) {
    fail_limit("bytes of memory", limits_.memory);
    return false;
  }
  auto* chunk = static_cast<Chunk*>(heap_alloc(wanted));
  if (!chunk) {
    fail("no memory is left");
    status_ = IZH_OUT_OF_MEMORY;
    return false;
  }
  used_ += wanted;
  chunk->before = chunk_;
  chunk_ = chunk;
  top_ = reinterpret_cast<char*>(chunk) + aligned(sizeof(Chunk));
  end_ = reinterpret_cast<char*>(chunk) + wanted;
  return true;
}

void* Machine::allocate(size_t bytes) {
  if (failed()) return nullptr;
  top_ += top_ ? aligned(reinterpret_cast<uintptr_t>(top_)) - reinterpret_cast<uintptr_t>(top_) : 0;
  if (!top_ || top_ > end_ || bytes > static_cast<size_t>(end_ - top_)) {
    if (!add_chunk(bytes)) return nullptr;
  }
  void* place = top_;
  top_ += bytes;
  return place;
}

char* Machine::extend(char* block, size_t size, size_t more, size_t spare, size_t* capacity) {
  if (failed()) return nullptr;
  if (more > limits_.memory || size > limits_.memory) {
    fail_limit("bytes of memory", limits_.memory);
    return nullptr;
  }
  if (more <= *capacity - size) return block;
  const size_t missing = more - (*capacity - size);
  if (block && block + *capacity == top_ && missing <= static_cast<size_t>(end_ - top_)) {
    top_ += missing;
    *capacity += missing;
    return block;
  }
  if (!charge(size / 64)) return nullptr;
  auto* moved = static_cast<char*>(allocate(size + more + spare));
  if (!moved) return nullptr;
  if (size != 0) memcpy(moved, block, size);
  *capacity = size + more + spare;
  return moved;
}

Value Machine::concat(Text a, Text b) {
  if (a.size > INT32_MAX || b.size > INT32_MAX) return fail_limit("bytes of one string", INT32_MAX);
  size_t capacity = a.size;
  if (!charge(b.size / 64)) return {};
  // Bytes behind `a` are free, so that nobody sees them change.
  char* block = extend(const_cast<char*>(a.data), a.size, b.size, 0, &capacity);
  if (!block) return {};
  if (b.size != 0) memcpy(block + a.size, b.data, b.size);
  return make_string({block, size_t{a.size} + b.size});
}

Value Machine::string(Text text) {
  auto* copy = static_cast<char*>(allocate(text.size));
  if (!copy) return {};
  if (text.size != 0) memcpy(copy, text.data, text.size);
  return make_string({copy, text.size});
}

Value Machine::list(const Value* items, uint32_t count, Kind kind) {
  List* list = make<List>();
  Value* copy = make_array<Value>(count);
  if (!list || !copy) return {};
  if (count != 0) memcpy(static_cast<void*>(copy), items, count * sizeof(Value));
  list->items = copy;
  list->size = count;
  Value value;
  value.kind = kind;
  value.list = list;
  return value;
}

Value Machine::dict() {
  Value value;
  value.dict = make<Dict>();
  if (value.dict) value.kind = Kind::kDict;
  return value;
}

bool Machine::set(Dict* dict, const Value& key, const Value& value) {
  if (failed()) return false;
  if (Entry* entry = find_entry(*this, dict, key)) {
    entry->value = value;
    return true;
  }
  if (dict->size == dict->capacity) {
    const uint32_t capacity = dict->capacity < 4 ? 8 : dict->capacity * 2;
    auto* entries = make_array<Entry>(capacity);
    if (!entries) return false;
    if (dict->size != 0) {
      memcpy(static_cast<void*>(entries), dict->entries, dict->size * sizeof(Entry));
    }
    dict->entries = entries;
    dict->capacity = capacity;
  }
  dict->entries[dict->size++] = {key, value};
  return !failed();
}

void Builder::add(Text text) {
  if (text.size == 0) return;
  char* block = machine_.extend(data_, size_, text.size, size_, &capacity_);
  if (!block || !machine_.charge(1 + text.size / 64)) return;
  memcpy(block + size_, text.data, text.size);
  data_ = block;
  size_ += text.size;
  if (size_ > UINT32_MAX / 2) machine_.fail_limit("bytes of one string", UINT32_MAX / 2);
}

void Builder::add_point(uint32_t c) {
  if (c < 0x80) return add(static_cast<char>(c));
  if (c < 0x800) {
    add(static_cast<char>(0xc0 | c >> 6));
  } else if (c < 0x10000) {
    add(static_cast<char>(0xe0 | c >> 12));
    add(static_cast<char>(0x80 | (c >> 6 & 0x3f)));
  } else {
    add(static_cast<char>(0xf0 | c >> 18));
    add(static_cast<char>(0x80 | (c >> 12 & 0x3f)));
    add(static_cast<char>(0x80 | (c >> 6 & 0x3f)));
  }
  add(static_cast<char>(0x80 | (c & 0x3f)));
}

void Builder::format(const char* format, ...) {
  char buffer[128];
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(buffer, sizeof(buffer), format, arguments);
  va_end(arguments);
  if (size > 0 && machine_.charge(2)) add(Text(buffer, size < 127 ? size : 127));
}

void ListBuilder::add(const Value& value) {
  const size_t bytes = size_ * sizeof(Value);
  const Value copy = value;
  char* block = machine_.extend(data_, bytes, sizeof(Value), bytes, &capacity_);
  if (!block) return;
  memcpy(block + bytes, &copy, sizeof(Value));
  data_ = block;
  ++size_;
}

Value ListBuilder::value(Kind kind) {
  List* list = machine_.make<List>();
  if (!list) return {};
  list->items = items();
  list->size = size_;
  Value value;
  value.kind = kind;
  value.list = list;
  return value;
}

}  // namespace izh::jinja
