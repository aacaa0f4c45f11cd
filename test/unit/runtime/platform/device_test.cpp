// Devices, with the driver of test/ptx linked into this program: it has the
// name by which the runtime opens a driver.

#include "runtime/platform/device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/platform/cpu.h"

namespace izh {
namespace {

// Adds 1 to each word of a buffer, a block a word.
constexpr const char* kText = R"(
.version 7.0
.target sm_80
.address_size 64

.visible .entry bump(
	.param .u64 .ptr .align 1 bump_param_0,
	.param .u64 bump_param_1
)
.reqntid 1
{
	.reg .b32 	%r<4>;
	.reg .b64 	%rd<5>;
	ld.param.b64 	%rd1, [bump_param_0];
	mov.u32 	%r1, %ctaid.x;
	mul.wide.u32 	%rd2, %r1, 4;
	add.s64 	%rd3, %rd1, %rd2;
	ld.global.b32 	%r2, [%rd3];
	add.s32 	%r3, %r2, 1;
	st.global.b32 	[%rd3], %r3;
	ret;
}
)";

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override { setenv("IZH_DEVICE", "cuda", 1); }
  void TearDown() override {
    for (const char* name :
         {"IZH_DEVICE", "IZH_FAKE_GPUS", "IZH_FAKE_CAPABILITY", "IZH_FAKE_MEMORY", "IZH_FAKE_FAIL"})
      unsetenv(name);
    device_close(device);
  }
  std::string opening() {
    EXPECT_NE(device_open(&device, &error), IZH_OK);
    EXPECT_EQ(device, nullptr);
    return error.message;
  }
  void open() { ASSERT_EQ(device_open(&device, &error), IZH_OK) << error.message; }

  Device* device = nullptr;
  izh_error error = {};
};

TEST_F(DeviceTest, IsTheProcessorUnlessAnotherIsNamed) {
  for (const char* name : {"cpu", ""}) {
    setenv("IZH_DEVICE", name, 1);
    EXPECT_EQ(device_open(&device, &error), IZH_OK);
    EXPECT_EQ(device, nullptr);
  }
  unsetenv("IZH_DEVICE");
  EXPECT_EQ(device_open(&device, &error), IZH_OK);
  EXPECT_EQ(device, nullptr);
}

TEST_F(DeviceTest, RefusesKindsThatItHasNoSupportFor) {
  setenv("IZH_DEVICE", "vulkan", 1);
  EXPECT_NE(opening().find("it can be cpu, cuda"), std::string::npos) << error.message;
  setenv("IZH_DEVICE", "toaster", 1);
  EXPECT_NE(opening().find("toaster"), std::string::npos);
  for (const char* name : {"cuda:", "cuda:-1", "cuda:1x", "cudax", "cuda:99999999999"}) {
    setenv("IZH_DEVICE", name, 1);
    EXPECT_NE(opening().find(name), std::string::npos);
  }
}

TEST_F(DeviceTest, RefusesAGpuThatIsNotThere) {
  setenv("IZH_FAKE_GPUS", "2", 1);
  setenv("IZH_DEVICE", "cuda:2", 1);
  EXPECT_NE(opening().find("has 2 GPUs"), std::string::npos) << error.message;
  setenv("IZH_DEVICE", "cuda:1", 1);
  open();
  EXPECT_STREQ(device_info(device).id, "cuda:1");
}

TEST_F(DeviceTest, HasTheFeaturesOfItsCapabilityAndAllBelow) {
  auto has = [&](const char* name) {
    return ((device_info(device).features >> cpu_feature_bit(name, 5)) & 1) != 0;
  };
  setenv("IZH_FAKE_CAPABILITY", "89", 1);
  open();
  EXPECT_TRUE(has("sm_80"));
  EXPECT_FALSE(has("sm_90"));
  device_close(device);
  setenv("IZH_FAKE_CAPABILITY", "120", 1);
  open();
  EXPECT_TRUE(has("sm_80"));
  EXPECT_TRUE(has("sm_90"));
}

TEST_F(DeviceTest, BringsBytesThereAndBack) {
  open();
  // More than a piece, and not a whole number of them.
  std::vector<uint8_t> bytes((size_t{20} << 20) + 5), back(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 256);
  DeviceAddress there = 0;
  ASSERT_EQ(device_alloc(device, bytes.size(), "bytes", &there, &error), IZH_OK);
  EXPECT_EQ(there % 256, 0u);
  ASSERT_EQ(device_download(device, back.data(), there, back.size(), &error), IZH_OK);
  EXPECT_EQ(back, std::vector<uint8_t>(bytes.size())) << "new memory is not zero";
  ASSERT_EQ(device_upload(device, there, bytes.data(), bytes.size(), &error), IZH_OK);
  ASSERT_EQ(device_download(device, back.data(), there, back.size(), &error), IZH_OK);
  EXPECT_EQ(back, bytes);
  device_free(device, there);
}

