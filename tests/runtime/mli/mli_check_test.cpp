// SPDX-License-Identifier: Apache-2.0
// The checks of embARC MLI tensors: every condition by itself, on either side, and which of two
// decides.
#include "runtime/mli/check.hpp"

#include <gtest/gtest.h>

#include "tests/support/mli_faults.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::mli {
namespace {

using namespace test::mli;

struct Pair {
  mli_tensor source = per_axis_tensor(0);
  mli_tensor destination = per_axis_tensor(512);

  mli_status check(Accepted accepted = Accepted::all) const {
    return check_conversion(&source, &destination, accepted);
  }
};

TEST(MliCheck, TensorsWithoutFaultPass) {
  EXPECT_EQ(Pair().check(), MLI_STATUS_OK);
  EXPECT_EQ(Pair().check(Accepted::integers), MLI_STATUS_OK);
}

TEST(MliCheck, NullTensorsAreBad) {
  const Pair pair;
  EXPECT_EQ(check_conversion(nullptr, &pair.destination, Accepted::all), MLI_STATUS_BAD_TENSOR);
  EXPECT_EQ(check_conversion(&pair.source, nullptr, Accepted::all), MLI_STATUS_BAD_TENSOR);
  EXPECT_EQ(check_conversion(nullptr, nullptr, Accepted::all), MLI_STATUS_BAD_TENSOR);
}

TEST(MliCheck, EachFaultOfATensorHasItsStatusOnEitherSide) {
  for (const TensorRow& row : tensor_rows) {
    Pair of_source;
    row.spoil(of_source.source);
    EXPECT_EQ(of_source.check(), row.status) << "source: " << row.name;
    Pair of_destination;
    row.spoil(of_destination.destination);
    EXPECT_EQ(of_destination.check(), row.status) << "destination: " << row.name;
  }
}

TEST(MliCheck, OfTwoFaultsOfATensorTheEarlierDecides) {
  for (const TensorRow& first : tensor_rows) {
    for (const TensorRow& second : tensor_rows) {
      if (first.stage >= second.stage) continue;
      Pair pair;
      second.spoil(pair.source);
      first.spoil(pair.source);
      EXPECT_EQ(pair.check(), first.status) << first.name << ", " << second.name;
    }
  }
}

TEST(MliCheck, FaultsOfTheSourceComeFirst) {
  for (const TensorRow& first : tensor_rows) {
    for (const TensorRow& second : tensor_rows) {
      Pair pair;
      first.spoil(pair.source);
      second.spoil(pair.destination);
      EXPECT_EQ(pair.check(), first.status) << first.name << ", " << second.name;
    }
    Pair pair;
    first.spoil(pair.source);
    EXPECT_EQ(check_conversion(&pair.source, nullptr, Accepted::all), first.status) << first.name;
  }
}

TEST(MliCheck, EachFaultOfAPairHasItsStatus) {
  for (const PairRow& row : pair_rows) {
    for (Accepted accepted : {Accepted::all, Accepted::integers}) {
      Pair pair;
      row.spoil(pair.source, pair.destination);
      EXPECT_EQ(pair.check(accepted), row.status) << row.name;
    }
  }
}

TEST(MliCheck, OfTwoFaultsOfAPairTheEarlierDecides) {
  for (const PairRow& first : pair_rows) {
    for (const PairRow& second : pair_rows) {
      if (first.stage >= second.stage) continue;
      Pair pair;
      second.spoil(pair.source, pair.destination);
      first.spoil(pair.source, pair.destination);
      EXPECT_EQ(pair.check(), first.status) << first.name << ", " << second.name;
    }
  }
}

TEST(MliCheck, FaultsOfATensorComeBeforeThoseOfThePair) {
  for (const TensorRow& first : tensor_rows) {
    for (const PairRow& second : pair_rows) {
      Pair pair;
      second.spoil(pair.source, pair.destination);
      first.spoil(pair.destination);
      const mli_status alone = check_tensor(&pair.destination);
      if (alone == MLI_STATUS_OK) continue;  // hidden: a fault beyond a smaller rank
      EXPECT_EQ(pair.check(), alone) << first.name << ", " << second.name;
    }
  }
}

TEST(MliCheck, OnlyIntegersAreTakenWhereAsked) {
  for (bool source_is_float : {true, false}) {
    Pair pair;
    retype(source_is_float ? pair.source : pair.destination, MLI_EL_FP_32, 4);
    EXPECT_EQ(pair.check(), MLI_STATUS_OK);
    EXPECT_EQ(pair.check(Accepted::integers), MLI_STATUS_TYPE_MISMATCH);
    widen_innermost_stride(source_is_float ? pair.destination : pair.source);
    EXPECT_EQ(pair.check(Accepted::integers), MLI_STATUS_INCOMPATEBLE_TENSORS);
  }
}

TEST(MliCheck, EveryPairOfTypesPassesAndInPlaceWhereEquallyWide) {
  for (const Type& from : types) {
    for (const Type& to : types) {
      Pair pair;
      pair.source.data.mem.pi8 = memory.data() + 256;
      retype(pair.source, from.type, from.bytes);
      retype(pair.destination, to.type, to.bytes);
      EXPECT_EQ(pair.check(), MLI_STATUS_OK) << from.type << ' ' << to.type;
      place(pair.destination, pair.source, 0);
      EXPECT_EQ(pair.check(),
                from.bytes == to.bytes ? MLI_STATUS_OK : MLI_STATUS_INCOMPATEBLE_TENSORS)
          << from.type << ' ' << to.type;
      place(pair.destination, pair.source, 24 * from.bytes);
      EXPECT_EQ(pair.check(), MLI_STATUS_OK) << "after " << from.type;
      place(pair.destination, pair.source, -24 * static_cast<ptrdiff_t>(to.bytes));
      EXPECT_EQ(pair.check(), MLI_STATUS_OK) << "before " << to.type;
      --pair.source.data.capacity;
      EXPECT_EQ(pair.check(), MLI_STATUS_NOT_ENGH_MEM) << from.type;
    }
  }
}

TEST(MliCheck, PerTensorAndPerAxisGoTogether) {
  Pair pair;
  quantize_per_tensor(pair.source);
  EXPECT_EQ(pair.check(), MLI_STATUS_OK);
  quantize_per_tensor(pair.destination);
  EXPECT_EQ(pair.check(), MLI_STATUS_OK);
  pair.source = per_axis_tensor(0);
  EXPECT_EQ(pair.check(), MLI_STATUS_OK);
}

TEST(MliCheck, OnlyAsymmetricTensorsHaveAxes) {
  Pair pair;
  pair.source.el_params.sa.dim = 0;
  pair.source.el_type = MLI_EL_FX_8;  // the parameters stay where they are
  EXPECT_EQ(pair.check(), MLI_STATUS_OK);
}

TEST(MliCheck, EntriesBeyondTheRankMeanNothing) {
  Pair pair;
  pair.source.shape[3] = UINT32_MAX;
  pair.destination.mem_stride[3] = -1;
  EXPECT_EQ(pair.check(), MLI_STATUS_OK);
}

/// Both tensors' halves by turns; wider elements and other strides, too.
TEST(MliCheck, TensorsMayInterleave) {
  Pair pair;
  pair.source.mem_stride[0] = pair.destination.mem_stride[0] = 24;
  pair.source.data.capacity = pair.destination.data.capacity = 36;
  for (ptrdiff_t distance = -40; distance <= 40; ++distance) {
    pair.source.data.mem.pi8 = memory.data() + 256;
    place(pair.destination, pair.source, distance);
    const bool apart = distance == -12 || distance == 12 || distance < -35 || distance > 35;
    EXPECT_EQ(pair.check(),
              apart || distance == 0 ? MLI_STATUS_OK : MLI_STATUS_INCOMPATEBLE_TENSORS)
        << distance;
  }
  retype(pair.destination, MLI_EL_SA_32, 4);
  pair.destination.mem_stride[0] = 60;  // 240 bytes, with two rows of 24 and 36 bytes free
  pair.destination.data.capacity = 288;
  pair.source.mem_stride[0] = 120;
  pair.source.data.capacity = 132;
  place(pair.destination, pair.source, -48);
  EXPECT_EQ(pair.check(), MLI_STATUS_OK);
  place(pair.destination, pair.source, -47);
  EXPECT_EQ(pair.check(), MLI_STATUS_INCOMPATEBLE_TENSORS);
}

void make_scalar(mli_tensor& tensor, const Type& type) {
  retype(tensor, type.type, type.bytes);
  tensor.rank = 0;
  tensor.shape[0] = 0;
  tensor.mem_stride[0] = 0;
  tensor.data.mem.pi8 = nullptr;  // a value of 0
  tensor.data.capacity = 0;
}

TEST(MliCheck, ScalarsOfCapacity0HoldTheirValue) {
  for (const Type& from : types) {
    for (const Type& to : types) {
      Pair pair;
      make_scalar(pair.source, from);
      make_scalar(pair.destination, to);
      EXPECT_EQ(pair.check(), MLI_STATUS_OK) << from.type << ' ' << to.type;
      EXPECT_EQ(check_conversion(&pair.source, &pair.source, Accepted::all), MLI_STATUS_OK);
    }
  }
}

TEST(MliCheck, ScalarsOfAnyOtherCapacityPointToTheirValue) {
  for (const Type& from : types) {
    for (const Type& to : types) {
      Pair pair;
      make_scalar(pair.source, from);
      make_scalar(pair.destination, to);
      pair.source.data.capacity = from.bytes;
      EXPECT_EQ(pair.check(), MLI_STATUS_BAD_TENSOR) << "null";
      pair.source.data.mem.pi8 = memory.data() + 1;
      EXPECT_EQ(pair.check(), MLI_STATUS_OK);
      pair.source.data.capacity = largest;
      EXPECT_EQ(pair.check(), MLI_STATUS_OK);
      for (uint32_t less = 1; less < from.bytes; ++less) {
        pair.source.data.capacity = less;
        EXPECT_EQ(pair.check(), MLI_STATUS_NOT_ENGH_MEM) << from.type << ' ' << less;
      }
      pair.source.data.capacity = from.bytes;  // the destination's own value
      pair.source.data.mem.pi8 = reinterpret_cast<int8_t*>(&pair.destination.data.mem);
      const bool equally_wide = from.bytes == to.bytes;
      EXPECT_EQ(pair.check(), equally_wide ? MLI_STATUS_OK : MLI_STATUS_INCOMPATEBLE_TENSORS);
      pair.source.data.mem.pi8 += to.bytes;
      EXPECT_EQ(pair.check(), MLI_STATUS_OK);
      pair.source.data.mem.pi8 -= 1;
      const bool in_place = to.bytes == 1 && from.bytes == 1;
      EXPECT_EQ(pair.check(), in_place ? MLI_STATUS_OK : MLI_STATUS_INCOMPATEBLE_TENSORS);
    }
  }
}

TEST(MliCheck, ScalarsHaveNoAxis) {
  Pair pair;
  pair.source.rank = 0;
  pair.source.el_params.sa.dim = 0;
  EXPECT_EQ(pair.check(), MLI_STATUS_BAD_TENSOR);
}

TEST(MliCheck, TensorsMayBeAsLargeAsCapacitiesAllow) {
  Pair pair;
  for (mli_tensor* tensor : {&pair.source, &pair.destination}) {
    retype(*tensor, MLI_EL_FX_8, 1);
    tensor->rank = 1;
    tensor->shape[0] = tensor->data.capacity = largest;
    tensor->mem_stride[0] = 1;
  }
  place(pair.destination, pair.source, 0);  // nothing is read
  EXPECT_EQ(pair.check(), MLI_STATUS_OK);
}

TEST(MliCheck, ParametersAreReadWithinTheirCapacityOnly) {
  castor::test::GuardedPages pages(64);
  Pair pair;
  auto* values = reinterpret_cast<int16_t*>(pages.at_end(6));
  std::memcpy(values, scales.data(), 6);
  pair.source.el_params.sa.scale.mem.pi16 = values;
  EXPECT_EQ(pair.check(), MLI_STATUS_OK);
  pair.source.el_params.sa.dim = 2;  // four slices
  EXPECT_EQ(pair.check(), MLI_STATUS_BAD_TENSOR);
}

TEST(MliCheck, ParametersNeedNotBeAligned) {
  Pair pair;
  std::memcpy(memory.data() + 257, scales.data(), 6);
  pair.source.el_params.sa.scale.mem.pi8 = memory.data() + 257;
  EXPECT_EQ(pair.check(), MLI_STATUS_OK);
  memory[257] = memory[258] = 0;
  EXPECT_EQ(pair.check(), MLI_STATUS_BAD_TENSOR);
}

}  // namespace
}  // namespace castor::mli
