// SPDX-License-Identifier: Apache-2.0
// Conversions between types of less than a byte that leave their elements packed: which these are,
// and that several iterations of their loop make what the interpreter makes. Streaming stores of
// theirs are in streamed_functions_test.
#include "jit/emit/packed_loop.hpp"

#include <gtest/gtest.h>

#include "ir/text/text.hpp"
#include "ir/types/storage.hpp"
#include "jit/dump/dump.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/function_case.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::test {
namespace {

std::vector<ElementType> sub_byte_types() {
  std::vector<ElementType> types;
  for (const ElementInfo& row : element_table) {
    if (is_sub_byte(row.type)) types.push_back(row.type);
  }
  return types;
}

/// Whether the interpreter makes of each code the sum, without carries, of what it makes of the
/// code's bits.
bool is_sum_of_bits(const Conversion& conversion) {
  const auto made_of = [&](uint64_t code) {
    return numerics::convert(code, conversion.from, conversion.to, conversion.options);
  };
  for (uint64_t code = 0; code < uint64_t{1} << bits_of(conversion.from); ++code) {
    uint64_t sum = 0;
    for (int bit = 0; bit < bits_of(conversion.from); ++bit) {
      if ((code >> bit & 1) != 0) sum ^= made_of(uint64_t{1} << bit);
    }
    if (sum != made_of(code)) return false;
  }
  return true;
}

std::string dump_of(const Conversion& conversion, Tier tier) {
  const std::string text =
      fmt::format("func @f(%x: {0}[?n]) -> {1}[?n] {{ %y = convert %x : {1} return %y }}",
                  name_of(conversion.from), name_of(conversion.to));
  const FunctionPtr function = parse_function(text).value();
  return jit::dump_nest(*function, {tier}).value();
}

bool has_line(const std::string& dump, const std::string& name) {
  return dump.find("\n  " + name + " ") != std::string::npos;
}

/// Codes of four bits are replaced before their bits are moved.
TEST(PackedLoop, AllSumsOfBitsAreMovedOrCopied) {
  int moved = 0;
  for (const ElementType from : sub_byte_types()) {
    for (const ElementType to : sub_byte_types()) {
      const Conversion conversion{from, to, {}};
      const std::string dump = dump_of(conversion, Tier::avx512_vbmi);
      const bool moves = has_line(dump, "bits");
      const bool copies = has_line(dump, "copy");
      const bool has_tables = bits_of(from) == 4 && bits_of(to) <= 4;
      EXPECT_EQ(moves || copies, has_tables || is_sum_of_bits(conversion))
          << conversion.name() << "\n"
          << dump;
      moved += moves ? 1 : 0;
    }
  }
  EXPECT_GT(moved, 60);
}

/// Whether half a byte has all bits of each element.
bool is_in_halves(ElementType type) {
  for (int element = 0; element < storage_group; ++element) {
    for (int bit = 1; bit < bits_of(type); ++bit) {
      if (storage_bit(type, element, bit) / 4 != storage_bit(type, element, 0) / 4) return false;
    }
  }
  return true;
}

/// Without products of matrices, halves of bytes are looked up: whatever becomes of an element that
/// one half has, sums of bits where it is in two.
TEST(PackedLoop, HalvesOfBytesAreLookedUpElsewhere) {
  for (const Tier tier : {Tier::avx2, Tier::avx512_vnni}) {
    int looked_up = 0;
    for (const ElementType from : sub_byte_types()) {
      for (const ElementType to : sub_byte_types()) {
        const Conversion conversion{from, to, {}};
        const std::string dump = dump_of(conversion, tier);
        const bool is_small = bits_of(from) <= 4 && bits_of(to) <= 4;
        const bool has_tables = is_small && (is_in_halves(from) || is_sum_of_bits(conversion));
        const bool looks_up = has_line(dump, "nibbles");
        EXPECT_EQ(looks_up, has_tables && !has_line(dump, "copy"))
            << name_of(tier) << ", " << conversion.name() << "\n"
            << dump;
        looked_up += looks_up ? 1 : 0;
      }
    }
    EXPECT_GT(looked_up, 100) << name_of(tier);
  }
}

/// One to five iterations of 512 elements, or up to two of 1024 and ten of 256, with what the other
/// loops do after them.
TEST(PackedLoop, ManyIterations) {
  constexpr size_t sizes[] = {1023, 1024, 1032, 1536, 2047, 5 * 512 + 3};
  GuardedPages source(4096);
  GuardedPages destination(4096);
  for (const ElementType from : sub_byte_types()) {
    for (const ElementType to : sub_byte_types()) {
      const Conversion conversion{from, to, {}};
      const ExpectedConversion expected =
          expect(conversion, samples::random_patterns(from, std::end(sizes)[-1], 11));
      for (const auto& [tier, runtime] : elementwise_tier_runtimes()) {
        for (const size_t count : sizes) {
          const size_t in_bytes = samples::storage_bytes(from, count);
          const size_t out_bytes = samples::storage_bytes(to, count);
          std::byte* const in = source.at_end(in_bytes);
          std::byte* const out = destination.at_end(out_bytes);
          std::copy_n(expected.input_bytes.begin(), in_bytes, in);
          destination.fill(std::byte{0xc5});
          const auto extent = static_cast<int64_t>(count);
          ASSERT_TRUE(runtime
                          .convert(ConstView(in, from, {extent}, in_bytes),
                                   View(out, to, {extent}, out_bytes), {})
                          .ok());
          const size_t whole = samples::storage_bytes(to, count / 8 * 8);
          ASSERT_TRUE(std::equal(out, out + whole, expected.output_bytes.begin()))
              << conversion.name() << ", " << name_of(tier) << ", " << count << " elements";
          ASSERT_TRUE(destination.is_filled_but({out, out_bytes}, std::byte{0xc5}));
        }
      }
    }
  }
}

/// x + x moves bits too, and its result may be in x: no block is stored over what a later one
/// reads.
TEST(PackedLoop, InPlace) {
  constexpr int64_t count = 5 * 512 + 8;
  for (const ElementType type : sub_byte_types()) {
    if (!is_integer(type)) continue;
    const FunctionPtr function =
        parse_function(
            fmt::format("func @f(%x: {0}[?n]) -> {0}[?n] {{ %y = add %x, %x return %y }}",
                        name_of(type)))
            .value();
    const std::vector<uint64_t> numbers = samples::random_patterns(type, count, 3);
    std::vector<uint64_t> sums = numbers;
    for (uint64_t& sum : sums) sum = 2 * sum & ((uint64_t{1} << bits_of(type)) - 1);
    for (const auto& [tier, runtime] : elementwise_tier_runtimes()) {
      std::vector<std::byte> bytes = samples::pack(type, numbers);
      const ConstView x(bytes.data(), type, {count}, bytes.size());
      const View y(bytes.data(), type, {count}, bytes.size());
      const Result<BoundKernel> bound = runtime.compile(function)->bind({&x, 1}, {&y, 1});
      ASSERT_TRUE(bound.ok() && bound->run({&x, 1}, {&y, 1}).ok()) << name_of(type);
      ASSERT_EQ(bytes, samples::pack(type, sums)) << name_of(type) << ", " << name_of(tier);
    }
  }
}

/// Some of the bits alone, so that bytes of the result may be none's.
TEST(PackedLoop, SomeBits) {
  for (const auto& [type, bits] : {std::pair{"u3.split", 4},
                                   {"u3.split", 3},
                                   {"u6.split", 0x30},
                                   {"u6", 0x11},
                                   {"u4", 8},
                                   {"u2", 2}}) {
    check_function({fmt::format("func @f(%x: {0}[?n]) -> {0}[?n] {{ %c = constant {1} : {0}[] "
                                "%y = bitwise_and %x, %c return %y }}",
                                type, bits),
                    {{{1545}}}});
  }
}

}  // namespace
}  // namespace castor::test
