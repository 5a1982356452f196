// SPDX-License-Identifier: Apache-2.0
// Packed input (nchw4c planes) against a loop over the definition: on every tier, for all blocks of
// random geometries, between pages that nobody may touch.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "jit/memory/code_memory.hpp"
#include "runtime/conv/dense.hpp"
#include "tests/support/kernel_code.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::detail {
namespace {

jit::PackInput im2col(int stride, int rows, int columns, int dilation) {
  return {.layout = jit::PackedLayout::im2col,
          .column_stride = stride,
          .filter_rows = rows,
          .filter_columns = columns,
          .dilation = dilation};
}

TEST(PackInput, CodeBelongsToTheTier) {
  const jit::PackInput specs[] = {{},
                                  {.column_stride = 2},
                                  {.layout = jit::PackedLayout::columns4, .column_stride = 2},
                                  im2col(2, 9, 3, 1),
                                  im2col(2, 21, 7, 1),
                                  im2col(4, 28, 1, 1),
                                  im2col(1, 1, 17, 3),
                                  im2col(1, 29, 3, 1),  // too many rows
                                  im2col(4, 3, 5, 1),   // more than 64 bytes
                                  im2col(1, 3, 3, 25)};
  for (const jit::Tier tier : test::all_tiers) {
    const jit::Target target{tier};
    int codes = 0;
    for (const jit::PackInput& spec : specs) {
      if (!fits(spec, target)) continue;
      const size_t limit = spec.layout == jit::PackedLayout::im2col ? 4096 : 1024;
      test::check_kernel_code([&] { return emit_kernel(spec, target); }, target, "packer",
                              {.bytes = limit});
      ++codes;
    }
    const int expected = tier < jit::Tier::avx512_vnni ? 0 : tier < jit::Tier::avx512_vbmi ? 2 : 7;
    EXPECT_EQ(codes, expected) << name_of(tier);
  }
}

/// What the nchw4c planes of one block must hold.
class Definition {
 public:
  Definition(const jit::DensePlan& plan, const PlaneInput& input, const BlockPlace& place)
      : plan_(plan), input_(input), place_(place) {}

