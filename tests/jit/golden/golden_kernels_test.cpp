// SPDX-License-Identifier: Apache-2.0
// The digest of the kernels that binding the benchmark's layers and functions makes, on every tier,
// whether the machine has it or not (tests/data/golden/kernels.txt).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bench/cases/convolution_case.hpp"
#include "bench/cases/elementwise_case.hpp"
#include "bench/cases/look_up_case.hpp"
#include "bench/cases/requantize_case.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/kernel_digest.hpp"

namespace castor::test {
namespace {

using tools::RecordedKernel;
using tools::RecordingRuntime;
using tools::RunAtBind;

Result<DigestCase> case_of(const bench::ConvolutionCase& each) {
  const auto function = convolution_function(each, make_weights(each));
  if (!function) return function.error();
  DigestCase made = {std::string(each.layer.name), *function, {each.x_shape()}};
  if (each.variant.runtime_weights) made.shapes.push_back(each.w_shape());
  return made;
}

Result<DigestCase> case_of(const bench::ElementwiseCell& cell) {
  const auto each = bench::ElementwiseCase::read(cell.row);
  if (!each) return each.error();
  const auto extents = cell.extents(*each);
  if (!extents) return extents.error();
  DigestCase made = {cell.row.name, each->function, {}};
  for (const bench::InputShape& input : cell.row.inputs) {
    made.shapes.push_back(extents->of(input.extents));
    made.strides.push_back(strides_of(made.shapes.back(), input.layout));
  }
  made.strides.emplace_back();  // the result's, which is dense
  return made;
}

/// `footprint` in bytes of both tensors.
Result<DigestCase> case_of(const bench::RequantizeCell& cell, size_t footprint) {
  constexpr int64_t granule = 4096;  // whole vectors in each slice, for every type
  const auto& [from, to] = cell.pair();
  const int64_t elements = static_cast<int64_t>(footprint) * 8 / (bits_of(from) + bits_of(to));
  const Dims extents = cell.extents(elements / granule * granule);
  const auto function = cell.function(extents);
  if (!function) return function.error();
  const std::string name = cell.name();
  return DigestCase{name.substr(0, name.rfind('/')), *function, {extents}};
}

/// A constant table has the bytes 0, 1, 2 ..., modulo 251.
Result<DigestCase> case_of(const bench::LookUpCell& cell, size_t footprint) {
  constexpr int64_t granule = 4096;
  const auto& [from, to] = cell.pair();
  const int64_t elements = static_cast<int64_t>(footprint) * 8 / (bits_of(from) + bits_of(to));
  const Dims extents = cell.extents(elements / granule * granule);
  const Dims table = cell.table_extents();
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < *byte_size(to, *element_count(table)); ++i) {
    bytes.push_back(static_cast<std::byte>(i % 251));
  }
  const auto function = cell.function(extents, bytes);
  if (!function) return function.error();
  const std::string name = fmt::format("look_up {} in {}", name_of(from), name_of(to));
  DigestCase made = {name, *function, {extents}};
  if (!cell.is_constant) made.shapes.push_back(table);
  return made;
}

/// Cases one by one, since the weights of all layers take much memory.
class DigestWriter {
 public:
  void add(const Result<DigestCase>& each) {
    ASSERT_TRUE(each.ok()) << each.error().to_string();
    const Status status = digest_.add(*each);
    ASSERT_TRUE(status.ok()) << each->group << ": " << status.error().to_string();
  }
  std::string text() const { return digest_.text(); }

