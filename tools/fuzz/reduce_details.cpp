// SPDX-License-Identifier: Apache-2.0
// Steps to plainer tensors, attributes and data.
#include "tools/fuzz/candidates.hpp"

namespace castor::fuzz {

namespace {

class DetailReductions : Candidates {
 public:
  explicit DetailReductions(const Program& program) : Candidates(program) {}

  std::vector<Program> take() {
    reduce_placements();
    reduce_spellings();
    reduce_data();
    reduce_constants();
    return std::move(all_);
  }

 private:
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
    for (size_t i = 0; i < program_.operations.size(); ++i) {
      const Attributes& attributes = program_.operations[i].attributes;
      if (attributes.size() > 1) add([i](Program& p) { p.operations[i].attributes.clear(); });
      for (size_t k = 0; k < attributes.size(); ++k) {
        add([=](Program& p) {
          Attributes& all = p.operations[i].attributes;
          all.erase(all.begin() + static_cast<ptrdiff_t>(k));
        });
      }
    }
  }

  void reduce_data() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const DataSpec& data = program_.inputs[i].data;
      if (data.kind != DataSpec::Kind::same) {
        const bool is_scale = data.kind == DataSpec::Kind::range && data.min > 0;
        const uint64_t pattern = is_scale ? 1 : 0;
        add([=](Program& p) { p.inputs[i].data = {DataSpec::Kind::same, 0, pattern}; });
        continue;
      }
      for (uint64_t pattern : plainer_patterns(data.pattern, program_.inputs[i].element)) {
        add([&](Program& p) { p.inputs[i].data.pattern = pattern; });
      }
    }
  }

  void reduce_constants() {
    for (size_t i = 0; i < program_.operations.size(); ++i) {
      const OperationSpec& constant = program_.operations[i];
      if (constant.op != OpKind::constant) continue;
      const std::vector<uint64_t> zeros(constant.patterns.size(), 0);
      if (constant.patterns != zeros) add([&](Program& p) { p.operations[i].patterns = zeros; });
      if (constant.target.empty()) continue;
      add([i](Program& p) {
        p.operations[i].target.clear();
        resize_constants(p);
      });
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
};

}  // namespace

std::vector<Program> plainer_programs(const Program& program) {
  return DetailReductions(program).take();
}

}  // namespace castor::fuzz
