// SPDX-License-Identifier: Apache-2.0
// Facts that planners and methods of requantization rely on hold; faults in them are found.
#include "tools/prove/facts/fact.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/support/long_form.hpp"
#include "tools/prove/facts/corrections.hpp"
#include "tools/prove/facts/magnitudes.hpp"
#include "tools/prove/facts/quotients.hpp"
#include "tools/prove/facts/requantize_spec.hpp"
#include "tools/prove/facts/requantize_symbolic.hpp"
#include "tools/prove/facts/tables.hpp"

namespace castor::prove {
namespace {

using jit::LaneOp;
using jit::LaneProgram;

FactEffort effort() {
  FactEffort effort;
  effort.samples = test::long_form() ? 100 : 1;
  effort.is_long = test::long_form();
  return effort;
}

TEST(Facts, Hold) {
  for (const Fact& fact : all_facts()) {
    const FactVerdict verdict = fact.decide(effort());
    const bool is_decided = verdict.status == Status::proved || verdict.status == Status::exhausted;
    EXPECT_TRUE(is_decided) << fact.name << ": " << verdict.detail;
  }
}

TEST(Facts, NamesAreDistinct) {
  std::vector<std::string> names;
  for (const Fact& fact : all_facts()) names.push_back(fact.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

using CheckMethod = FactVerdict (*)(const FactEffort&, const RequantizeTamper&);

/// A program in which something is done to the first operation of a kind, if there is one.
RequantizeTamper with_first(LaneOp op, const std::function<void(jit::LaneInst&)>& change) {
  return {.program = [op, change](LaneProgram& program) {
    const auto found = std::ranges::find(program.code, op, &jit::LaneInst::op);
    if (found != program.code.end()) change(*found);
  }};
}

RequantizeTamper with_op(LaneOp op, LaneOp instead) {
  return with_first(op, [instead](jit::LaneInst& inst) { inst.op = instead; });
}

RequantizeTamper with_store(jit::Narrowing narrowing) {
  return with_first(LaneOp::store,
                    [narrowing](jit::LaneInst& inst) { inst.narrowing = narrowing; });
}

/// A program whose constant of those bits is another.
RequantizeTamper with_constant(uint64_t bits, uint64_t instead) {
  return {.program = [bits, instead](LaneProgram& program) {
    for (jit::LaneInst& inst : program.code) {
      if (inst.op == LaneOp::constant && static_cast<uint64_t>(inst.imm) == bits) {
        inst.imm = static_cast<int64_t>(instead);
      }
    }
  }};
}

RequantizeTamper with_slice_constant(size_t index) {
  return {.constants = [index](jit::SliceConstants& constants) { constants[index] ^= 1; }};
}

RequantizeTamper with_bound(double factor) { return {.bound_of_errors = factor}; }

struct Fault {
  const char* name;
  CheckMethod check;
  RequantizeTamper tamper;
};

TEST(Facts, FaultsInMethodsAreFound) {
  const Fault faults[] = {
      {"a line that is cut", check_embarc_lines, with_store(jit::Narrowing::truncate)},
      {"a line with a product of halves left out", check_embarc_lines,
       with_op(LaneOp::dot_i16_pairs, LaneOp::mul_high_u16)},
      {"a line that is shifted by zeros", check_exact_lines,
       with_op(LaneOp::shift_right_signed_by, LaneOp::shift_right_by)},
      {"errors counted as a tenth less", check_rounded_floats, with_bound(0.9)},
      {"errors of f64 counted as half", check_rounded_doubles, with_bound(0.5)},
      {"errors of two parts counted as a tenth less", check_split_floats, with_bound(0.9)},
      {"a sum of rounded floats", check_rounded_floats,
       with_op(LaneOp::float_sub_product, LaneOp::float_mul)},
      {"a lower part of a factor that is too small", check_float_quotients, with_bound(0.999)},
      {"a quotient's bound", check_float_quotients, with_constant(0x49800000, 0x47800000)},
      {"a lift as large as the distance", check_doubles, with_bound(2.0)},
      {"no lift", check_doubles, with_bound(0.125)},
      {"a half of the library's", check_embarc_from_float, with_constant(0x3f000000, 0x3f000001)},
      {"a difference that does not saturate", check_embarc_to_float,
       with_op(LaneOp::max_signed, LaneOp::min_signed)},
      {"a quotient for a product", check_to_float, with_op(LaneOp::float_mul, LaneOp::float_div)},
      {"a sum for a product", check_to_float_through_double,
       with_op(LaneOp::float_mul, LaneOp::float_add)},
      {"halves of an i32 product", check_i32_products,
       with_op(LaneOp::mul_high_u16, LaneOp::bit_and)},
      {"the sum of an i32 product", check_saturating_i32_products,
       with_op(LaneOp::shift_right_signed_by, LaneOp::shift_right_by)},
      {"one bit fewer that is cut off", check_i32_accumulators,
       with_constant(0xFFFE0000, 0xFFFF0000)},
      {"an inverse of a unit that is half of it", check_cut_accumulators,
       with_constant(0x7FE0000000000000, 0x7FD0000000000000)},
      {"a constant of a slice", check_constants, with_slice_constant(1)},
  };
  for (const Fault& fault : faults) {
    EXPECT_EQ(fault.check(FactEffort{}, fault.tamper).status, Status::wrong) << fault.name;
  }
}

TEST(Facts, FaultsInSlicesAreFound) {
  FactEffort more;
  more.samples = 4;
  for (const jit::RequantizeMethod* method : all_methods()) {
    const FactVerdict store =
        check_slices(*method, more, {.constants = [](jit::SliceConstants& constants) {
          for (uint64_t& constant : constants) constant ^= uint64_t{1} << 20;
        }});
    EXPECT_EQ(store.status, Status::wrong) << method->name();
  }
}

TEST(Facts, TheLibrarysMultiplierIsTheOneOfItsText) {
  // 3 / 7: 3 has 29 redundant sign bits and 7, of 16, has 12; 3 * 2^17 / 7 = 56173, which has 15 of
  // 32: halved, rounded half up.
  const LibraryMultiplier multiplier = library_multiplier(3, 7, true);
  EXPECT_EQ(multiplier.scale, 28087);
  EXPECT_EQ(multiplier.shift, 16);
}

bool finds(const std::function<void(FactCheck&)>& run) {
  const FactEffort any;
  FactCheck check(any);
  run(check);
  return !check.goes_on();
}

TEST(Facts, FaultsInCorrectionsAreFound) {
  using enum jit::ProductEngine;
  EXPECT_TRUE(finds(
      [](FactCheck& check) { check_correction(u8_i8_dot, true, false, check, {.x_flip = 0x7f}); }));
  EXPECT_TRUE(finds([](FactCheck& check) {
    check_correction(i16_pairs, true, true, check, {.count_offset = 1});
  }));
  EXPECT_TRUE(finds([](FactCheck& check) { check_words(check, {.sum_bits = 1 << 23}); }));
  EXPECT_FALSE(finds([](FactCheck& check) { check_correction(u8_i8_dot, true, false, check); }));
}

TEST(Facts, FaultsInTablesAreFound) {
  const Conversion narrow{ElementType::bf16, ElementType::f8e4m3, {}};
  const Conversion wide{ElementType::f32, ElementType::f8e4m3, {}};
  const TableTamper faults[] = {
      [](jit::ThresholdTable& table) { table.buckets.entries[40] ^= 0x0001; },
      [](jit::ThresholdTable& table) { table.buckets.entries[40] ^= 0x0100; },
      [](jit::ThresholdTable& table) { table.base += 16; },
      [](jit::ThresholdTable& table) { table.max -= 16; },
      [](jit::ThresholdTable& table) { table.nan_code ^= 1; }};
  for (const TableTamper& fault : faults) {
    const bool in_16_bits = finds([&](FactCheck& check) { check_table(narrow, check, fault); });
    const bool in_32_bits =
        finds([&](FactCheck& check) { check_rounded_to_odd(wide, check, fault); });
    EXPECT_EQ(in_16_bits, in_32_bits);
    EXPECT_TRUE(in_16_bits || &fault == std::end(faults) - 1);  // a NaN may be one by its magnitude
  }
}

TEST(Facts, FaultsInBoundsAreFound) {
  const std::array<MagnitudeRange, 2> ranges = {{{0.5, 300}, {0x1p-3, 6}}};
  for (const OpKind op : {OpKind::add, OpKind::mul, OpKind::div}) {
    const ElementwiseOp f32{.op = op, .type = ElementType::f32};
    const double bound = planned_bound(f32, ranges);
    const auto check_with = [&](double factor) {
      return finds([&](FactCheck& check) { check_bound(f32, ranges, bound * factor, check); });
    };
    EXPECT_FALSE(check_with(1)) << info(op).name;
    EXPECT_TRUE(check_with(1 - 0x1p-18)) << info(op).name;
  }
}

TEST(Facts, FaultsInQuotientsAreFound) {
  EXPECT_TRUE(finds([](FactCheck& check) { check_reciprocals(0, check); }));
  EXPECT_TRUE(finds([](FactCheck& check) { check_two_steps(-48, check); }));
  EXPECT_TRUE(finds([](FactCheck& check) { check_bounded_quotients(-24, check); }));
}

}  // namespace
}  // namespace castor::prove
