// SPDX-License-Identifier: Apache-2.0
// Values of requantize on every tier against the interpreter: every byte for hundreds of sets of
// parameters, and what is on the edge for wider sources. `--long`: about thirty times the sets.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/conversions.hpp"
#include "tests/support/long_form.hpp"
#include "tests/support/requantize_cases.hpp"

namespace castor::test {
namespace {

/// A function bound on one tier to dense tensors.
class DenseKernel {
 public:
  DenseKernel(const Runtime& runtime, const FunctionPtr& function, const Dims& shape)
      : shape_(shape), result_(function->type_of(function->results[0]).element) {
    const Result<Kernel> kernel = runtime.compile(function);
    EXPECT_TRUE(kernel.ok());
    std::vector<Dims> shapes;
    for (ValueId id : function->parameters) {
      const Shape& own = function->type_of(id).shape;
      shapes.emplace_back();
      for (const Dim& dim : own) shapes.back().push_back(dim.extent);
    }
    Result<BoundKernel> bound = kernel->bind(shapes);
    EXPECT_TRUE(bound.ok()) << bound.error().to_string();
    EXPECT_EQ(bound->engine(), Engine::jit);
    bound_ = std::move(bound).value();
    bytes_.resize(samples::storage_bytes(result_, count()));
  }

  /// The result's bytes.
  const std::vector<std::byte>& run(const std::vector<ConstView>& inputs) {
    std::fill(bytes_.begin(), bytes_.end(), std::byte{0x5a});
    const std::vector<View> outputs = {{bytes_.data(), result_, shape_, bytes_.size()}};
    const Status status = bound_->run(inputs, outputs);
    EXPECT_TRUE(status.ok()) << status.error().to_string();
    return bytes_;
  }

 private:
  size_t count() const { return static_cast<size_t>(element_count(shape_).value()); }

  Dims shape_;
  ElementType result_;
  std::optional<BoundKernel> bound_;
  std::vector<std::byte> bytes_;
};

struct PackedOperands {
  explicit PackedOperands(const std::vector<Patterns>& operands) {
    for (const Patterns& operand : operands) {
      const auto& packed = bytes.emplace_back(samples::pack(operand.type, operand.elements));
      views.emplace_back(packed.data(), operand.type, operand.shape, packed.size());
    }
  }
  std::vector<std::vector<std::byte>> bytes;
  std::vector<ConstView> views;
};

std::string first_difference(const Patterns& x, const Patterns& expected,
                             std::span<const std::byte> found) {
  for (size_t i = 0; i < expected.elements.size(); ++i) {
    const uint64_t bits = samples::load_pattern(found, expected.type, i);
    if (bits == expected.elements[i]) continue;
    return fmt::format("of 0x{:x}: found 0x{:x}, expected 0x{:x}", x.elements[i], bits,
                       expected.elements[i]);
  }
  return {};
}

/// Compares every tier with the interpreter; kernels with parameters at run time serve many cases.
class Checker {
 public:
  Checker(const RequantizeCase& first, const Dims& shape, bool at_run_time)
      : at_run_time_(at_run_time), function_(requantize_function(first, shape, at_run_time)) {
    for (const auto& [tier, runtime] : tier_runtimes()) {
      kernels_.emplace_back(runtime, function_, shape);
    }
  }

  void check(const RequantizeCase& each, const Patterns& x) {
    std::vector<Patterns> operands = {x};
    if (at_run_time_) {
      for (Patterns& parameter : parameters_of(each)) operands.push_back(std::move(parameter));
    }
    const Patterns expected = interpreted(*function_, operands);
    const PackedOperands packed(operands);
    for (size_t i = 0; i < kernels_.size(); ++i) {
      ASSERT_EQ(first_difference(x, expected, kernels_[i].run(packed.views)), "")
          << name_of(tier_runtimes()[i].first) << " " << each.name()
          << (at_run_time_ ? ", at run time" : "");
    }
  }