TEST_F(DeviceTest, SaysWhatDoesNotFit) {
  setenv("IZH_FAKE_MEMORY", "1048576", 1);
  open();
  uint64_t left = 0;
  ASSERT_EQ(device_free_bytes(device, &left, &error), IZH_OK);
  EXPECT_EQ(left, 1048576u);
  DeviceAddress there = 0;
  EXPECT_EQ(device_alloc(device, 8 << 20, "the weights", &there, &error), IZH_OUT_OF_MEMORY);
  EXPECT_EQ(there, 0u);
  EXPECT_NE(std::string(error.message).find("8 MiB for the weights"), std::string::npos)
      << error.message;
}

TEST_F(DeviceTest, RunsKernelsAtOnceOrAsRecorded) {
  open();
  DeviceCode* code = nullptr;
  DeviceFunction* function = nullptr;
  ASSERT_EQ(device_load(device, kText, "bump.izh", &code, &error), IZH_OK) << error.message;
  ASSERT_EQ(device_find(device, code, "bump", 0, &function, &error), IZH_OK);
  DeviceAddress words = 0;
  ASSERT_EQ(device_alloc(device, 16, "words", &words, &error), IZH_OK);
  uint64_t first = words, second = 0;
  void* arguments[] = {&first, &second};
  ASSERT_EQ(device_launch(device, function, 3, 1, 0, false, arguments, &error), IZH_OK);
  ASSERT_EQ(device_record(device, &error), IZH_OK);
  ASSERT_EQ(device_launch(device, function, 4, 1, 0, false, arguments, &error), IZH_OK);
  DeviceGraph* graph = nullptr;
  ASSERT_EQ(device_recorded(device, &graph, &error), IZH_OK);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(device_replay(device, graph, &error), IZH_OK);
  int32_t found[4] = {};
  ASSERT_EQ(device_download(device, found, words, sizeof(found), &error), IZH_OK);
  EXPECT_EQ(std::vector<int32_t>(found, found + 4), (std::vector<int32_t>{3, 3, 3, 2}));
  device_forget(device, graph);
  device_free(device, words);
  device_unload(device, code);
}

// What a kernel declares counts as well: without leave, both may be 48 KiB.
TEST_F(DeviceTest, LetsLaunchesBringMemoryBesideTheKernelsOwn) {
  open();
  std::string text = kText;
  text.insert(text.find("\t.reg .b32"), "\t.shared .align 16 .b8 own[20480];\n");
  DeviceCode* code = nullptr;
  ASSERT_EQ(device_load(device, text.c_str(), "bump.izh", &code, &error), IZH_OK) << error.message;
  DeviceAddress words = 0;
  ASSERT_EQ(device_alloc(device, 16, "words", &words, &error), IZH_OK);
  uint64_t first = words, second = 0;
  void* arguments[] = {&first, &second};
  for (uint32_t bytes : {uint32_t{16} << 10, uint32_t{40} << 10, uint32_t{100} << 10}) {
    DeviceFunction* function = nullptr;
    ASSERT_EQ(device_find(device, code, "bump", bytes, &function, &error), IZH_OK);
    EXPECT_EQ(device_launch(device, function, 1, 1, bytes, false, arguments, &error), IZH_OK)
        << bytes << ": " << error.message;
  }
  device_free(device, words);
  device_unload(device, code);
}

TEST_F(DeviceTest, TellsWhatTheDriverSaysOfCodeAndKernels) {
  open();
  DeviceCode* code = nullptr;
  EXPECT_EQ(device_load(device, "nonsense", "bad.izh", &code, &error), IZH_UNSUPPORTED_CPU);
  EXPECT_NE(std::string(error.message).find("bad.izh"), std::string::npos) << error.message;
  EXPECT_NE(std::string(error.message).find("nonsense"), std::string::npos) << error.message;
  ASSERT_EQ(device_load(device, kText, "bump.izh", &code, &error), IZH_OK);
  DeviceFunction* function = nullptr;
  EXPECT_NE(device_find(device, code, "jump", 0, &function, &error), IZH_OK);
  device_unload(device, code);
}

TEST_F(DeviceTest, FailsWhereTheDriverDoes) {
  setenv("IZH_FAKE_FAIL", "cuStreamCreate:1", 1);
  EXPECT_NE(opening().find("cuda:0"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace izh
