// SPDX-License-Identifier: Apache-2.0
// Views to and from DLPack tensors: every element type, strides, offsets, and what is refused.
#include <dlpack/dlpack.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <castor/castor.hpp>
#include <castor/dlpack.hpp>

#include <numeric>

#include "ir/types/elements.hpp"
#include "tests/support/element_types.hpp"

namespace castor {
namespace {

// The installed header may be older than what it is to name: numbers are DLPack 1.1's. Of its
// structures DLTensor is the same in all versions from 0.5 on; this one is of 1.0.
struct Version {
  uint32_t major = 1;
  uint32_t minor = 1;
};
struct Managed {
  Version version;
  void* manager_ctx = nullptr;
  void (*deleter)(Managed*) = nullptr;
  uint64_t flags = 0;
  DLTensor dl_tensor = {};
};

struct Type {
  ElementType element;
  uint8_t code;
  uint8_t bits;
};
constexpr Type types[] = {
    {ElementType::boolean, 6, 8},     {ElementType::u1_lsb_first, 1, 1},
    {ElementType::u2, 1, 2},          {ElementType::u3, 1, 3},
    {ElementType::u4, 1, 4},          {ElementType::u6, 1, 6},
    {ElementType::u8, 1, 8},          {ElementType::u16, 1, 16},
    {ElementType::u32, 1, 32},        {ElementType::u64, 1, 64},
    {ElementType::i2, 0, 2},          {ElementType::i4, 0, 4},
    {ElementType::i8, 0, 8},          {ElementType::i16, 0, 16},
    {ElementType::i32, 0, 32},        {ElementType::i64, 0, 64},
    {ElementType::f4e2m1, 17, 4},     {ElementType::f8e4m3, 10, 8},
    {ElementType::f8e4m3fnuz, 11, 8}, {ElementType::f8e5m2, 12, 8},
    {ElementType::f8e5m2fnuz, 13, 8}, {ElementType::f8e8m0, 14, 8},
    {ElementType::bf16, 4, 16},       {ElementType::f16, 2, 16},
    {ElementType::f32, 2, 32},        {ElementType::f64, 2, 64},
    {ElementType::f6e2m3, 15, 6},     {ElementType::f6e3m2, 16, 6},
};

/// A tensor of [2, 3, 4] elements; its parts may be changed.
struct Tensor {
  std::vector<std::byte> bytes = std::vector<std::byte>(1024);
  std::vector<int64_t> shape = {2, 3, 4};
  std::vector<int64_t> strides;
  DLTensor tensor = {};

  explicit Tensor(uint8_t code = 2, uint8_t bits = 32) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 101 + i / 5);
    tensor.data = bytes.data();
    tensor.device = {kDLCPU, 0};
    tensor.dtype = {code, bits, 1};
  }
  const DLTensor& get() {
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.shape = shape.data();
    tensor.strides = strides.empty() ? nullptr : strides.data();
    return tensor;
  }
};

/// Element i of packed data as DLPack defines it: bits from the least significant one on.
uint64_t packed_element(std::span<const std::byte> data, int bits, int64_t index) {
  uint64_t value = 0;
  for (int b = 0; b < bits; ++b) {
    const auto at = static_cast<size_t>(index * bits + b);
    const uint64_t bit = std::to_integer<uint64_t>(data[at / 8]) >> (at % 8) & 1;
    value |= bit << b;
  }
  return value;
}

