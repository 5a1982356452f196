// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/matmul_case.hpp"

#include <fmt/format.h>

#include <random>

#include "bench/cases/convolution_case.hpp"
#include "ir/builder.hpp"

namespace castor::bench {

namespace {

constexpr uint32_t b_seed = 12;
constexpr uint32_t zero_point_seed = 13;

constexpr int64_t row_counts[] = {1, 8, 64, 128, 512};

struct Layer {
  int64_t depth;
  int64_t columns;
};
constexpr Layer layers[] = {{768, 768},   {768, 3072},  {3072, 768}, {1024, 1024},
                            {1024, 4096}, {4096, 1024}, {4096, 4096}};

std::string_view suffix_of(MatmulVariant variant) {
  constexpr std::string_view suffixes[] = {"", "/runtime_b", "/transposed_b", "/row_zero_points",
                                           "/requantize"};
  return suffixes[static_cast<size_t>(variant)];
}

ValueId constant_of(FunctionBuilder& builder, const std::vector<float>& values, bool by_row) {
  Shape shape = {Dim(values.size())};
  if (by_row) shape.push_back(1);
  return builder.constant({ElementType::f32, shape}, std::as_bytes(std::span(values)));
}

ValueId with_epilogue(FunctionBuilder& builder, const MatmulCase& each,
                      const MatmulWeights& weights, ValueId y) {
  if (each.variant != MatmulVariant::requantize) return y;
  ValueId value = builder.convert(y, ElementType::f32);
  value = builder.binary(OpKind::mul, value, constant_of(builder, weights.row_scales, true));
  value = builder.binary(OpKind::mul, value, constant_of(builder, weights.column_scales, false));
  value = builder.binary(OpKind::add, value, constant_of(builder, weights.biases, false));
  return builder.convert(value, ElementType::u8,
                         {.overflow = Overflow::saturate, .rounding = Rounding::nearest_even});
}

}  // namespace

std::string MatmulCase::name() const {
  return fmt::format("MatMulInteger/{}x{}x{}/{}{}{}", rows, depth, columns, name_of(a), name_of(b),
                     suffix_of(variant));
}

bool MatmulCase::has_constant_b() const {
  return variant != MatmulVariant::runtime_b && variant != MatmulVariant::transposed_b;
}

ElementType MatmulCase::y() const {
  return variant == MatmulVariant::requantize ? ElementType::u8 : ElementType::i32;
}

double MatmulCase::products() const {
  return static_cast<double>(rows) * static_cast<double>(depth) * static_cast<double>(columns);
}

std::vector<MatmulCase> matmul_cases() {
  using enum ElementType;
  std::vector<MatmulCase> cases;
  for (const Layer& layer : layers) {
    for (const int64_t rows : row_counts) {
      for (const ElementType a : {u8, i8}) {
        for (const ElementType b : {i8, u8}) {
          cases.push_back({rows, layer.depth, layer.columns, a, b});
        }
      }
      for (const MatmulVariant variant :
           {MatmulVariant::runtime_b, MatmulVariant::transposed_b, MatmulVariant::row_zero_points,
            MatmulVariant::requantize}) {
        cases.push_back({rows, layer.depth, layer.columns, u8, i8, variant});
      }
    }
  }
  return cases;
}

MatmulWeights make_weights(const MatmulCase& each) {
  const auto rows = static_cast<size_t>(each.rows);
  const auto columns = static_cast<size_t>(each.columns);
  MatmulWeights made;
  made.b.resize(static_cast<size_t>(each.depth) * columns);
  made.zero_points.resize(columns);
  fill_with_patterns(made.b, b_seed);
  if (each.has_b_zero_points()) fill_with_patterns(made.zero_points, zero_point_seed);
  std::mt19937 random(1);
  const auto draw = [&](float min, float max) {
    return min + (max - min) * static_cast<float>(random() >> 8) * 0x1p-24F;
  };
  for (size_t m = 0; m < rows; ++m) made.row_scales.push_back(draw(1e-3F, 2e-3F));
  for (size_t n = 0; n < columns; ++n) {
    made.column_scales.push_back(draw(1e-2F, 2e-2F));
    made.biases.push_back(draw(50.0F, 150.0F));
  }
  return made;
}

Result<FunctionPtr> matmul_function(const MatmulCase& each, const MatmulWeights& weights) {
  FunctionBuilder builder("product");
  const ValueId a = builder.parameter("a", {each.a, {each.rows, each.depth}});
  const TensorType b_type = {each.b, {each.depth, each.columns}};
  const ValueId b =
      each.has_constant_b() ? builder.constant(b_type, weights.b) : builder.parameter("b", b_type);
  const std::byte zero_point[] = {static_cast<std::byte>(each.a_zero_point())};
  const ValueId a_zero = each.has_row_zero_points() ? builder.parameter("z", {each.a, {each.rows}})
                                                    : builder.constant({each.a, {}}, zero_point);
  const ValueId b_zero = each.has_b_zero_points()
                             ? builder.constant({each.b, {each.columns}}, weights.zero_points)
                             : no_value;
  const ValueId y = builder.matmul_integer(a, b, a_zero, b_zero);
  builder.result(with_epilogue(builder, each, weights, y));
  return builder.finish();
}

}  // namespace castor::bench
