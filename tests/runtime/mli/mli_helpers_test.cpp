// SPDX-License-Identifier: Apache-2.0
// The helper functions of castor/mli.h that read tensors, fill in strides, or tell about the
// library (parts of tensors: mli_subtensor_test.cpp), and the choice of arithmetic and rounding.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>

#include "tests/support/mli_tensors.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::test::mli {
namespace {

constexpr uint32_t far_away = std::numeric_limits<uint32_t>::max();

TEST(MliHelpers, ElementsAreCountedFromADimensionOn) {
  mli_tensor tensor = per_axis_tensor(0);
  EXPECT_EQ(mli_hlp_count_elem_num(&tensor, 0), 24U);
  EXPECT_EQ(mli_hlp_count_elem_num(&tensor, 1), 12U);
  EXPECT_EQ(mli_hlp_count_elem_num(&tensor, 2), 4U);
  EXPECT_EQ(mli_hlp_count_elem_num(&tensor, 3), 0U);
  EXPECT_EQ(mli_hlp_count_elem_num(&tensor, far_away), 0U);
  tensor.rank = 4;
  tensor.shape[3] = 5;
  EXPECT_EQ(mli_hlp_count_elem_num(&tensor, 0), 120U);
  EXPECT_EQ(mli_hlp_count_elem_num(&tensor, 3), 5U);
  tensor.rank = 5;
  EXPECT_EQ(mli_hlp_count_elem_num(&tensor, 0), 0U);
  EXPECT_EQ(mli_hlp_count_elem_num(nullptr, 0), 0U);
}

TEST(MliHelpers, AScalarIsOneElement) {
  mli_tensor tensor = per_axis_tensor(0);
  tensor.rank = 0;
  EXPECT_EQ(mli_hlp_count_elem_num(&tensor, 0), 1U);
  EXPECT_EQ(mli_hlp_count_elem_num(&tensor, 3), 1U);
  EXPECT_EQ(mli_hlp_count_elem_num(&tensor, far_away), 1U);
}

TEST(MliHelpers, CountsAreModulo32Bits) {
  mli_tensor tensor = per_axis_tensor(0);
  tensor.shape[0] = 3;
  tensor.shape[1] = tensor.shape[2] = uint32_t{1} << 16;
  EXPECT_EQ(mli_hlp_count_elem_num(&tensor, 0), 0U);
  tensor.shape[2] += 1;
  EXPECT_EQ(mli_hlp_count_elem_num(&tensor, 0), uint32_t{3} << 16);
}

TEST(MliHelpers, ElementSizes) {
  mli_tensor tensor = per_axis_tensor(0);
  for (const Type& type : types) {
    tensor.el_type = type.type;
    EXPECT_EQ(mli_hlp_tensor_element_size(&tensor), type.bytes);
  }
  for (uint32_t none : {uint32_t{MLI_EL_FX_4}, uint32_t{MLI_EL_FP_16}, 0U, far_away}) {
    set_type(tensor, none);
    EXPECT_EQ(mli_hlp_tensor_element_size(&tensor), 0U);
  }
  EXPECT_EQ(mli_hlp_tensor_element_size(nullptr), 0U);
}

/// What the three helpers say of a slice.
struct Parameters {
  int32_t scale;
  int32_t shift;
  int32_t zero_offset;
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

Parameters parameters(const mli_tensor* tensor, uint32_t slice) {
  return {mli_hlp_tensor_scale(tensor, slice), mli_hlp_tensor_scale_shift(tensor, slice),
          mli_hlp_tensor_zero_offset(tensor, slice)};
}

constexpr Parameters none = {0, 0, 0};

TEST(MliHelpers, FixedPointAndFloatHaveTheirConstants) {
  mli_tensor tensor = per_axis_tensor(0);
  for (mli_element_type type : {MLI_EL_FX_8, MLI_EL_FX_16}) {
    retype(tensor, type, 2);
    tensor.el_params.fx.frac_bits = -128;
    for (uint32_t slice : {0U, 7U, far_away}) {
      EXPECT_EQ(parameters(&tensor, slice), (Parameters{1, -128, 0}));
    }
  }
  retype(tensor, MLI_EL_FP_32, 4);
  EXPECT_EQ(parameters(&tensor, 0), (Parameters{1, 0, 0}));
  EXPECT_EQ(parameters(&tensor, far_away), (Parameters{1, 0, 0}));
}

TEST(MliHelpers, ParametersOfTheWholeTensor) {
  mli_tensor tensor = per_axis_tensor(0);
  for (mli_element_type type : {MLI_EL_SA_8, MLI_EL_SA_32}) {
    retype(tensor, type, 4);
    tensor.el_params.sa.scale.mem.i16 = 32767;
    tensor.el_params.sa.scale_frac_bits.mem.i8 = 127;
    tensor.el_params.sa.zero_point.mem.i16 = -32768;
    EXPECT_EQ(parameters(&tensor, 0), (Parameters{32767, 127, -32768}));
    EXPECT_EQ(parameters(&tensor, far_away), (Parameters{32767, 127, -32768}));
  }
}

TEST(MliHelpers, ParametersOfASlice) {
  mli_tensor tensor = per_axis_tensor(0);
  scales = {5, 6, 7};
  frac_bits = {-128, 0, 127};
  zero_points = {-32768, 1, 32767};
  EXPECT_EQ(parameters(&tensor, 0), (Parameters{5, -128, -32768}));
  EXPECT_EQ(parameters(&tensor, 1), (Parameters{6, 0, 1}));
  EXPECT_EQ(parameters(&tensor, 2), (Parameters{7, 127, 32767}));
  tensor.el_params.sa.scale.capacity = tensor.el_params.sa.zero_point.capacity = 16;
  tensor.el_params.sa.scale_frac_bits.capacity = 8;  // more than the axis has slices
  scales[3] = zero_points[3] = 1;
  frac_bits[3] = 1;
  EXPECT_EQ(parameters(&tensor, 3), none);
  EXPECT_EQ(parameters(&tensor, far_away), none);
}

TEST(MliHelpers, NothingIsReadThatATensorDoesNotHave) {
  EXPECT_EQ(parameters(nullptr, 0), none);
  mli_tensor tensor = per_axis_tensor(0);
  tensor.el_params.sa.dim = 3;
  EXPECT_EQ(parameters(&tensor, 0), none) << "axis";
  tensor = per_axis_tensor(0);
  tensor.rank = far_away;
  EXPECT_EQ(parameters(&tensor, 0), none) << "rank";
  tensor = per_axis_tensor(0);
  set_type(tensor, far_away);
  EXPECT_EQ(parameters(&tensor, 0), none) << "type";
  tensor = per_axis_tensor(0);
  auto& sa = tensor.el_params.sa;
  sa.scale.mem.pi16 = sa.zero_point.mem.pi16 = nullptr;
  sa.scale_frac_bits.mem.pi8 = nullptr;
  EXPECT_EQ(parameters(&tensor, 0), none) << "null";
}

TEST(MliHelpers, CapacitiesBoundWhatIsRead) {
  GuardedPages pages(64);
  mli_tensor tensor = per_axis_tensor(0);
  auto& sa = tensor.el_params.sa;
  sa.scale.mem.pi16 = sa.zero_point.mem.pi16 = reinterpret_cast<int16_t*>(pages.at_end(4));
  sa.scale.capacity = sa.zero_point.capacity = 5;  // two and a half entries
  sa.scale_frac_bits.mem.pi8 = reinterpret_cast<int8_t*>(pages.at_end(2));
  sa.scale_frac_bits.capacity = 2;
  *sa.scale.mem.pi16 = 1;
  EXPECT_EQ(mli_hlp_tensor_scale(&tensor, 0), 1);
  EXPECT_EQ(parameters(&tensor, 2), none);
}

TEST(MliHelpers, DenseStrides) {
  mli_tensor tensor = per_axis_tensor(0);
  std::fill_n(tensor.mem_stride, 4, 77);
  mli_hlp_set_tensor_mem_strides(&tensor);
  EXPECT_EQ(tensor.mem_stride[0], 12);
  EXPECT_EQ(tensor.mem_stride[1], 4);
  EXPECT_EQ(tensor.mem_stride[2], 1);
  EXPECT_EQ(tensor.mem_stride[3], 77);
  tensor.rank = 4;
  tensor.shape[3] = 5;
  mli_hlp_set_tensor_mem_strides(&tensor);
  EXPECT_EQ(tensor.mem_stride[0], 60);
  EXPECT_EQ(tensor.mem_stride[3], 1);
  tensor.shape[3] = tensor.shape[2] = 0x10001;  // modulo 2^32
  mli_hlp_set_tensor_mem_strides(&tensor);
  EXPECT_EQ(tensor.mem_stride[1], 0x20001);
  for (uint32_t rank : {0U, 5U, far_away}) {
    mli_tensor same = per_axis_tensor(0);
    same.rank = rank;
    const mli_tensor before = same;
    mli_hlp_set_tensor_mem_strides(&same);
    EXPECT_EQ(std::memcmp(&same, &before, sizeof(same)), 0) << rank;
  }
  mli_hlp_set_tensor_mem_strides(nullptr);
}

TEST(MliHelpers, DataPointersOfOneTypeAreCompared) {
  const mli_tensor a = per_axis_tensor(0);
  mli_tensor b = per_axis_tensor(0);
  EXPECT_TRUE(mli_hlp_tensor_data_ptr_cmp(&a, &b));
  EXPECT_FALSE(mli_hlp_tensor_data_ptr_cmp(&a, nullptr));
  EXPECT_FALSE(mli_hlp_tensor_data_ptr_cmp(nullptr, &b));
  b.data.mem.pi8 += 1;
  EXPECT_FALSE(mli_hlp_tensor_data_ptr_cmp(&a, &b));
  b = a;
  b.el_type = MLI_EL_FX_8;
  EXPECT_FALSE(mli_hlp_tensor_data_ptr_cmp(&a, &b));
  b = a;
  b.rank = 0;
  EXPECT_FALSE(mli_hlp_tensor_data_ptr_cmp(&a, &b));
  EXPECT_FALSE(mli_hlp_tensor_data_ptr_cmp(&b, &b));
  b = a;
  set_type(b, far_away);
  EXPECT_FALSE(mli_hlp_tensor_data_ptr_cmp(&b, &b));
}

TEST(MliHelpers, GuardBitsAreThoseOfTheX86Build) {
  EXPECT_EQ(mli_hlp_accu_guard_bits_sa8_sa8(), 16);
  EXPECT_EQ(mli_hlp_accu_guard_bits_fx16_fx16(), 32);
  EXPECT_EQ(mli_hlp_accu_guard_bits_fx16_fx8(), 8);
}

struct Choice {
  castor_mli_arithmetic arithmetic;
  castor_mli_rounding rounding;
  friend bool operator==(const Choice&, const Choice&) = default;
};

Choice chosen() {
  Choice choice = {};
  castor_mli_get_arithmetic(&choice.arithmetic, &choice.rounding);
  return choice;
}

TEST(MliArithmetic, IsChosenForTheProcess) {
  const Choice initial = chosen();
  for (castor_mli_arithmetic arithmetic : {CASTOR_MLI_EXACT, CASTOR_MLI_EMBARC}) {
    for (castor_mli_rounding rounding : {CASTOR_MLI_UP, CASTOR_MLI_CONVERGENT}) {
      EXPECT_EQ(castor_mli_set_arithmetic(arithmetic, rounding), MLI_STATUS_OK);
      EXPECT_EQ(chosen(), (Choice{arithmetic, rounding}));
    }
  }
  castor_mli_set_arithmetic(initial.arithmetic, initial.rounding);
  castor_mli_get_arithmetic(nullptr, nullptr);
}

TEST(MliArithmetic, IsNamedInTheLibrarysWords) {
  const Choice initial = chosen();
  const auto options = [](castor_mli_arithmetic arithmetic, castor_mli_rounding rounding) {
    castor_mli_set_arithmetic(arithmetic, rounding);
    return std::string(mli_hlp_compile_options_string());
  };
  EXPECT_EQ(options(CASTOR_MLI_EMBARC, CASTOR_MLI_UP),
            " MLI_BUILD_REFERENCE=ON ROUND_MODE=UP MLI_DEBUG_MODE=DBG_MODE_RET_CODES");
  EXPECT_EQ(options(CASTOR_MLI_EMBARC, CASTOR_MLI_CONVERGENT),
            " MLI_BUILD_REFERENCE=ON ROUND_MODE=CONVERGENT MLI_DEBUG_MODE=DBG_MODE_RET_CODES");
  EXPECT_EQ(options(CASTOR_MLI_EXACT, CASTOR_MLI_UP),
            " MLI_BUILD_REFERENCE=OFF ROUND_MODE=UP MLI_DEBUG_MODE=DBG_MODE_RET_CODES");
  EXPECT_EQ(options(CASTOR_MLI_EXACT, CASTOR_MLI_CONVERGENT),
            " MLI_BUILD_REFERENCE=OFF ROUND_MODE=CONVERGENT MLI_DEBUG_MODE=DBG_MODE_RET_CODES");
  castor_mli_set_arithmetic(initial.arithmetic, initial.rounding);
}

}  // namespace
}  // namespace castor::test::mli
