// The section for export is read as if an enemy had written it.

#include "compiler/emit/ExportTable.h"
#include "test/unit/compiler/import/gguf_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace izhc;
using namespace izhc::test;
using testing::HasSubstr;

namespace {

// One tensor of four floats, which the table holds itself.
struct Section {
  Bytes header;
  uint32_t tensors = 1;
  uint64_t size = 16;
  // What it says of itself: whether it is compressed, and its content's size.
  uint32_t packed = 0;
  uint64_t claimed = 0;

  Section() {
    GgufWriter writer;
    writer.string("general.architecture", "toy").tensor("t", {4}, 0, Bytes(16));
    header = writer.build();
    header.resize(header.size() - 16);
  }

  std::string read() const {
    ByteWriter content;
    content.put(uint64_t(header.size()));
    content.bytes.insert(content.bytes.end(), header.begin(), header.end());
    content.put(tensors);
    for (uint32_t i = 0; i < tensors; ++i) {
      content.put(uint32_t(0)).put(size);
      content.bytes.resize(content.bytes.size() + size);
    }
    ByteWriter section;
    section.put(packed).put(claimed ? claimed : uint64_t(content.bytes.size()));
    section.bytes.insert(section.bytes.end(), content.bytes.begin(), content.bytes.end());
    auto table = emit::readExportTable(section.bytes);
    return table ? "" : llvm::toString(table.takeError());
  }
};

} // namespace

TEST(ExportTableTest, ReadsWhatFitsTogether) { EXPECT_EQ(Section().read(), ""); }

TEST(ExportTableTest, RefusesHeadersThatAreOfNoGgufFile) {
  Section section;
  section.header[0] = 'X';
  EXPECT_THAT(section.read(), HasSubstr("instead of 'GGUF'"));
  section = {};
  section.header.assign(64, 0);
  EXPECT_THAT(section.read(), HasSubstr("instead of 'GGUF'"));
  section = {};
  section.header.resize(30);
  EXPECT_THAT(section.read(), HasSubstr("ends at byte 30"));
}

TEST(ExportTableTest, RefusesHeadersWithOtherTensors) {
  Section section;
  section.tensors = 2;
  EXPECT_THAT(section.read(), HasSubstr("other tensors"));
  section = {};
  section.size = 12;
  EXPECT_THAT(section.read(), HasSubstr("other tensors"));
  section = {};
  section.header.resize(section.header.size() + 32);
  EXPECT_THAT(section.read(), HasSubstr("other tensors"));
}

TEST(ExportTableTest, RefusesContentsThatWouldTakeMuchMemory) {
  Section section;
  section.packed = 1;
  // More than any model's; and more than so few bytes can stand for.
  for (uint64_t claimed : {uint64_t(1) << 30, uint64_t(64) << 20, ~uint64_t(0)}) {
    section.claimed = claimed;
    EXPECT_THAT(section.read(), HasSubstr("malformed")) << claimed;
  }
}
