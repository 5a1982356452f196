// SPDX-License-Identifier: Apache-2.0
// Elementwise chains after convolutions: their bits are those of the interpreter, on every tier,
// whether kernels apply them or they run slice by slice.
#include "tests/support/epilogue_cases.hpp"

namespace castor::test {
namespace {

/// Elements of a row of y that must fill bytes.
int64_t row_of(const Layer& layer, bool nhwc) {
  const Dims y = layer.output(false);
  const int64_t pixels = element_count(y).value() / y[0] / y[1];
  if (pixels == 1 || (nhwc && y[1] > 1)) return y[1];
  return y[y.rank() - 1];
}

class ConvEpilogueLayers : public testing::TestWithParam<Layer> {};

TEST_P(ConvEpilogueLayers, AgreeWithTheInterpreter) {
  const Layer& layer = GetParam();
  uint64_t seed = 1;
  for (const Chain& chain : epilogue_chains()) {
    for (const Build build : {Build{}, {.nhwc = true}, {.dynamic = true}, {true, true}}) {
      const FunctionCase row = case_of(layer, chain, build);
      check_function(row, ++seed);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST_P(ConvEpilogueLayers, AreFused) {
  const Layer& layer = GetParam();
  for (const Chain& chain : epilogue_chains()) {
    for (const Build build : {Build{}, {.nhwc = true}, {.dynamic = true}, {true, true}}) {
      const FunctionCase row = case_of(layer, chain, build);
      const Result<FunctionPtr> function = parse_function(row.text);
      ASSERT_TRUE(function) << function.error().to_string() << "\n" << row.text;
      std::vector<Dims> shapes;
      for (const Layout& input : row.inputs) shapes.push_back(input.shape);
      const auto bound = tier_runtimes().front().second.compile(*function)->bind(shapes);
      ASSERT_TRUE(bound) << bound.error().to_string();
      const bool has_bytes = row_of(layer, build.nhwc) % chain.aligned == 0;
      if (!chain.is_fused) continue;  // where the image has one column it is
      // Of extents that are unknown nothing says that they are equal.
      if (build.dynamic && chain.results.size() > 1) continue;
      EXPECT_EQ(is_fused(*bound), has_bytes) << row.text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, ConvEpilogueLayers, testing::ValuesIn(epilogue_layers()),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace castor::test
