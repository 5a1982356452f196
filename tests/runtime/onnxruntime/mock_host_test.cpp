// SPDX-License-Identifier: Apache-2.0
// The plugin in a host that is none: versions, and every call of the host failing in turn.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "runtime/onnxruntime/abi.hpp"
#include "tests/support/mock_onnxruntime.hpp"

namespace castor::onnxruntime::abi {
extern "C" {
OrtStatus* CreateEpFactories(const char* name, const OrtApiBase* base, const OrtLogger* logger,
                             OrtEpFactory** factories, size_t max, size_t* count);
OrtStatus* ReleaseEpFactory(OrtEpFactory* factory);
}
}  // namespace castor::onnxruntime::abi

namespace castor {
namespace {

using namespace onnxruntime::abi;

constexpr int f32 = 1, u8 = 2, i8 = 3, i32 = 6;  // ONNXTensorElementDataType

template <class Element>
std::vector<std::byte> bytes_of(const std::vector<Element>& elements) {
  std::vector<std::byte> bytes(elements.size() * sizeof(Element));
  std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

OrtTypeInfo type_of(int type, std::vector<int64_t> extents, std::vector<std::string> names = {}) {
  return {{type, std::move(extents), std::move(names)}};
}

/// ConvInteger of x[?n, 1, 3, 3] by a weight of 2, converted and scaled by 0.5, then Exp.
struct Model {
  OrtValue w{{i8, {1, 1, 1, 1}, {}}, bytes_of<int8_t>({2})};
  OrtValue half{{f32, {}, {}}, bytes_of<float>({0.5f})};
  OrtValueInfo x{"x", type_of(u8, {-1, 1, 3, 3}, {"n", "", "", ""})};
  OrtValueInfo weights{"w", type_of(i8, {1, 1, 1, 1}), false, &w};
  OrtValueInfo factor{"half", type_of(f32, {}), false, &half};
  OrtValueInfo sum{"sum", type_of(i32, {-1, 1, 3, 3}, {"n", "", "", ""})};
  OrtValueInfo real{"real", type_of(f32, {-1, 1, 3, 3}, {"n", "", "", ""})};
  OrtValueInfo y{"y", type_of(f32, {-1, 1, 3, 3}, {"n", "", "", ""}), true};
  OrtValueInfo z{"z", type_of(f32, {-1, 1, 3, 3}, {"n", "", "", ""}), true};
  OrtOpAttr pads{"pads", ORT_OP_ATTR_INTS, {0, 0, 0, 0}};
  OrtOpAttr to{"to", ORT_OP_ATTR_INT, {f32}};
  OrtNode conv{"conv", "ConvInteger", {&x, &weights, nullptr}, {&sum}, {&pads, nullptr}};
  OrtNode cast{"cast", "Cast", {&sum}, {&real}, {&to}};
  OrtNode mul{"mul", "Mul", {&real, &factor}, {&y}, {}};
  OrtNode exp{"exp", "Exp", {&y}, {&z}, {}};
  OrtGraph graph{{&conv, &cast, &mul, &exp}};
  OrtGraph group{{&conv, &cast, &mul}};
  OrtNode fused{"castor_0", "group", {&x}, {&y}, {}};
};

/// What a session lives through; stops where a call gives a status.
class Session {
 public:
  explicit Session(const char* version) : base_(test::mock_onnxruntime(version)) {
    options_.entries["ep.castorexecutionprovider.threads"] = "3";
    options_.entries["ep.castorexecutionprovider.explain"] = "1";
  }

  ~Session() {
    if (info_ != nullptr) ep_->ReleaseNodeComputeInfos(ep_, &info_, 1);
    if (ep_ != nullptr) factory_->ReleaseEp(factory_, ep_);
    delete device_;
    if (factory_ != nullptr) release(ReleaseEpFactory(factory_));
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool create() {
    size_t count = 0;
    return is_fine(CreateEpFactories("castor", base_, &logger_, &factory_, 1, &count)) &&
           count == 1;
  }

  bool load() {
    const OrtHardwareDevice gpu{static_cast<OrtHardwareDeviceType>(1)};
    const OrtHardwareDevice cpu{};
    const OrtHardwareDevice* devices[] = {&gpu, &cpu};
    size_t found = 0;
    if (!is_fine(factory_->GetSupportedDevices(factory_, devices, 2, &device_, 1, &found))) {
      return false;
    }
    EXPECT_EQ(found, 1u);
    if (!is_fine(factory_->CreateEp(factory_, devices, nullptr, 1, &options_, &logger_, &ep_))) {
      return false;
    }
    if (!is_fine(ep_->GetCapability(ep_, &model_.graph, &support_))) return false;
    if (support_.groups.empty()) return false;  // a fault: ONNX Runtime goes on without castor
    EXPECT_EQ(support_.groups[0], model_.group.nodes);
    const OrtGraph* graphs[] = {&model_.group};
    const OrtNode* fused[] = {&model_.fused};
    OrtNode* context = nullptr;
    return is_fine(ep_->Compile(ep_, graphs, fused, 1, &info_, &context));
  }

  /// One run of that many images; false where it failed, and then no output has been written.
  bool run(int64_t images) {
    OrtValue x{{u8, {images, 1, 3, 3}, {}}, {}};
    for (int64_t i = 0; i < images * 9; ++i) x.bytes.push_back(static_cast<std::byte>(i * 7));
    OrtKernelContext context;
    context.inputs = {&x};
    context.outputs.push_back(std::make_unique<OrtValue>(OrtValue{{f32, {}, {}}, {}}));
    void* state = nullptr;
    if (!is_fine(info_->CreateState(info_, nullptr, &state))) return false;
    const bool done = is_fine(info_->Compute(info_, state, &context));
    info_->ReleaseState(info_, state);
    check(x, *context.outputs[0], done);
    return done;
  }

  const std::vector<std::string>& messages() const { return messages_; }
  const std::string& error() const { return error_; }

 private:
  static void check(const OrtValue& x, const OrtValue& y, bool done) {
    for (size_t i = 0; done && i < x.bytes.size(); ++i) {
      float found = 0;
      std::memcpy(&found, y.bytes.data() + i * sizeof found, sizeof found);
      EXPECT_EQ(found, static_cast<float>(std::to_integer<int>(x.bytes[i])));
    }
    for (size_t i = 0; !done && i < y.bytes.size(); ++i) EXPECT_EQ(y.bytes[i], std::byte{0xa5});
  }

  void release(OrtStatus* status) {
    if (status == nullptr) return;
    error_ = status->message;
    reinterpret_cast<void (*)(OrtStatus*)>(base_->GetApi(1)->slots[ReleaseStatus.index])(status);
  }
  bool is_fine(OrtStatus* status) {
    const bool fine = status == nullptr;
    release(status);
    return fine;
  }

  const OrtApiBase* base_;
  Model model_;
  OrtSessionOptions options_;
  std::vector<std::string> messages_;
  OrtLogger logger_{&messages_};
  OrtEpFactory* factory_ = nullptr;
  OrtEpDevice* device_ = nullptr;
  OrtEp* ep_ = nullptr;
  OrtEpGraphSupportInfo support_;
  OrtNodeComputeInfo* info_ = nullptr;
  std::string error_;
};

TEST(OnnxRuntimeMock, VersionsThatCastorKnows) {
  for (const char* version : {"1.23.0", "1.24.3", "1.30.0", "1.99.1-dev"}) {
    SCOPED_TRACE(version);
    test::fail_call(-1);
    Session session(version);
    ASSERT_TRUE(session.create()) << session.error();
    ASSERT_TRUE(session.load()) << session.error();
    for (const int64_t images : {1, 2, 0, 1}) EXPECT_TRUE(session.run(images)) << session.error();
  }
  EXPECT_EQ(test::unreleased(), 0);
}

TEST(OnnxRuntimeMock, VersionsThatItRefuses) {
  for (const char* version : {"1.22.9", "1.0.0", "2.1.0", "", "new"}) {
    SCOPED_TRACE(version);
    Session session(version);
    EXPECT_FALSE(session.create());
    EXPECT_NE(session.error().find("castor needs ONNX Runtime 1.23 or newer"), std::string::npos)
        << session.error();
  }
  EXPECT_EQ(test::unreleased(), 0);
}

TEST(OnnxRuntimeMock, WhatIsLeftIsExplained) {
  test::fail_call(-1);
  Session session("1.27.0");
  ASSERT_TRUE(session.create());
  ASSERT_TRUE(session.load());
  bool says = false;
  for (const std::string& message : session.messages()) {
    says |= message == "castor leaves node exp (Exp): castor has no Exp of ai.onnx";
  }
  EXPECT_TRUE(says);
}

/// Each call of the host fails once: the session ends, or goes on without castor or without a
/// message, and nothing is lost.
TEST(OnnxRuntimeMock, EveryCallThatFails) {
  for (const char* version : {"1.23.0", "1.27.0"}) {
    int failures = 0;
    for (int number = 0;; ++number) {
      SCOPED_TRACE(number);
      test::fail_call(number);
      {
        Session session(version);
        const bool done = session.create() && session.load() && session.run(2) && session.run(3);
        failures += done ? 0 : 1;
      }
      EXPECT_EQ(test::unreleased(), 0);
      if (test::counted_calls() <= number) break;
    }
    EXPECT_GT(failures, 50);
  }
  test::fail_call(-1);
}

}  // namespace
}  // namespace castor