 private:
  bool at_run_time_;
  FunctionPtr function_;
  std::vector<DenseKernel> kernels_;
};

class RequantizeValues : public testing::TestWithParam<fuzz::RequantizeCell> {};
class RequantizeBytes : public RequantizeValues {};
class RequantizeEdges : public RequantizeValues {};

ElementType source_of(const fuzz::RequantizeCell& form) {
  return form.from ? info(*form.from).container : ElementType::f32;
}

TEST_P(RequantizeBytes, AllOfThem) {
  const int sets = long_form() ? 10000 : 300;
  const int sets_in_types = sets / 10;
  fuzz::Random random(1 + number_of(GetParam()));
  const Patterns x{ElementType::i8, {256}, samples::all_patterns(ElementType::i8)};
  RequantizeCase each = draw_case(random, GetParam());
  Checker checker(each, x.shape, true);
  for (int i = 0; i < sets; ++i) {
    ASSERT_NO_FATAL_FAILURE(checker.check(each, x));
    if (i < sets_in_types) {
      ASSERT_NO_FATAL_FAILURE(Checker(each, x.shape, false).check(each, x));
    }
    each = draw_case(random, GetParam());
  }
}

/// A set for each row, one method for all of them.
TEST_P(RequantizeBytes, RowsOfTheirOwn) {
  const int64_t rows = long_form() ? 1500 : 150;
  fuzz::Random random(1000 + number_of(GetParam()));
  const fuzz::RequantizeCell& form = GetParam();
  const auto axis = [](const std::optional<QuantizedFormat>& format) {
    return format && info(*format).is_asymmetric ? 0 : Quantization::per_tensor;
  };
  Patterns x{ElementType::i8, {rows, 256}, {}};
  for (int64_t row = 0; row < rows; ++row) {
    for (uint64_t bits : samples::all_patterns(ElementType::i8)) x.elements.push_back(bits);
  }
  for (int round = 0; round < 2; ++round) {
    const RequantizeCase each = draw_case(random, form, axis(form.from), axis(form.to), rows);
    for (bool at_run_time : {false, true}) {
      ASSERT_NO_FATAL_FAILURE(Checker(each, x.shape, at_run_time).check(each, x));
    }
  }
}

TEST_P(RequantizeEdges, OfWiderSources) {
  const int sets = long_form() ? 5000 : 150;
  fuzz::Random random(2000 + number_of(GetParam()));
  std::optional<Checker> checker;
  for (int i = 0; i < sets; ++i) {
    const RequantizeCase each = draw_case(random, GetParam());
    Patterns x = row_of(source_of(GetParam()), edge_elements(random, each));
    if (!checker) checker.emplace(each, x.shape, true);
    ASSERT_NO_FATAL_FAILURE(checker->check(each, x));
    if (i % 10 == 0) {
      ASSERT_NO_FATAL_FAILURE(Checker(each, x.shape, false).check(each, x));
    }
  }
}

/// Differences of 32 bits, whose products the library cuts down before it rounds, for ratios from
/// 2^-34 to 2^16: powers of two and their neighbours, and the elements from which on results
/// saturate.
class RequantizeAccumulators : public testing::TestWithParam<QuantizedFormat> {};

TEST_P(RequantizeAccumulators, LoseTheSameBits) {
  const auto side = [](QuantizedFormat format, int32_t scale, int32_t frac,
                       int32_t zero_point) -> QuantizationPtr {
    return std::make_shared<Quantization>(
        Quantization{.format = format,
                     .axis = Quantization::per_tensor,
                     .scale = std::vector<int32_t>{scale},
                     .frac = std::vector<int32_t>{frac},
                     .zero_point = std::vector<int32_t>{zero_point}});
  };
  constexpr std::array<std::pair<int32_t, int32_t>, 5> scales = {
      {{1, 1}, {32767, 16384}, {16384, 32767}, {32767, 32749}, {21845, 26214}}};
  constexpr std::array<std::pair<int32_t, int32_t>, 7> zero_points = {
      {{0, 0}, {1, -1}, {-17, 20}, {32767, 32767}, {-32768, 32767}, {32767, -32768}, {-5, -32768}}};
  fuzz::Random random(3);
  std::optional<Checker> checker;
  for (const auto& [from_scale, to_scale] : scales) {
    for (int more = -16; more <= 34; ++more) {
      for (const auto& [from_zero, to_zero] : zero_points) {
        const RequantizeCase each = {side(QuantizedFormat::sa32, from_scale, 20 + more, from_zero),
                                     side(GetParam(), to_scale, 20, to_zero),
                                     {.arithmetic = RequantizeArithmetic::embarc}};
        std::vector<uint64_t> elements = edge_elements(random, each);
        for (int bit = 0; bit <= 32; ++bit) {
          for (int64_t beside = -2; beside <= 2; ++beside) {
            for (int64_t sign : {-1, 1}) {
              const int64_t x = from_zero + sign * (int64_t{1} << bit) + beside;
              elements.push_back(static_cast<uint32_t>(x));
            }
          }
        }
        constexpr int64_t count = 1024;
        while (elements.size() < count) elements.push_back(random.next() & 0xFFFFFFFF);
        ASSERT_EQ(elements.size(), count);
        const Patterns x{ElementType::i32, {count}, elements};
        if (!checker) checker.emplace(each, x.shape, true);
        ASSERT_NO_FATAL_FAILURE(checker->check(each, x));
        ASSERT_NO_FATAL_FAILURE(Checker(each, x.shape, false).check(each, x));
      }
    }
  }
}

std::string name_of_form(const testing::TestParamInfo<fuzz::RequantizeCell>& row) {
  std::string name;
  for (char c : describe(row.param)) {
    if (std::isalnum(c) || c == '_') name += c;
    if (c == '>') name += "_to_";
    if (c == ',') name += '_';
  }
  return name;
}

using enum QuantizedFormat;
INSTANTIATE_TEST_SUITE_P(To, RequantizeAccumulators, testing::Values(sa8, sa32),
                         [](const auto& row) { return std::string(castor::info(row.param).name); });
INSTANTIATE_TEST_SUITE_P(From, RequantizeBytes,
                         testing::ValuesIn(requantize_forms_from({fx8, sa8})), name_of_form);
INSTANTIATE_TEST_SUITE_P(From, RequantizeEdges,
                         testing::ValuesIn(requantize_forms_from({std::nullopt, fx16, sa32})),
                         name_of_form);

}  // namespace
}  // namespace castor::test