TEST(Dlpack, EveryTypeGoesBothWays) {
  for (const Type& type : types) {
    SCOPED_TRACE(name_of(type.element));
    Tensor made(type.code, type.bits);
    const Result<View> view = view_from_dlpack(made.get());
    ASSERT_TRUE(view.ok()) << view.error().message;
    EXPECT_EQ(view->element, type.element);
    EXPECT_EQ(view->data, made.bytes.data());
    EXPECT_EQ(view->shape, (Dims{2, 3, 4}));
    EXPECT_EQ(view->strides, (Dims{12, 4, 1}));
    EXPECT_EQ(view->bytes, (24 * type.bits + 7) / 8);
    for (int64_t i = 0; i < 24; ++i) {
      EXPECT_EQ(read_element(made.bytes.data(), type.element, i),
                packed_element(made.bytes, type.bits, i));
    }
    DlpackDims dims;
    DLTensor back = {};
    const Status status = to_dlpack(*view, dims, back);
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(back.data, view->data);
    EXPECT_EQ(back.device.device_type, kDLCPU);
    EXPECT_EQ(back.device.device_id, 0);
    EXPECT_EQ(back.ndim, 3);
    EXPECT_EQ(back.dtype.code, type.code);
    EXPECT_EQ(back.dtype.bits, type.bits);
    EXPECT_EQ(back.dtype.lanes, 1);
    EXPECT_EQ(Dims(std::span(back.shape, 3)), view->shape);
    EXPECT_EQ(Dims(std::span(back.strides, 3)), view->strides);
    EXPECT_EQ(back.byte_offset, 0u);
  }
}

TEST(Dlpack, EveryTypeIsListedOrRefused) {
  const std::vector<ElementType> none = {ElementType::u1, ElementType::nf4,
                                         ElementType::u2_msb_first, ElementType::u3_split,
                                         ElementType::u6_split};
  size_t counterparts = 0;
  for (const ElementType element : test::all_element_types()) {
    std::vector<std::byte> bytes(64);
    const View view(bytes.data(), element, {5}, 64);
    DlpackDims dims;
    DLTensor tensor = {};
    tensor.ndim = 77;
    const Status status = to_dlpack(view, dims, tensor);
    counterparts += status.ok();
    if (std::ranges::find(none, element) == none.end()) {
      EXPECT_TRUE(status.ok()) << name_of(element);
      continue;
    }
    ASSERT_FALSE(status.ok()) << name_of(element);
    EXPECT_EQ(status.error().code, ErrorCode::unsupported);
    EXPECT_EQ(status.error().message,
              fmt::format("element type {} has no counterpart in DLPack", name_of(element)));
    EXPECT_EQ(tensor.ndim, 77);
  }
  EXPECT_EQ(counterparts, std::size(types));
}

TEST(Dlpack, StridesAndOffsets) {
  Tensor made(2, 32);
  made.strides = {1, 8, 2};
  made.tensor.byte_offset = 36;
  const Result<ConstView> view = const_view_from_dlpack(made.get());
  ASSERT_TRUE(view.ok()) << view.error().message;
  EXPECT_EQ(view->data, made.bytes.data() + 36);
  EXPECT_EQ(view->strides, (Dims{1, 8, 2}));
  EXPECT_EQ(view->bytes, 4u * (1 + 1 + 2 * 8 + 3 * 2));
  ConstView shifted(made.bytes.data(), ElementType::u4, {3}, {5}, 6, 1024);
  DlpackDims dims;
  DLTensor back = {};
  ASSERT_TRUE(to_dlpack(shifted, dims, back).ok());
  EXPECT_EQ(back.byte_offset, 3u);
  EXPECT_EQ(back.strides[0], 5);
  const ConstView again = *const_view_from_dlpack(back);
  EXPECT_EQ(again.data, made.bytes.data() + 3);
  EXPECT_EQ(again.bytes, 6u);  // eleven elements of four bits
  for (const auto& [element, offset, bytes] :
       {std::tuple(ElementType::u3, 16, 6u), std::tuple(ElementType::u6, 12, 9u),
        std::tuple(ElementType::u1_lsb_first, 8, 1u), std::tuple(ElementType::f64, 3, 24u)}) {
    shifted.element = element;
    shifted.offset = offset;
    ASSERT_TRUE(to_dlpack(shifted, dims, back).ok());
    EXPECT_EQ(back.byte_offset, bytes) << name_of(element);
  }
}