  /// The first k group that differs, as text; nothing where all are right.
  std::string mistake_in(const uint32_t* planes) const {
    const int64_t rows = place_.block.rows + plan_.planes()->row_phases.max_shift;
    const int64_t columns = place_.block.columns + plan_.planes()->column_phases.max_shift;
    for (int64_t plane = 0; plane < plan_.slices * plan_.k_groups * plan_.planes()->stride_phases();
         ++plane) {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = 0; column < columns; ++column) {
          const auto [expected, bits] = dword(plane, row, column);
          const uint32_t found =
              planes[plane * plan_.planes()->plane_size + row * plan_.planes()->pitch + column] &
              bits;
          if (found == expected) continue;
          return "plane " + std::to_string(plane) + " row " + std::to_string(row) + " column " +
                 std::to_string(column) + " is " + std::to_string(found) + ", expected " +
                 std::to_string(expected);
        }
      }
    }
    return "";
  }

 private:
  struct Expected {
    uint32_t value = 0;
    uint32_t bits = 0;  ///< bits of channels that exist
  };

  Expected dword(int64_t plane, int64_t row, int64_t column) const {
    const auto column_phases = static_cast<int64_t>(plan_.planes()->column_phases.phases.size());
    const auto column_phase = static_cast<size_t>(plane % column_phases);
    const auto row_phase =
        static_cast<size_t>(plane % plan_.planes()->stride_phases() / column_phases);
    const int64_t part = plane / plan_.planes()->stride_phases() % plan_.k_groups;
    const int64_t slice = plane / plan_.planes()->stride_phases() / plan_.k_groups;
    std::vector<int64_t> position = outer_positions(slice);
    position.push_back((place_.row + row) * plan_.rows.stride +
                       plan_.planes()->row_phases.phases[row_phase] - plan_.rows.pad_begin);
    position.push_back((place_.column + column) * plan_.columns.stride +
                       plan_.planes()->column_phases.phases[column_phase] -
                       plan_.columns.pad_begin);
    if (plan_.planes()->layout == jit::PackedLayout::im2col) return dword_of_taps(part, position);
    const bool of_columns = plan_.planes()->layout == jit::PackedLayout::columns4;
    Expected expected;
    const int held = jit::channels_of_k_group(plan_.engine);
    for (int i = 0; i < held; ++i) {
      const int64_t channel = of_columns ? part : part * held + i;
      if (channel >= plan_.geometry.group_channels()) break;
      const uint32_t all = held == 4 ? 0xff : 0xffff;
      const int shift = i * 32 / held;
      expected.value |= (value(channel, position) & all) << shift;
      expected.bits |= all << shift;
      position.back() += of_columns;
    }
    return expected;
  }

  /// `first` is the position of the window's first tap.
  Expected dword_of_taps(int64_t part, const std::vector<int64_t>& first) const {
    Expected expected;
    const int64_t in_channel = plan_.rows.kernel * plan_.columns.kernel;
    for (int64_t i = 0; i < 4 && 4 * part + i < plan_.geometry.group_channels() * in_channel; ++i) {
      const int64_t tap = 4 * part + i;
      std::vector<int64_t> position = first;
      position[position.size() - 2] +=
          tap % in_channel / plan_.columns.kernel * plan_.rows.dilation;
      position.back() += tap % plan_.columns.kernel * plan_.columns.dilation;
      expected.value |= value(tap / in_channel, position) << (8 * i);
      expected.bits |= 0xffu << (8 * i);
    }
    return expected;
  }

  std::vector<int64_t> outer_positions(int64_t slice) const {
    const std::vector<ConvolutionAxis>& axes = plan_.geometry.axes;
    std::vector<int64_t> positions;
    int64_t output = place_.outer;
    for (size_t i = axes.size() > 2 ? axes.size() - 2 : 0; i-- > 0;) {
      positions.insert(positions.begin(), output % axes[i].output * axes[i].stride -
                                              axes[i].pad_begin +
                                              slice % axes[i].kernel * axes[i].dilation);
      output /= axes[i].output;
      slice /= axes[i].kernel;
    }
    return positions;
  }

  /// As the kernel multiplies it: with bytes signed ones plus 128; with words less the zero point.
  uint32_t value(int64_t channel, const std::vector<int64_t>& position) const {
    const ConvolutionGeometry& geometry = plan_.geometry;
    const bool nhwc = geometry.layout == ConvolutionLayout::nhwc;
    int64_t pixel = 0;
    int64_t pixels = 1;
    const size_t first = position.size() - geometry.axes.size();  // a row that is no axis
    int32_t number = input_.zero_point;
    bool is_inside = first == 0 || position[0] == 0;
    for (size_t i = 0; i < geometry.axes.size(); ++i) {
      const int64_t at = position[first + i];
      is_inside = is_inside && at >= 0 && at < geometry.axes[i].input;
      pixel = pixel * geometry.axes[i].input + at;
      pixels *= geometry.axes[i].input;
    }
    const int64_t of_all = place_.group * geometry.group_channels() + channel;
    if (is_inside) {
      const std::byte byte =
          input_.x[nhwc ? (place_.image * pixels + pixel) * geometry.channels + of_all
                        : (place_.image * geometry.channels + of_all) * pixels + pixel];
      number = input_.is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
    }
    const bool bytes = multiplies_bytes(plan_.engine);
    return static_cast<uint32_t>(bytes ? number + (input_.is_signed ? 128 : 0)
                                       : number - input_.zero_point);
  }

  const jit::DensePlan& plan_;
  const PlaneInput& input_;
  const BlockPlace& place_;
};

class PackedInput : public testing::Test {
 protected:
  int64_t draw(int64_t min, int64_t max) {
    return min + static_cast<int64_t>(random_() % static_cast<uint64_t>(max - min + 1));
  }
  bool percent(int64_t chance) { return draw(1, 100) <= chance; }

