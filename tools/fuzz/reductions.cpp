// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/reductions.hpp"

#include <algorithm>

#include "ir/numerics/scalar.hpp"
#include "tests/support/samples.hpp"
#include "tools/fuzz/image.hpp"
#include "tools/fuzz/layout.hpp"
#include "tools/fuzz/rewrite.hpp"

namespace castor::fuzz {

namespace {

/// Collects changed copies of a program.
class Reductions {
 public:
  explicit Reductions(const Program& program) : program_(program) {}

  std::vector<Program> take() {
    reduce_results();
    reduce_values();
    reduce_extents();
    reduce_placements();
    reduce_spellings();
    reduce_data();
    reduce_constants();
    return std::move(all_);
  }

 private:
  /// Adds a copy that `change` has changed.
  template <class Change>
  void add(Change change) {
    Program copy = program_;
    change(copy);
    all_.push_back(std::move(copy));
  }

  void reduce_results() {
    for (size_t i = 0; i < program_.results.size() && program_.results.size() > 1; ++i) {
      add([i](Program& p) { remove_result(p, i); });
    }
    for (size_t i = 0; i < program_.results.size(); ++i) {
      const ResultSpec& result = program_.results[i];
      if (result.in_place_of != ResultSpec::nowhere) {
        add([i](Program& p) { p.results[i].in_place_of = ResultSpec::nowhere; });
      }
      if (result.interleaved_with != ResultSpec::nowhere) {
        add([i](Program& p) { separate(p, i); });
      }
      if (result.declares_unknowns) {
        add([i](Program& p) { p.results[i].declares_unknowns = false; });
      }
    }
    if (program_.streams) add([](Program& p) { p.streams = false; });
    if (program_.bad_call.kind != BadCall::Kind::none) add([](Program& p) { p.bad_call = {}; });
  }

  void reduce_values() {
    Program without_dead = program_;
    if (remove_dead(without_dead)) all_.push_back(std::move(without_dead));
    for (size_t value = program_.first_conversion(); value < program_.value_count(); ++value) {
      add([value](Program& p) { bypass(p, value); });
      Program folded = program_;
      if (fold_into_input(folded, value)) all_.push_back(std::move(folded));
    }
  }

  bool has_unknowns(size_t root) const {
    if (root >= program_.inputs.size()) return false;
    const std::vector<AxisSpec>& axes = program_.inputs[root].axes;
    return std::any_of(axes.begin(), axes.end(),
                       [](const AxisSpec& axis) { return axis.kind != AxisSpec::Kind::fixed; });
  }

  void reduce_extents() {
    for (size_t root = 0; root < program_.first_conversion(); ++root) {
      const Dims shape = program_.shape_of(root);
      if (!shape.empty()) add([root](Program& p) { reshape(p, root, {}); });
      if (has_unknowns(root)) add([&](Program& p) { reshape(p, root, shape); });
      for (int axis = 0; axis < shape.rank(); ++axis) {
        add([&](Program& p) { remove_axis(p, root, axis); });
        for (int64_t extent : {int64_t{1}, shape[axis] / 2, shape[axis] - 1}) {
          if (extent < 1 || extent >= shape[axis]) continue;
          Dims smaller = shape;
          smaller[axis] = extent;
          add([&](Program& p) { reshape(p, root, smaller); });
        }
      }
    }
  }

  void reduce_placements() {
    Program plain = program_;
    bool changes = false;
    for (size_t tensor = 0; tensor < tensor_count(program_); ++tensor) {
      changes |= make_plain(plain, tensor);
    }
    if (changes) all_.push_back(std::move(plain));
    for (size_t tensor = 0; tensor < tensor_count(program_); ++tensor) {
      reduce_placement(tensor);
    }
  }

  void reduce_placement(size_t tensor) {
    const Placement& place = placement(program_, tensor);
    const Dims dense = dense_strides(shape_of_tensor(program_, tensor));
    if (place.hides_front) add([&](Program& p) { placement(p, tensor).hides_front = false; });
    if (!(place.strides == dense)) {
      add([&](Program& p) { placement(p, tensor).strides = dense; });
    }
    if (place.offset != 0) add([&](Program& p) { placement(p, tensor).offset = 0; });
    if (place.shift != 0) add([&](Program& p) { placement(p, tensor).shift = 0; });
    if (place.spare) add([&](Program& p) { placement(p, tensor).spare = false; });
    if (!place.at_end) add([&](Program& p) { placement(p, tensor).at_end = true; });
  }

  void reduce_spellings() {
    for (size_t i = 0; i < program_.conversions.size(); ++i) {
      const ConvertOptions& options = program_.conversions[i].options;
      const auto change = [&](auto field, auto value) {
        if (options.*field == value) return;
        add([&](Program& p) { p.conversions[i].options.*field = value; });
      };
      change(&ConvertOptions::overflow, Overflow::by_type);
      change(&ConvertOptions::rounding, Rounding::by_type);
      change(&ConvertOptions::nan, NanMode::by_type);
    }
  }

  void reduce_data() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const DataSpec& data = program_.inputs[i].data;
      if (data.kind != DataSpec::Kind::same) {
        add([i](Program& p) { p.inputs[i].data = {DataSpec::Kind::same, 0, 0}; });
        continue;
      }
      for (uint64_t pattern : plainer_patterns(data.pattern, program_.inputs[i].element)) {
        add([&](Program& p) { p.inputs[i].data.pattern = pattern; });
      }
    }
  }

  void reduce_constants() {
    for (size_t i = 0; i < program_.constants.size(); ++i) {
      const std::vector<uint64_t> zeros(program_.constants[i].patterns.size(), 0);
      if (program_.constants[i].patterns == zeros) continue;
      add([&](Program& p) { p.constants[i].patterns = zeros; });
    }
  }

  /// Zero, and the pattern with low bits or the sign cleared.
  static std::vector<uint64_t> plainer_patterns(uint64_t pattern, ElementType type) {
    std::vector<uint64_t> plainer;
    const auto add_smaller = [&](uint64_t candidate) {
      if (candidate < pattern) plainer.push_back(candidate);
    };
    add_smaller(0);
    for (int bits = bits_of(type) - 1; bits > 0; --bits) add_smaller(pattern >> bits << bits);
    add_smaller(pattern & ~(uint64_t{1} << (bits_of(type) - 1)));
    return plainer;
  }

  const Program& program_;
  std::vector<Program> all_;
};

}  // namespace

std::vector<Program> reductions(const Program& program) { return Reductions(program).take(); }

Program with_data_of(const Program& program, const Finding& finding) {
  Program copy = program;
  const size_t root = copy.root_of(copy.results[finding.tensor].value);
  for (InputSpec& input : copy.inputs) input.data = {DataSpec::Kind::same, 0, 0};
  if (root >= copy.inputs.size()) return copy;
  const InputSpec& input = program.inputs[root];
  Image image = make_image(input.element, program.shape_of(root), input.place);
  fill(image, input.data);
  for_each_element(image.shape, image.place.strides, [&](int64_t distance, int64_t index) {
    if (index != finding.element) return;
    copy.inputs[root].data.pattern = image.load(image.before.data(), distance);
  });
  return copy;
}

}  // namespace castor::fuzz
