// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's C API, as the library of its wheel exports it: which versions it hands out, that
// the slots of plain functions are where the plugin expects them, and that the plugin makes and
// releases its factory there. What needs a session is in plugin_test.py.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "runtime/onnxruntime/abi.hpp"

namespace castor {
namespace {

namespace fs = std::filesystem;
using namespace onnxruntime::abi;

/// libonnxruntime.so.VERSION of the environment that tools/ort/setup makes; empty without it.
std::string host_library() {
  const fs::path environment = fs::path(CASTOR_SOURCE_DIR) / "build/ort-venv/lib";
  if (!fs::exists(environment)) return {};
  for (const auto& python : fs::directory_iterator(environment)) {
    const fs::path folder = python.path() / "site-packages/onnxruntime/capi";
    if (!fs::exists(folder)) continue;
    for (const auto& file : fs::directory_iterator(folder)) {
      if (file.path().filename().string().starts_with("libonnxruntime.so")) return file.path();
    }
  }
  return {};
}

class CHost : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = host_library();
    ASSERT_FALSE(path.empty()) << "no library of ONNX Runtime: tools/ort/setup installs its wheel";
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto get_base =
        reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
    ASSERT_NE(get_base, nullptr) << dlerror();
    base_ = get_base();
  }

  const OrtApiBase* base_ = nullptr;
};

TEST_F(CHost, HandsOutTheVersionsThatThePluginAsksFor) {
  const std::string version = base_->GetVersionString();
  ASSERT_TRUE(version.starts_with("1.")) << version;
  const auto minor = static_cast<uint32_t>(std::stoul(version.substr(2)));
  ASSERT_GE(minor, oldest_version);
  for (uint32_t one = oldest_version; one <= std::min(minor, newest_version); ++one) {
    EXPECT_NE(base_->GetApi(one), nullptr) << one;
  }
  EXPECT_EQ(base_->GetApi(minor + 1), nullptr);
}

TEST_F(CHost, HasPlainFunctionsInTheirSlots) {
  const OrtApi* const api = base_->GetApi(oldest_version);
  ASSERT_NE(api, nullptr);
  OrtStatus* const status = at(api, CreateStatus)(ORT_FAIL, "what went wrong");
  ASSERT_NE(status, nullptr);
  EXPECT_STREQ(at(api, GetErrorMessage)(status), "what went wrong");
  at(api, ReleaseStatus)(status);
  EXPECT_NE(at(api, GetEpApi)(), nullptr);
}

TEST_F(CHost, ThePluginMakesItsFactory) {
  void* const plugin = dlopen(CASTOR_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(plugin, nullptr) << dlerror();
  const auto create =
      reinterpret_cast<OrtStatus* (*)(const char*, const OrtApiBase*, const OrtLogger*,
                                      OrtEpFactory**, size_t, size_t*)>(
          dlsym(plugin, "CreateEpFactories"));
  const auto release =
      reinterpret_cast<OrtStatus* (*)(OrtEpFactory*)>(dlsym(plugin, "ReleaseEpFactory"));
  ASSERT_TRUE(create != nullptr && release != nullptr);
  OrtEpFactory* factory = nullptr;
  size_t count = 0;
  // There is room for none at first: that is a status with a reason, and no factory.
  OrtStatus* const refused = create("castor", base_, nullptr, &factory, 0, &count);
  ASSERT_NE(refused, nullptr);
  const OrtApi* const api = base_->GetApi(oldest_version);
  EXPECT_STRNE(at(api, GetErrorMessage)(refused), "");
  at(api, ReleaseStatus)(refused);
  ASSERT_EQ(create("castor", base_, nullptr, &factory, 1, &count), nullptr);
  ASSERT_EQ(count, 1u);
  EXPECT_STREQ(factory->GetName(factory), "CastorExecutionProvider");
  EXPECT_GE(factory->ort_version_supported, oldest_version);
  EXPECT_LE(factory->ort_version_supported, newest_version);
  EXPECT_EQ(release(factory), nullptr);
}

}  // namespace
}  // namespace castor