  ConvolutionGeometry draw_geometry() {
    constexpr int64_t max_bytes = 30'000;
    for (;;) {
      ConvolutionOptions options = {.group = percent(20) ? draw(2, 3) : 1};
      if (percent(15)) options.layout = ConvolutionLayout::nhwc;
      const int64_t channels = percent(50) ? draw(1, 5) : draw(1, 20);
      const int64_t axes = percent(70) ? 2 : draw(1, 4);
      Dims spatial;
      Dims w = {options.group, channels};
      const int64_t max_stride = percent(85) ? 2 : 5;
      const bool is_plain = percent(20);
      for (int64_t axis = 0; axis < axes; ++axis) {
        const int64_t kernel = is_plain ? 1 : draw(1, 4);
        const int64_t dilation = percent(80) ? 1 : draw(1, 7);
        spatial.push_back((kernel - 1) * dilation + draw(axis + 2 < axes ? 1 : 0, 40));
        if (axis + 2 < axes) spatial[static_cast<int>(axis)] = (kernel - 1) * dilation + draw(1, 3);
        w.push_back(kernel);
        options.dilations.push_back(dilation);
        options.strides.push_back(is_plain ? 1 : draw(1, max_stride));
        options.pads.push_back(is_plain || percent(40) ? 0 : draw(0, 4));
      }
      for (int64_t axis = 0; axis < axes; ++axis) {
        options.pads.push_back(is_plain || percent(40) ? 0 : draw(0, 4));
      }
      Dims x = {draw(1, 2)};
      if (options.layout == ConvolutionLayout::nchw) x.push_back(options.group * channels);
      for (const int64_t extent : spatial) x.push_back(extent);
      if (options.layout == ConvolutionLayout::nhwc) x.push_back(options.group * channels);
      if (element_count(x).value() > max_bytes || element_count(x).value() == 0) continue;
      const Operation operation{.op = OpKind::conv_integer, .attributes = attributes_of(options)};
      const auto geometry = convolution_geometry(operation, x, w, nullptr, nullptr);
      if (geometry.ok() && element_count(geometry->output_extents()).value_or(0) > 0)
        return *geometry;
    }
  }

  /// A plan with nchw4c planes, at times of smaller blocks.
  jit::DensePlan draw_plan(const ConvolutionGeometry& geometry, const jit::Target& target) {
    std::vector<jit::DensePlan> plans = jit::possible_plans({geometry}, target);
    std::ranges::shuffle(plans, random_);
    for (jit::DensePlan& plan : plans) {
      if (plan.planes() == nullptr) continue;
      if (percent(40)) plan.block.rows = draw(1, plan.block.rows);
      ++plans_[plan.planes()->layout];
      return plan;
    }
    ADD_FAILURE() << "no plan with nchw4c planes";
    return {};
  }

  std::string mistake_of(const jit::DensePlan& plan, const jit::Target& target) {
    int64_t elements = plan.geometry.batch * plan.geometry.channels;
    for (const ConvolutionAxis& axis : plan.geometry.axes) elements *= axis.input;
    const auto bytes = static_cast<size_t>(elements);
    std::byte* x = percent(60) ? input_.at_end(bytes) : input_.at_begin();
    for (size_t i = 0; i < bytes; ++i) x[i] = static_cast<std::byte>(draw(0, 255));
    PlaneInput input = {.x = x, .is_signed = percent(50)};
    input.zero_point = static_cast<int32_t>(input.is_signed ? draw(-128, 127) : draw(0, 255));
    const auto code = find_input_packer(plan, target, cache_);
    if (!code.ok()) return code.error().message;
    by_code_ += *code != nullptr;
    const auto count = [](int64_t all, int64_t part) { return (all + part - 1) / part; };
    BlockPlace place;
    for (place.image = 0; place.image < plan.geometry.batch; ++place.image) {
      place.group = draw(0, plan.geometry.groups - 1);
      place.outer = draw(0, plan.outer_outputs - 1);
      for (int64_t row = 0; row < count(plan.rows.output, plan.block.rows); ++row) {
        for (int64_t column = 0; column < count(plan.columns.output, plan.block.columns);
             ++column) {
          place.row = row * plan.block.rows;
          place.column = column * plan.block.columns;
          place.block = {std::min(plan.block.rows, plan.rows.output - place.row),
                         std::min(plan.block.columns, plan.columns.output - place.column)};
          const std::string mistake = mistake_of_block(plan, code->get(), input, place);
          if (!mistake.empty()) return mistake;
        }
      }
    }
    return "";
  }

