// SPDX-License-Identifier: Apache-2.0
// mli_hlp_convert_tensor on the cases of tests/data/mli, through nothing but castor/mli.h: strides
// as the cases have them, arithmetic and rounding chosen for each; in place; kernels that are known
// already; calls from several threads.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "castor/mli.h"
#include "runtime/mli/kernels.hpp"
#include "tests/support/mli_cases.hpp"

namespace castor::test {
namespace {

mli_element_type type_of(const std::string& format) {
  if (format == "fx8") return MLI_EL_FX_8;
  if (format == "fx16") return MLI_EL_FX_16;
  if (format == "sa8") return MLI_EL_SA_8;
  return format == "sa32" ? MLI_EL_SA_32 : MLI_EL_FP_32;
}

/// One tensor with the memory that it points to; what is not an element is 0xa5.
class OwnedTensor {
 public:
  OwnedTensor(const MliSide& side, const Dims& shape, const std::vector<uint64_t>& elements)
      : shape_(shape), strides_(side.strides) {
    tensor_.el_type = type_of(side.format);
    tensor_.rank = static_cast<uint32_t>(shape.rank());
    size_t last = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      tensor_.shape[axis] = static_cast<uint32_t>(shape[axis]);
      tensor_.mem_stride[axis] = static_cast<int32_t>(side.strides[axis]);
      last += static_cast<size_t>((shape[axis] - 1) * side.strides[axis]);
    }
    bytes_ = mli_hlp_tensor_element_size(&tensor_);
    memory_.assign((last + 1) * bytes_, std::byte{0xa5});
    if (shape.rank() > 0) {  // else the value is in the structure
      tensor_.data.capacity = static_cast<uint32_t>(memory_.size());
      tensor_.data.mem.pi8 = reinterpret_cast<int8_t*>(memory_.data());
    }
    set_parameters(side);
    if (!elements.empty()) set(elements);
  }
  OwnedTensor(const OwnedTensor&) = delete;
  OwnedTensor& operator=(const OwnedTensor&) = delete;

  mli_tensor& tensor() { return tensor_; }

  std::vector<uint64_t> elements() {
    std::vector<uint64_t> found;
    for_each([&](std::byte* at) {
      uint64_t bits = 0;
      std::memcpy(&bits, at, bytes_);
      found.push_back(bits);
    });
    return found;
  }
  /// Whether no byte between the elements has changed; the elements are gone then.
  bool is_clean() {
    for_each([&](std::byte* at) { std::memset(at, 0xa5, bytes_); });
    return std::ranges::all_of(memory_, [](std::byte byte) { return byte == std::byte{0xa5}; });
  }

 private:
  template <class Visit>
  void for_each(const Visit& visit) {
    if (shape_.rank() == 0) return visit(reinterpret_cast<std::byte*>(&tensor_.data.mem));
    Dims at = Dims::filled(shape_.rank(), 0);
    int axis = 0;
    do {
      int64_t offset = 0;
      for (int i = 0; i < at.rank(); ++i) offset += at[i] * strides_[i];
      visit(memory_.data() + static_cast<size_t>(offset) * bytes_);
      axis = at.rank() - 1;
      while (axis >= 0 && ++at[axis] == shape_[axis]) at[axis--] = 0;
    } while (axis >= 0);
  }

  void set(const std::vector<uint64_t>& elements) {
    size_t next = 0;
    for_each([&](std::byte* at) { std::memcpy(at, &elements[next++], bytes_); });
  }

  void set_parameters(const MliSide& side) {
    if (tensor_.el_type == MLI_EL_FP_32) return;
    if (tensor_.el_type == MLI_EL_FX_8 || tensor_.el_type == MLI_EL_FX_16) {
      tensor_.el_params.fx.frac_bits = static_cast<int8_t>(side.frac[0]);
      return;
    }
    auto& sa = tensor_.el_params.sa;
    sa.dim = side.axis;
    scale_.assign(side.scale.begin(), side.scale.end());
    frac_.assign(side.frac.begin(), side.frac.end());
    zero_point_.assign(side.zero_point.begin(), side.zero_point.end());
    if (side.axis < 0) {
      sa.scale.mem.i16 = scale_[0];
      sa.scale_frac_bits.mem.i8 = frac_[0];
      sa.zero_point.mem.i16 = zero_point_[0];
      return;
    }
    const auto slices = static_cast<uint32_t>(scale_.size());
    sa.scale = {.capacity = 2 * slices, .mem = {.pi16 = scale_.data()}};
    sa.scale_frac_bits = {.capacity = slices, .mem = {.pi8 = frac_.data()}};
    sa.zero_point = {.capacity = 2 * slices, .mem = {.pi16 = zero_point_.data()}};
  }