TEST(Dlpack, ScalarsAndEmptyTensors) {
  Tensor scalar(1, 8);
  scalar.shape = {};
  const View one = *view_from_dlpack(scalar.get());
  EXPECT_EQ(one.shape.rank(), 0);
  EXPECT_EQ(one.bytes, 1u);
  scalar.tensor.shape = nullptr;
  EXPECT_TRUE(view_from_dlpack(scalar.tensor).ok());
  Tensor empty(1, 8);
  empty.shape = {3, 0, INT64_MAX};
  empty.tensor.data = nullptr;
  const View none = *view_from_dlpack(empty.get());
  EXPECT_EQ(none.bytes, 0u);
  EXPECT_EQ(none.data, nullptr);
  empty.strides = {0, -1, 7};  // there are no elements
  EXPECT_TRUE(view_from_dlpack(empty.get()).ok());
}

struct Refused {
  const char* name;
  void (*change)(Tensor& made);
  ErrorCode code;
  std::string error;
  uint64_t flags = 0;
};

TEST(Dlpack, WhatIsRefused) {
  const ErrorCode no = ErrorCode::unsupported;
  const ErrorCode wrong = ErrorCode::invalid_argument;
  const std::string unknown = "; castor has no such element type (see castor/dlpack.hpp)";
  const Refused rows[] = {
      {"CUDA host", [](Tensor& t) { t.tensor.device.device_type = kDLCUDAHost; }, no,
       "DLPack tensor on a device of type 3; expected 1 (CPU)"},
      {"complex",
       [](Tensor& t) {
         t.tensor.dtype = {5, 64, 1};
       },
       no, "DLPack tensor of complex of 64 bits, 1 lane" + unknown},
      {"opaque",
       [](Tensor& t) {
         t.tensor.dtype = {3, 64, 1};
       },
       no, "DLPack tensor of opaque handle of 64 bits, 1 lane" + unknown},
      {"int128",
       [](Tensor& t) {
         t.tensor.dtype = {0, 128, 1};
       },
       no, "DLPack tensor of int of 128 bits, 1 lane" + unknown},
      {"no bits",
       [](Tensor& t) {
         t.tensor.dtype = {1, 0, 1};
       },
       no, "DLPack tensor of uint of 0 bits, 1 lane" + unknown},
      {"i3",
       [](Tensor& t) {
         t.tensor.dtype = {0, 3, 1};
       },
       no, "DLPack tensor of int of 3 bits, 1 lane" + unknown},
      {"float8_e4m3",
       [](Tensor& t) {
         t.tensor.dtype = {8, 8, 1};
       },
       no, "DLPack tensor of float8_e4m3 of 8 bits, 1 lane" + unknown},
      {"float6 of 8 bits",
       [](Tensor& t) {
         t.tensor.dtype = {16, 8, 1};
       },
       no, "DLPack tensor of float6_e3m2fn of 8 bits, 1 lane" + unknown},
      {"float4 of 8 bits",
       [](Tensor& t) {
         t.tensor.dtype = {17, 8, 1};
       },
       no, "DLPack tensor of float4_e2m1fn of 8 bits, 1 lane" + unknown},
      {"later code",
       [](Tensor& t) {
         t.tensor.dtype = {99, 8, 1};
       },
       no, "DLPack tensor of code 99 of 8 bits, 1 lane" + unknown},
      {"lanes", [](Tensor& t) { t.tensor.dtype.lanes = 4; }, no,
       "DLPack tensor of float of 32 bits, 4 lanes; expected 1 lane"},
      {"no lane", [](Tensor& t) { t.tensor.dtype.lanes = 0; }, no,
       "DLPack tensor of float of 32 bits, 0 lanes; expected 1 lane"},
      {"padded",
       [](Tensor& t) {
         t.tensor.dtype = {1, 4, 1};
       },
       no,
       "DLPack tensor of uint of 4 bits, 1 lane, each padded to a byte; expected packed elements",
       dlpack_padded},
      {"ranks", [](Tensor& t) { t.shape.assign(17, 1); }, wrong,
       "DLPack tensor of 17 dimensions; expected 0 to 16"},
      {"extent", [](Tensor& t) { t.shape[1] = -3; }, wrong,
       "DLPack tensor of shape [2, -3, 4]; expected extents of 0 or more"},
      {"stride of 0",
       [](Tensor& t) {
         t.strides = {12, 0, 1};
       },
       wrong,
       "DLPack tensor with stride 0 on axis 1 of shape [2, 3, 4]; expected a positive stride"},
      {"stride below 0",
       [](Tensor& t) {
         t.strides = {12, 4, -1};
       },
       wrong,
       "DLPack tensor with stride -1 on axis 2 of shape [2, 3, 4]; expected a positive stride"},
      {"no data", [](Tensor& t) { t.tensor.data = nullptr; }, wrong,
       "DLPack tensor without data (null) of shape [2, 3, 4]"},
      {"too long", [](Tensor& t) { t.shape = {INT64_MAX / 4 + 1}; }, wrong, "beyond 2^63 bytes"},
      {"too far",
       [](Tensor& t) {
         t.strides = {INT64_MAX, INT64_MAX, 1};
       },
       wrong, "beyond 2^63 bytes"},
      {"offset", [](Tensor& t) { t.tensor.byte_offset = ~uint64_t{0}; }, wrong,
       "DLPack tensor at byte offset 18446744073709551615; expected less than 2^63"},
  };
  for (const Refused& row : rows) {
    SCOPED_TRACE(row.name);
    Tensor made;
    row.change(made);
    const Result<ConstView> view = const_view_from_dlpack(made.get(), row.flags);
    ASSERT_FALSE(view.ok());
    EXPECT_EQ(view.error().code, row.code);
    EXPECT_NE(view.error().message.find(row.error), std::string::npos) << view.error().message;
  }
  Tensor made;
  made.get();
  made.tensor.ndim = -1;
  EXPECT_FALSE(view_from_dlpack(made.tensor).ok());
  made.tensor.ndim = 2;
  made.tensor.shape = nullptr;
  EXPECT_EQ(view_from_dlpack(made.tensor).error().message,
            "DLPack tensor without a shape (null); expected 2 extents");
}