 private:
  KernelDigest digest_;
};

void add_layers(DigestWriter& writer) {
  for (const bench::ConvolutionLayer& layer : bench::convolution_layers()) {
    for (const bench::ConvolutionVariant& variant : convolution_variants(layer)) {
      writer.add(case_of({layer, variant}));
    }
  }
}

/// Rows with their sizes, not sizes with their rows.
void add_elementwise(DigestWriter& writer) {
  std::vector<bench::ElementwiseCell> cells = bench::elementwise_cells();
  std::ranges::stable_sort(cells, {}, [](const auto& cell) { return cell.row.name; });
  for (const bench::ElementwiseCell& cell : cells) writer.add(case_of(cell));
}

void add_look_ups(DigestWriter& writer) {
  for (const bench::LookUpCell& cell : bench::look_up_cells()) {
    for (const bench::Footprint& footprint : {bench::l2_footprint, bench::memory_footprint}) {
      writer.add(case_of(cell, footprint.bytes));
    }
  }
}

/// A pair of formats with its granularities, at both sizes.
void add_requantizations(DigestWriter& writer) {
  std::vector<bench::RequantizeCell> cells = bench::requantize_cells();
  std::ranges::stable_sort(cells, {}, [](const auto& cell) {
    const std::string name = cell.name();
    return name.substr(0, name.rfind('/'));
  });
  for (const bench::RequantizeCell& cell : cells) {
    for (const bench::Footprint& footprint : {bench::l2_footprint, bench::memory_footprint}) {
      writer.add(case_of(cell, footprint.bytes));
    }
  }
}

constexpr const char* digest_head =
    R"(# The kernels that binding the layers and functions of the benchmark makes. A group is a layer
# with all variants, or a function with all sizes. Its first line says for each tier how many codes
# it uses, and a hash of which case uses which. A kernel's line stands in the first group that uses
# it: bytes of code and constants, instructions, spills, a hash of the bytes, its name: its tiers.
# Caches are of 32 KiB and 1 MiB, whatever the machine's are.
)";

TEST(KernelDigest, IsWhatIsGenerated) {
  DigestWriter writer;
  add_layers(writer);
  add_elementwise(writer);
  add_look_ups(writer);
  add_requantizations(writer);
  if (HasFatalFailure()) return;
  expect_golden(golden_folder() / "kernels.txt", digest_head + writer.text());
}

// ---- the runtime that records

/// The names and bytes of what binding makes.
std::vector<std::pair<std::string, std::vector<std::byte>>> recorded(const DigestCase& each,
                                                                     jit::Tier tier,
                                                                     RunAtBind code) {
  std::vector<std::pair<std::string, std::vector<std::byte>>> made;
  const auto kernels =
      RecordingRuntime({tier}, code).bind(each.function, {each.shapes, each.strides});
  EXPECT_TRUE(kernels.ok()) << (kernels ? "" : kernels.error().to_string());
  if (!kernels) return made;
  for (const RecordedKernel& kernel : *kernels) made.emplace_back(kernel.name, kernel.code.bytes);
  return made;
}

/// Codes that do not run choose no others: weights of dense and depthwise layers, byte tables.
TEST(RecordingRuntime, RecordsWhatOrdinaryBindingMakes) {
  std::vector<DigestCase> cases;
  for (const bench::ConvolutionLayer& layer : bench::convolution_layers()) {
    if (layer.products() > 5'000'000) continue;
    for (const bench::ConvolutionVariant& variant : convolution_variants(layer)) {
      cases.push_back(std::move(case_of({layer, variant})).value());
    }
  }
  for (const bench::RequantizeCell& cell : bench::requantize_cells()) {
    cases.push_back(std::move(case_of(cell, bench::l2_footprint.bytes)).value());
  }
  EXPECT_GT(cases.size(), 250u);
  for (const jit::TierInfo& row : jit::tier_table()) {
    if (!jit::host().runs(row.tier)) continue;
    for (const DigestCase& each : cases) {
      const auto expected = recorded(each, row.tier, RunAtBind::runs);
      EXPECT_FALSE(expected.empty()) << each.group;
      EXPECT_EQ(recorded(each, row.tier, RunAtBind::returns), expected)
          << each.group << " on " << row.name;
    }
  }
}

}  // namespace
}  // namespace castor::test