  Dims shape_;
  Dims strides_;
  size_t bytes_ = 0;
  std::vector<std::byte> memory_;
  std::vector<int16_t> scale_;
  std::vector<int8_t> frac_;
  std::vector<int16_t> zero_point_;
  mli_tensor tensor_ = {};
};

void choose(const MliCase& each) {
  ASSERT_EQ(castor_mli_set_arithmetic(each.is_exact ? CASTOR_MLI_EXACT : CASTOR_MLI_EMBARC,
                                      each.is_half_up ? CASTOR_MLI_UP : CASTOR_MLI_CONVERGENT),
            MLI_STATUS_OK);
}

bool same_bits(const MliCase& each, const std::vector<uint64_t>& found) {
  const auto is_nan = [](uint64_t bits) { return (bits & 0x7fffffff) > 0x7f800000; };
  const bool is_float = each.destination.format == "fp32";
  return std::equal(
      found.begin(), found.end(), each.output.begin(), each.output.end(),
      [&](uint64_t a, uint64_t b) { return a == b || (is_float && is_nan(a) && is_nan(b)); });
}

constexpr const char* files[] = {"mli_up.jsonl", "mli_convergent.jsonl", "mli_oracle.jsonl"};

TEST(MliConvert, GivesTheLibrarysBits) {
  for (const char* file : files) {
    for (const MliCase& each : mli_cases(file)) {
      choose(each);
      OwnedTensor source(each.source, each.shape, each.input);
      OwnedTensor destination(each.destination, each.shape, {});
      ASSERT_EQ(mli_hlp_convert_tensor(&source.tensor(), &destination.tensor()), MLI_STATUS_OK)
          << each.name;
      EXPECT_TRUE(same_bits(each, destination.elements())) << each.name;
      EXPECT_EQ(source.elements(), each.input) << each.name;
      if (each.shape.rank() > 0) {
        EXPECT_TRUE(destination.is_clean()) << each.name;
      }
    }
  }
}

TEST(MliConvert, InPlaceWhereElementsAreEquallyWide) {
  int converted = 0;
  for (const char* file : files) {
    for (const MliCase& each : mli_cases(file)) {
      MliSide same = each.destination;
      same.strides = each.source.strides;
      OwnedTensor source(each.source, each.shape, each.input);
      OwnedTensor destination(same, each.shape, {});
      if (each.shape.rank() == 0) continue;
      const bool equally_wide = mli_hlp_tensor_element_size(&source.tensor()) ==
                                mli_hlp_tensor_element_size(&destination.tensor());
      choose(each);
      destination.tensor().data = source.tensor().data;
      const mli_status status = mli_hlp_convert_tensor(&source.tensor(), &destination.tensor());
      if (!equally_wide) {
        EXPECT_NE(status, MLI_STATUS_OK) << each.name;
        EXPECT_EQ(source.elements(), each.input) << each.name;
        continue;
      }
      ASSERT_EQ(status, MLI_STATUS_OK) << each.name;
      EXPECT_TRUE(same_bits(each, source.elements())) << each.name;
      ++converted;
    }
  }
  EXPECT_GT(converted, 200);
}

/// The destination's rows between the source's.
TEST(MliConvert, InterleavedTensors) {
  int converted = 0;
  for (const char* file : files) {
    for (const MliCase& each : mli_cases(file)) {
      if (each.shape.rank() < 2 || each.source.format == "fp32" ||
          each.destination.format == "fp32") {
        continue;
      }
      OwnedTensor source(each.source, each.shape, each.input);
      OwnedTensor destination(each.destination, each.shape, {});
      mli_tensor from = source.tensor();
      mli_tensor to = destination.tensor();
      const auto columns = static_cast<size_t>(from.shape[from.rank - 1]);
      const size_t in_bytes = mli_hlp_tensor_element_size(&from);
      const size_t out_bytes = mli_hlp_tensor_element_size(&to);
      const size_t in_row = (columns * in_bytes + out_bytes - 1) / out_bytes * out_bytes;
      const size_t row = (in_row + columns * out_bytes + 3) / 4 * 4;
      const size_t rows = each.input.size() / columns;
      std::vector<std::byte> memory(rows * row, std::byte{0xa5});
      const auto describe = [&](mli_tensor& tensor, size_t bytes, size_t begin) {
        tensor.data.mem.pi8 = reinterpret_cast<int8_t*>(memory.data() + begin);
        tensor.data.capacity = static_cast<uint32_t>(memory.size() - begin);
        mli_hlp_set_tensor_mem_strides(&tensor);
        for (uint32_t axis = 0; axis + 1 < tensor.rank; ++axis) {
          tensor.mem_stride[axis] = static_cast<int32_t>(
              static_cast<size_t>(tensor.mem_stride[axis]) / columns * row / bytes);
        }
      };
      describe(from, in_bytes, 0);
      describe(to, out_bytes, in_row);
      for (size_t i = 0; i < each.input.size(); ++i) {
        std::memcpy(&memory[i / columns * row + i % columns * in_bytes], &each.input[i], in_bytes);
      }
      std::vector<std::byte> expected = memory;
      for (size_t i = 0; i < each.output.size(); ++i) {
        std::memcpy(&expected[i / columns * row + in_row + i % columns * out_bytes],
                    &each.output[i], out_bytes);
      }
      choose(each);
      ASSERT_EQ(mli_hlp_convert_tensor(&from, &to), MLI_STATUS_OK) << each.name;
      EXPECT_EQ(memory, expected) << each.name;
      ++converted;
    }
  }
  EXPECT_GT(converted, 200);
}

/// At rank 0 the capacity tells whether the value is in the structure.
TEST(MliConvert, ScalarsInsideAndThroughPointers) {
  for (const bool source_points : {false, true}) {
    for (const bool destination_points : {false, true}) {
      int16_t number = 384;
      float real = 7;
      mli_tensor source = {};
      source.el_type = MLI_EL_FX_16;
      source.el_params.fx.frac_bits = 8;
      mli_tensor destination = {};
      destination.el_type = MLI_EL_FP_32;
      if (source_points) {
        source.data = {.capacity = 2, .mem = {.pi16 = &number}};
      } else {
        source.data.mem.i16 = number;
      }
      if (destination_points) destination.data = {.capacity = 9, .mem = {.pf32 = &real}};
      ASSERT_EQ(mli_hlp_convert_tensor(&source, &destination), MLI_STATUS_OK);
      EXPECT_EQ(destination_points ? real : destination.data.mem.f32, 1.5F);
      EXPECT_EQ(real, destination_points ? 1.5F : 7.0F);
      EXPECT_EQ(number, 384);
    }
  }
}

TEST(MliConvert, KnownFormsCompileNothing) {
  const std::vector<MliCase> cases = mli_cases("mli_up.jsonl");
  const auto convert_all = [&] {
    for (const MliCase& each : cases) {
      choose(each);
      OwnedTensor source(each.source, each.shape, each.input);
      OwnedTensor destination(each.destination, each.shape, {});
      ASSERT_EQ(mli_hlp_convert_tensor(&source.tensor(), &destination.tensor()), MLI_STATUS_OK);
    }
  };
  convert_all();
  const mli::KernelStatistics before = mli::ConversionKernels::shared().statistics();
  EXPECT_GT(before.code_compiled, 0u);
  convert_all();
  const mli::KernelStatistics after = mli::ConversionKernels::shared().statistics();
  EXPECT_EQ(after.bound, before.bound);
  EXPECT_EQ(after.code_compiled, before.code_compiled);
}

/// ctest runs this program a second time with a tier that no machine has.
TEST(MliConvert, InterpretsWhereNoCodeCanBeMade) {
  const MliCase each = mli_cases("mli_up.jsonl").front();
  choose(each);
  OwnedTensor source(each.source, each.shape, each.input);
  OwnedTensor destination(each.destination, each.shape, {});
  ASSERT_EQ(mli_hlp_convert_tensor(&source.tensor(), &destination.tensor()), MLI_STATUS_OK);
  const char* tier = std::getenv("CASTOR_ISA");
  const bool has_code = tier == nullptr || std::string_view(tier) != "none";
  EXPECT_EQ(mli::ConversionKernels::shared().statistics().code_compiled > 0, has_code);
}

TEST(MliConvert, ThreadsConvertAtTheSameTime) {
  const std::vector<MliCase> cases = mli_cases("mli_up.jsonl");
  ASSERT_EQ(castor_mli_set_arithmetic(CASTOR_MLI_EMBARC, CASTOR_MLI_UP), MLI_STATUS_OK);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (const MliCase& each : cases) {
        OwnedTensor source(each.source, each.shape, each.input);
        OwnedTensor destination(each.destination, each.shape, {});
        const mli_status status = mli_hlp_convert_tensor(&source.tensor(), &destination.tensor());
        if (status != MLI_STATUS_OK || !same_bits(each, destination.elements())) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(MliConvert, IntegersOnlyRefusesFloats) {
  for (const MliCase& each : mli_cases("mli_up.jsonl")) {
    OwnedTensor source(each.source, each.shape, each.input);
    OwnedTensor destination(each.destination, each.shape, {});
    choose(each);
    const mli_status status = mli_hlp_convert_tensor_safx(&source.tensor(), &destination.tensor());
    const bool has_float = each.source.format == "fp32" || each.destination.format == "fp32";
    EXPECT_EQ(status, has_float ? MLI_STATUS_TYPE_MISMATCH : MLI_STATUS_OK) << each.name;
    if (has_float) {
      EXPECT_TRUE(destination.is_clean()) << each.name;
    } else {
      EXPECT_TRUE(same_bits(each, destination.elements())) << each.name;
    }
  }
}

}  // namespace
}  // namespace castor::test
