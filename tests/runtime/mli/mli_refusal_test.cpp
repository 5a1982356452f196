// SPDX-License-Identifier: Apache-2.0
// mli_hlp_convert_tensor where memory is refused: its status says so, nothing is written, and the
// next call has all that it needs.
#include <gtest/gtest.h>

#include <array>

#include "castor/mli.h"
#include "tests/support/counting_allocator.hpp"

namespace castor::test {
namespace {

constexpr int8_t untouched = 99;
constexpr int32_t max_stride = 10;

/// Two elements of sa8, `stride` apart, with a scale of their own.
class TwoElements {
 public:
  TwoElements(int8_t first, int8_t second, int32_t stride, int16_t scale) : stride_(stride) {
    elements_.fill(untouched);
    elements_[0] = first;
    elements_[static_cast<size_t>(stride)] = second;
    tensor_.data.capacity = static_cast<uint32_t>(elements_.size());
    tensor_.data.mem.pi8 = elements_.data();
    tensor_.rank = 2;
    tensor_.shape[0] = 2;
    tensor_.shape[1] = 1;
    tensor_.mem_stride[0] = stride;
    tensor_.mem_stride[1] = 1;
    tensor_.el_type = MLI_EL_SA_8;
    tensor_.el_params.sa.dim = -1;
    tensor_.el_params.sa.scale.mem.i16 = scale;
    tensor_.el_params.sa.scale_frac_bits.mem.i8 = 4;
  }
  TwoElements(const TwoElements&) = delete;
  TwoElements& operator=(const TwoElements&) = delete;

  mli_tensor* tensor() { return &tensor_; }
  std::array<int8_t, 2> values() const {
    return {elements_[0], elements_[static_cast<size_t>(stride_)]};
  }

 private:
  std::array<int8_t, max_stride + 1> elements_ = {};
  mli_tensor tensor_ = {};
  int32_t stride_;
};

/// The library's own state is made by the first calls, a kernel by the first of each form.
TEST(MliRefusal, EveryAllocationMayFail) {
  long refused = 0;
  for (int32_t stride = 1; stride <= max_stride; ++stride) {
    SCOPED_TRACE(stride);
    TwoElements source(10, -20, 1, 2);
    TwoElements destination(untouched, untouched, stride, 4);
    mli_status status = MLI_STATUS_NOT_SUPPORTED;
    for (long count = 0; status != MLI_STATUS_OK; ++count) {
      ASSERT_LT(count, 5000);
      bool failed = false;
      {
        const AllocationsFailAfter failing(count);
        status = mli_hlp_convert_tensor(source.tensor(), destination.tensor());
        failed = allocation_failed;
      }
      if (status == MLI_STATUS_OK) break;
      ASSERT_EQ(status, MLI_STATUS_NOT_SUPPORTED);
      ASSERT_TRUE(failed);
      ASSERT_EQ(destination.values(), (std::array<int8_t, 2>{untouched, untouched}));
      ++refused;
    }
    EXPECT_EQ(destination.values(), (std::array<int8_t, 2>{5, -10}));
  }
  EXPECT_GT(refused, max_stride * 10);
}

/// A known form takes no memory.
TEST(MliRefusal, KnownFormsNeedNone) {
  TwoElements source(10, -20, 3, 2);
  TwoElements destination(untouched, untouched, 2, 4);
  ASSERT_EQ(mli_hlp_convert_tensor(source.tensor(), destination.tensor()), MLI_STATUS_OK);
  TwoElements again(untouched, untouched, 2, 4);
  const AllocationsFailAfter failing(0);
  EXPECT_EQ(mli_hlp_convert_tensor(source.tensor(), again.tensor()), MLI_STATUS_OK);
  EXPECT_EQ(again.values(), destination.values());
}

}  // namespace
}  // namespace castor::test
