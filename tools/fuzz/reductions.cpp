// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/reductions.hpp"

#include <algorithm>

#include "tools/fuzz/candidates.hpp"
#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/layout.hpp"
#include "tools/fuzz/prepared.hpp"
#include "tools/fuzz/rewrite.hpp"

namespace castor::fuzz {

namespace {

/// Fewer results and operations.
class Reductions : Candidates {
 public:
  Reductions(const Program& program, const Finding& finding)
      : Candidates(program), finding_(finding) {}

  std::vector<Program> take() {
    reduce_results();
    reduce_values();
    return std::move(all_);
  }

 private:
  void reduce_results() {
    for (size_t i = 0; i < program_.results.size() && program_.results.size() > 1; ++i) {
      Program copy = program_;
      remove_result(copy, i);
      remove_dead(copy);
      all_.push_back(std::move(copy));
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
    if (program_.neighbour != 0) add([](Program& p) { p.neighbour = 0; });
    if (program_.runs_threads) add([](Program& p) { p.runs_threads = false; });
    if (program_.tasks > 1) add([](Program& p) { p.tasks = 1; });
    if (program_.tasks > 2) add([](Program& p) { p.tasks = 2; });
    if (program_.streams) add([](Program& p) { p.streams = false; });
    if (program_.excess_precision) add([](Program& p) { p.excess_precision = false; });
    if (program_.bad_call.kind != BadCall::Kind::none) add([](Program& p) { p.bad_call = {}; });
  }

  // ---- Fewer operations.

  void reduce_values() {
    Program without_dead = program_;
    if (remove_dead(without_dead)) all_.push_back(std::move(without_dead));
    for (size_t value = program_.first_operation(); value < program_.value_count(); ++value) {
      if (program_.is_value(value)) reduce_value(value);
    }
  }

  /// Readers of the value take an operand of its operation, another value of the same type and
  /// shape, or an input.
  void reduce_value(size_t value) {
    if (!is_used(value)) return;
    for (size_t by : program_.operations[program_.operation_of(value)].operands) {
      if (by != no_operand) add([=](Program& p) { replace_uses(p, value, by); });
    }
    for (size_t by = 0; by < std::min(value, program_.first_operation()); ++by) {
      if (are_alike(by, value)) add([=](Program& p) { replace_uses(p, value, by); });
    }
    cut_at(value);
  }

  bool is_used(size_t value) const {
    const auto reads = [value](const OperationSpec& operation) {
      return std::ranges::find(operation.operands, value) != operation.operands.end();
    };
    return std::ranges::any_of(program_.operations, reads) ||
           std::ranges::any_of(program_.results,
                               [value](const ResultSpec& result) { return result.value == value; });
  }

  bool are_alike(size_t a, size_t b) const {
    return program_.element_of(a) == program_.element_of(b) &&
           program_.shape_of(a) == program_.shape_of(b) &&
           same_quantization(program_.values[a].type.quantization,
                             program_.values[b].type.quantization);
  }

  /// An input with the element that the value has where the wrong element is computed from it.
  void cut_at(size_t value) {
    if (program_.inputs.size() >= max_inputs) return;
    InputSpec input;
    input.element = program_.element_of(value);
    input.quantization = program_.values[value].type.quantization;
    const Dims& shape = program_.shape_of(value);
    for (int64_t extent : shape) input.axes.push_back({AxisSpec::Kind::fixed, extent, 0});
    input.place.strides = dense_strides(shape);
    input.data = {DataSpec::Kind::same, 0, element_of(value)};
    Program copy = program_;
    cut(copy, value, input);
    const Program before = copy;
    if (!infer_values(copy)) return;
    remove_dead(copy);
    if (copy.operations.size() >= program_.operations.size()) return;
    if (build_function(copy)) all_.push_back(std::move(copy));
  }

  uint64_t element_of(size_t value) const {
    Program alone = program_;
    alone.results.assign(1, {});
    alone.results[0].value = value;
    alone.results[0].place.strides = dense_strides(program_.shape_of(value));
    alone.bad_call = {};
    const Result<Prepared> prepared = prepare(std::move(alone));
    if (!prepared || count_of(program_.shape_of(value)) == 0) return 0;
    const Image& image = prepared->outputs[0];
    int64_t at = 0;
    if (finding_.kind == Finding::Kind::element) {
      const Dims& wrong = program_.shape_of(program_.results[finding_.tensor].value);
      at = matching_element(finding_.element, wrong, image.shape).value_or(0);
    }
    return image.load(image.after.data(), at);
  }

  const Finding& finding_;
};

}  // namespace

std::vector<Program> reductions(const Program& program, const Finding& finding) {
  std::vector<Program> all = Reductions(program, finding).take();
  for (auto more : {smaller_shapes, plainer_quantizations, plainer_programs}) {
    for (Program& one : more(program)) all.push_back(std::move(one));
  }
  return all;
}

Program with_data_of(const Program& program, const Finding& finding) {
  Program copy = program;
  const Dims& wrong = program.shape_of(program.results[finding.tensor].value);
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const InputSpec& input = program.inputs[i];
    Image image = make_image(input.element, program.shape_of(i), input.place);
    fill(image, input.data);
    const auto wanted = matching_element(finding.element, wrong, image.shape);
    copy.inputs[i].data = {DataSpec::Kind::same, 0, 0};
    for_each_element(image.shape, image.place.strides, [&](int64_t distance, int64_t index) {
      if (index != wanted.value_or(0)) return;
      copy.inputs[i].data.pattern = image.load(image.before.data(), distance);
    });
  }
  return copy;
}

}  // namespace castor::fuzz
