// What limits a template: memory, steps, depth, and the one error that ends it.
//
// Failures are sticky: the first one is kept, functions go on returning values
// of no meaning, and everything that repeats asks failed().

#pragma once

#include <new>

#include "runtime/include/izh/izh.h"
#include "runtime/text/jinja/value.h"

namespace izh::jinja {

struct Limits {
  uint64_t steps = 1'500'000;     // a tenth of a second at most: 65 ns each
  uint64_t memory = 64ull << 20;  // bytes of all values together
  uint64_t output = 32ull << 20;  // bytes of the text
  uint32_t depth = 1000;          // nested statements, expressions and values
};

class Machine {
 public:
  Machine(const Limits& limits, izh_error* error) : limits_(limits), error_(error) {}
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  bool failed() const { return status_ != IZH_OK; }
  izh_status status() const { return status_; }
  const Limits& limits() const { return limits_; }
  // The line of the template that is worked on, for messages; 0: none.
  uint32_t line = 0;

  // Keeps the sentence unless there is one. Returns an undefined value.
  Value fail(const char* format, ...) __attribute__((format(printf, 2, 3)));
  // The same because a limit is reached.
  Value fail_limit(const char* what, uint64_t limit);

  // Counts work; false once there was too much, or a failure.
  bool charge(uint64_t steps) {
    if (steps > limits_.steps - steps_) {
      fail_limit("steps", limits_.steps);
      return false;
    }
    steps_ += steps;
    return !failed();
  }
  bool enter() {
    if (depth_ >= limits_.depth) {
      fail_limit("levels of nesting", limits_.depth);
      return false;
    }
    ++depth_;
    return charge(1);
  }
  void leave() { --depth_; }

  // Memory until the machine ends, aligned for values; NULL after a failure.
  void* allocate(size_t bytes);
  template <typename T>
  T* make() {
    void* place = allocate(sizeof(T));
    return place ? ::new (place) T() : nullptr;
  }
  template <typename T>
  T* make_array(size_t count) {
    return static_cast<T*>(allocate(count * sizeof(T)));
  }
  // Room for `more` bytes behind the `size` used ones of a block with room for
  // `*capacity`: in place where free memory begins there, otherwise elsewhere,
  // and then with `spare` bytes to grow.
  char* extend(char* block, size_t size, size_t more, size_t spare, size_t* capacity);

  Value string(Text text);
  // The two together; costs only `b` where `a` was the last thing made.
  Value concat(Text a, Text b);
  Value list(const Value* items, uint32_t count, Kind kind = Kind::kList);
  Value dict();
  // Adds or replaces. False after a failure.
  bool set(Dict* dict, const Value& key, const Value& value);

 private:
  struct Chunk {
    Chunk* before;
  };
  bool add_chunk(size_t bytes);

  Limits limits_;
  izh_error* error_;
  izh_status status_ = IZH_OK;
  uint64_t steps_ = 0;
  uint32_t depth_ = 0;
  uint64_t used_ = 0;
  Chunk* chunk_ = nullptr;
  char* top_ = nullptr;
  char* end_ = nullptr;
};

// Enters a level for as long as it lives.
class Level {
 public:
  explicit Level(Machine& machine) : machine_(machine), good_(machine.enter()) {}
  ~Level() { machine_.leave(); }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
  explicit operator bool() const { return good_; }

 private:
  Machine& machine_;
  bool good_;
};

// Builds a string piece by piece.
class Builder {
 public:
  explicit Builder(Machine& machine) : machine_(machine) {}
  void add(Text text);
  void add(char byte) { add(Text(&byte, 1)); }
  void add_point(uint32_t code_point);
  void format(const char* format, ...) __attribute__((format(printf, 2, 3)));
  Text text() const { return {data_ ? data_ : "", size_}; }
  Value value() const { return make_string(text()); }
  uint64_t size() const { return size_; }

 private:
  Machine& machine_;
  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// Builds a list item by item.
class ListBuilder {
 public:
  explicit ListBuilder(Machine& machine) : machine_(machine) {}
  void add(const Value& value);
  uint32_t size() const { return size_; }
  Value* items() { return reinterpret_cast<Value*>(data_); }
  Value value(Kind kind = Kind::kList);

 private:
  Machine& machine_;
  char* data_ = nullptr;
  size_t capacity_ = 0;
  uint32_t size_ = 0;
};

}  // namespace izh::jinja
