// SPDX-License-Identifier: Apache-2.0
// Models of the explorer's page for the tests of it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ir/text/text.hpp"
#include "tools/explorer/model.hpp"

namespace castor::test {

/// The model of one function, on all tiers.
inline tools::explorer::Model model_of(const std::string& text,
                                       jit::Core core = jit::Core::generic) {
  const Result<FunctionPtr> function = parse_function(text);
  EXPECT_TRUE(function.ok());
  const FunctionPtr functions[] = {*function};
  auto model = tools::explorer::explore("f.castor", functions, jit::Tier::avx512_vbmi, core);
  EXPECT_TRUE(model.ok()) << (model ? "" : model.error().to_string());
  return std::move(model).value();
}

}  // namespace castor::test
