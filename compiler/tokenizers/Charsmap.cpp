// A map may come from anywhere, and its array may lead in circles: every unit
// that can be reached is looked at once, and how deep it goes from there.

#include "compiler/tokenizers/Charsmap.h"
#include "runtime/schema/tokenizer_limits.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Endian.h"
#include <algorithm>
#include <vector>

using namespace izhc;
namespace schema = izh::schema;

namespace {

// The largest map that is published has a quarter of a megabyte.
constexpr size_t kMaxBytes = 8u << 20;

class Checker {
public:
  explicit Checker(llvm::StringRef map) : map(map) {}

  std::string run() {
    if (map.size() > kMaxBytes)
      return "has " + std::to_string(map.size()) + " bytes, at most " + std::to_string(kMaxBytes) +
             " can be used";
    if (map.size() < 4 || word(0) > map.size() - 4)
      return "is damaged: its " + std::to_string(map.size()) +
             " bytes don't hold what their first four say";
    units = word(0) / 4;
    texts = map.drop_front(4 + word(0));
    heights.resize(units);
    if (units > 0)
      push(0);
    while (problem.empty() && !path.empty())
      step();
    return problem;
  }

private:
  // A unit on the way from the root, the byte that is tried next, and the
  // largest height of the units that it leads to.
  struct Place {
    uint32_t unit;
    unsigned byte;
    uint16_t tallest;
  };
  static constexpr uint16_t kOpen = UINT16_MAX;

  uint32_t word(size_t at) const { return llvm::support::endian::read32le(map.data() + at); }
  uint32_t unit(uint32_t index) const { return word(4 + size_t(index) * 4); }
  // Where the children of a unit are, and what replaces the way to it.
  uint32_t behind(uint32_t index) const {
    uint32_t bits = unit(index);
    return index ^ (bits >> 10) << ((bits >> 6) & 8);
  }

  void push(uint32_t index) {
    heights[index] = kOpen;
    path.push_back({index, 1, 0});
    if (index != 0 && (unit(index) >> 8 & 1))
      checkText(behind(index));
  }

  // Tries bytes until one leads on.
  void step() {
    Place &place = path.back();
    uint32_t base = behind(place.unit);
    for (; place.byte < 256; ++place.byte) {
      uint32_t child = base ^ place.byte;
      if (child >= units || (unit(child) & 0x800000ffu) != place.byte)
        continue;
      if (heights[child] == 0)
        return push(child);
      if (heights[child] == kOpen) {
        problem = "is damaged: it leads in circles";
        return;
      }
      place.tallest = std::max(place.tallest, heights[child]);
    }
    // One more than what follows, so that 0 is what was not looked at.
    uint16_t height = place.tallest + 1;
    heights[place.unit] = height;
    path.pop_back();
    if (height > schema::kMaxMapDepth + 1)
      problem = "replaces texts of more than " + std::to_string(schema::kMaxMapDepth) +
                " bytes, which is more than can be used";
    else if (!path.empty())
      path.back().tallest = std::max(path.back().tallest, height);
  }

  void checkText(uint32_t index) {
    uint32_t begin = index < units ? unit(index) & 0x7fffffffu : UINT32_MAX;
    llvm::StringRef text = texts.substr(begin, schema::kMaxMapText);
    size_t size = text.find('\0');
    auto *bytes = reinterpret_cast<const llvm::UTF8 *>(text.data());
    if (begin >= texts.size() || size == llvm::StringRef::npos)
      problem = "is damaged: a replacement has no end within " +
                std::to_string(schema::kMaxMapText) + " bytes";
    else if (!llvm::isLegalUTF8String(&bytes, bytes + size))
      problem = "is damaged: a replacement is not UTF-8";
  }

  llvm::StringRef map, texts;
  uint32_t units = 0;
  std::vector<uint16_t> heights;
  llvm::SmallVector<Place> path;
  std::string problem;
};

} // namespace

std::string izhc::charsmapProblem(llvm::StringRef map) { return Checker(map).run(); }