TEST(Dlpack, ViewsThatItCannotShow) {
  std::vector<std::byte> bytes(64);
  View view(bytes.data(), ElementType::u4, {3}, {1}, 5, 64);
  DlpackDims dims;
  DLTensor tensor = {};
  EXPECT_EQ(to_dlpack(view, dims, tensor).error().message,
            "view at offset 5 of u4, inside a byte; expected a multiple of 2 elements for DLPack");
  view.offset = -1;
  EXPECT_EQ(to_dlpack(view, dims, tensor).error().code, ErrorCode::invalid_argument);
  view.offset = 0;
  view.strides = {1, 1};
  EXPECT_EQ(to_dlpack(view, dims, tensor).error().code, ErrorCode::invalid_argument);
  view.shape = view.strides = Dims::filled(17, 1);
  EXPECT_EQ(to_dlpack(view, dims, tensor).error().code, ErrorCode::invalid_argument);
}

TEST(Dlpack, ManagedTensors) {
  Tensor made(1, 4);
  Managed managed;
  managed.dl_tensor = made.get();
  EXPECT_TRUE(view_from_dlpack(managed).ok());
  managed.flags = dlpack_read_only;
  EXPECT_EQ(view_from_dlpack(managed).error().message,
            "DLPack tensor that is read only; expected one that may be written");
  EXPECT_TRUE(const_view_from_dlpack(managed).ok());
  managed.flags = dlpack_padded;
  EXPECT_EQ(const_view_from_dlpack(managed).error().code, ErrorCode::unsupported);
  managed.flags = 0;
  managed.version = {2, 0};
  EXPECT_EQ(const_view_from_dlpack(managed).error().message,
            "DLPack tensor of version 2.0; expected 1.x");
}

/// Tensors, packed elements among them, are converted to others.
TEST(Dlpack, TensorsAreConverted) {
  Tensor source(1, 4);
  Tensor destination(2, 32);
  const Runtime runtime = *Runtime::create();
  const Status status =
      runtime.convert(*const_view_from_dlpack(source.get()), *view_from_dlpack(destination.get()));
  ASSERT_TRUE(status.ok()) << status.error().message;
  const auto* floats = reinterpret_cast<const float*>(destination.bytes.data());
  for (int64_t i = 0; i < 24; ++i) {
    EXPECT_EQ(floats[i], static_cast<float>(packed_element(source.bytes, 4, i)));
  }
}

}  // namespace
}  // namespace castor