  std::string mistake_of_block(const jit::DensePlan& plan, const KernelCode<jit::PackInput>* code,
                               const PlaneInput& input, const BlockPlace& place) {
    const auto bytes =
        static_cast<size_t>(4 * plan.slices * plan.k_groups * plan.planes()->stride_phases() *
                            plan.planes()->plane_size);
    if (bytes > max_plane_bytes) return "";
    std::byte* planes = planes_.at_end(bytes);
    const Definition definition(plan, input, place);
    RowVectors vectors;
    for (int time = 0; time < 2; ++time) {  // the second one may use what the first one kept
      planes_.fill(poison);
      pack_input(plan, code, input, place, planes, vectors);
      const std::string mistake = definition.mistake_in(reinterpret_cast<const uint32_t*>(planes));
      if (!mistake.empty()) return mistake;
      if (!planes_.is_filled_but({planes, bytes}, poison)) return "written elsewhere";
    }
    return "";
  }

  static constexpr std::byte poison{0xa5};
  static constexpr size_t max_plane_bytes = size_t{1} << 20;
  std::mt19937_64 random_{61};
  test::GuardedPages input_{size_t{32} << 10};
  test::GuardedPages planes_{max_plane_bytes};
  jit::CodeMemory memory_;
  CodeCache cache_{memory_, jit::SystemCalls::real(), size_t{1} << 20};
  int by_code_ = 0;
  std::map<jit::PackedLayout, int> plans_;
};

std::string name_of(const ConvolutionGeometry& geometry) {
  std::string name =
      std::to_string(geometry.groups) + " groups of " + std::to_string(geometry.group_channels());
  for (const ConvolutionAxis& axis : geometry.axes) {
    name += ", " + std::to_string(axis.input) + " kernel " + std::to_string(axis.kernel) +
            " stride " + std::to_string(axis.stride) + " dilation " +
            std::to_string(axis.dilation) + " pads " + std::to_string(axis.pad_begin) + " " +
            std::to_string(axis.pad_end);
  }
  return name;
}

/// Rows of more vectors than a table of them has.
TEST_F(PackedInput, OfWindowsOfWideRows) {
  const ConvolutionOptions options = {.pads = {1, 2, 1, 0}};
  const Operation operation{.op = OpKind::conv_integer, .attributes = attributes_of(options)};
  const auto geometry =
      convolution_geometry(operation, {1, 1, 3, 4200}, {2, 1, 3, 3}, nullptr, nullptr);
  ASSERT_TRUE(geometry.ok()) << geometry.error().message;
  for (const jit::Tier tier : test::all_tiers) {
    if (!jit::host().runs(tier)) continue;
    const jit::Target target{tier};
    int plans = 0;
    for (const jit::DensePlan& plan : jit::possible_plans({*geometry}, target)) {
      if (plan.planes() == nullptr) continue;
      if (plan.planes()->layout != jit::PackedLayout::im2col) continue;
      ASSERT_GT(plan.block.columns, 4096);
      EXPECT_EQ(mistake_of(plan, target), "");
      ++plans;
    }
    EXPECT_EQ(plans > 0, fits(im2col(1, 3, 3, 1), target)) << jit::name_of(tier);
  }
}

TEST_F(PackedInput, AreAsDefined) {
  constexpr int cases = 300;
  for (const jit::Tier tier : test::all_tiers) {
    if (!jit::host().runs(tier)) continue;
    const jit::Target target{tier};
    by_code_ = 0;
    for (int i = 0; i < cases; ++i) {
      const ConvolutionGeometry geometry = draw_geometry();
      const jit::DensePlan plan = draw_plan(geometry, target);
      ASSERT_EQ(mistake_of(plan, target), "") << jit::name_of(tier) << ": " << name_of(geometry);
    }
    EXPECT_EQ(by_code_ > 0, fits(jit::PackInput(), target)) << jit::name_of(tier);
  }
  EXPECT_EQ(plans_.size(), jit::host().runs(jit::Tier::avx512_vbmi) ? 3u : 2u);
}

}  // namespace
}  // namespace castor::detail
