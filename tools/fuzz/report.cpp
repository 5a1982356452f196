// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/report.hpp"

#include <fmt/format.h>

#include <array>

#include "ir/text/text.hpp"
#include "tools/castor/describe.hpp"
#include "tools/castor/format_value.hpp"
#include "tools/fuzz/child.hpp"
#include "tools/fuzz/layout.hpp"

namespace castor::fuzz {

namespace {

using tools::coordinates;
using tools::format_element;

std::string name_of_value(const Function& function, ValueId value) {
  return "%" + function.values[value].name;
}

/// The elements of the inputs that a result's element is computed from, as far as operands
/// broadcast on the right.
std::string describe_sources(const Prepared& prepared, const Dims& result, int64_t element) {
  std::string text;
  for (size_t i = 0; i < prepared.inputs.size(); ++i) {
    const Image& image = prepared.inputs[i];
    const std::optional<int64_t> wanted = matching_element(element, result, image.shape);
    if (!wanted) continue;
    uint64_t pattern = 0;
    for_each_element(image.shape, image.place.strides, [&](int64_t distance, int64_t index) {
      if (index == *wanted) pattern = image.load(image.before.data(), distance);
    });
    text += fmt::format("  input    {} {} {}\n",
                        name_of_value(*prepared.function, prepared.function->parameters[i]),
                        name_of(image.element), format_element(pattern, image.element));
  }
  return text;
}

std::string describe_element(const Prepared& prepared, const Finding& finding) {
  const ElementType type = prepared.outputs[finding.tensor].element;
  const Dims& shape = prepared.outputs[finding.tensor].shape;
  return fmt::format("{} of {} elements differ, the first at {}\n", finding.differing,
                     count_of(shape), to_string(coordinates(finding.element, shape))) +
         describe_sources(prepared, shape, finding.element) +
         fmt::format("  expected {} {}  (interpreter)\n", name_of(type),
                     format_element(finding.expected, type)) +
         fmt::format("  actual   {} {}  (machine code)\n", name_of(type),
                     format_element(finding.actual, type));
}

std::string describe_byte(const Finding& finding) {
  return fmt::format(
      "byte {} of the view, in bits that are no element to write: expected 0x{:02x}, found "
      "0x{:02x}\n",
      finding.byte, finding.expected, finding.actual);
}

std::string describe_bad_call(const BadCall& bad) {
  constexpr std::array<std::string_view, 7> wrongs = {
      "nothing wrong", "wrong shape",         "one byte too few",    "overlap with another tensor",
      "no data",       "an extent too large", "a scale of 0 or less"};
  return fmt::format("tensor {} (inputs, then results): {}", bad.tensor,
                     wrongs[static_cast<size_t>(bad.kind)]);
}

std::string describe_finding(const Prepared& prepared, const Finding& finding) {
  switch (finding.kind) {
    case Finding::Kind::none:
    case Finding::Kind::unprepared: break;
    case Finding::Kind::element:
      return fmt::format("result {}: {}", finding.tensor, describe_element(prepared, finding));
    case Finding::Kind::stray:
      return fmt::format("result {}: {}", finding.tensor, describe_byte(finding));
    case Finding::Kind::input:
      return fmt::format("input {}: {}", finding.tensor, describe_byte(finding));
    case Finding::Kind::touched:
      return fmt::format("refused a bad call, but wrote: result {}: {}", finding.tensor,
                         describe_byte(finding));
    case Finding::Kind::accepted:
      return fmt::format("did not refuse a bad call: {}\n",
                         describe_bad_call(prepared.program.bad_call));
    case Finding::Kind::refusal: return fmt::format("refused: {}\n", finding.message);
    case Finding::Kind::crash: return fmt::format("ended by {}\n", name_of_signal(finding.signal));
  }
  return "";
}

std::string describe_distance(const Image& image) {
  if (image.hidden > 0) return "the first element's byte after an inaccessible page";
  return fmt::format("{} bytes {} an inaccessible page", image.place.shift,
                     image.place.at_end ? "before" : "after");
}

std::string describe_tensor(const std::string& name, const Image& image) {
  const Placement& place = image.place;
  return fmt::format("  {:<12} {}{} strides {} offset {}, {} bytes available, {}\n", name,
                     name_of(image.element), to_string(image.shape), to_string(place.strides),
                     place.offset, image.view_bytes, describe_distance(image));
}

std::string describe_tensors(const Prepared& prepared) {
  const Function& function = *prepared.function;
  std::string text = "tensors:\n";
  for (size_t i = 0; i < prepared.inputs.size(); ++i) {
    const std::string name = name_of_value(function, function.parameters[i]);
    text += describe_tensor(name, prepared.inputs[i]);
  }
  for (size_t i = 0; i < prepared.outputs.size(); ++i) {
    const int input = prepared.program.results[i].in_place_of;
    const std::string name = fmt::format("result {}", i);
    if (prepared.is_in_place(i)) {
      const ValueId taken = function.parameters[static_cast<size_t>(input)];
      text += fmt::format("  {:<12} in place of {}\n", name, name_of_value(function, taken));
    } else {
      text += describe_tensor(name, prepared.outputs[i]);
      if (!prepared.is_interleaved_behind(i)) continue;
      text += fmt::format("               in the memory of result {}\n", prepared.owner_of(i));
    }
  }
  return text;
}

std::string repeat_command(const Mismatch& mismatch, const RunPosition& position) {
  const std::vector<Tier>& tiers = position.tiers;
  const std::string_view tier = name_of(tiers[mismatch.finding.tier]);
  const auto emulate = [](std::span<const Tier> run) {
    const bool is_needed =
        std::ranges::any_of(run, [](Tier each) { return jit::host().emulates(each); });
    return is_needed ? " --emulate" : "";
  };
  if (mismatch.repeats) {
    return fmt::format("castor fuzz --seed {} --count 1 --isa {}{}", mismatch.original.seed, tier,
                       emulate({&tiers[mismatch.finding.tier], 1}));
  }
  return fmt::format("castor fuzz --seed {} --count {} --isa {}{}  (the program alone passes)",
                     position.run_seed, position.index + 1, tiers.size() == 1 ? tier : "all",
                     emulate(tiers));
}

std::string describe_tasks(const Program& program) {
  if (program.tasks == 1) return "";
  return fmt::format("split into at most {} tasks, {}\n", program.tasks,
                     program.runs_threads ? "each in a thread of its own" : "the last one first");
}

/// The function in whose presence alone the program fails.
std::string describe_neighbour(const Prepared& prepared) {
  if (prepared.neighbour.function == nullptr) return "";
  return "fails behind this function, which is bound first:\n" +
         print(*prepared.neighbour.function);
}

std::string describe_sizes(const Program& program) {
  size_t elements = 0;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    elements += static_cast<size_t>(count_of(program.shape_of(i)));
  }
  return fmt::format("{} operations, {} inputs with {} elements, {} results",
                     program.operations.size(), program.inputs.size(), elements,
                     program.results.size());
}

}  // namespace

std::string report(const Mismatch& mismatch, const RunPosition& position) {
  const Tier tier = position.tiers[mismatch.finding.tier];
  std::string text = fmt::format(
      "MISMATCH: program {} of the run, seed {}, on {}{}\n", position.index, mismatch.original.seed,
      name_of(tier), mismatch.original.keeps_frame_pointer() ? " with frame pointers" : "");
  FunctionPtr function;
  if (mismatch.finding.kind == Finding::Kind::unprepared) {
    text += fmt::format("no reference result: {}\n", mismatch.finding.message);
  } else if (const Result<Prepared> prepared = prepare(mismatch.minimised)) {
    function = prepared->function;
    text += describe_finding(*prepared, mismatch.finding) + describe_tensors(*prepared) +
            describe_tasks(mismatch.minimised) + tools::describe_function(function) +
            describe_neighbour(*prepared);
  }
  text += fmt::format("minimised: {}\n     from: {}\n", describe_sizes(mismatch.minimised),
                      describe_sizes(mismatch.original));
  text += fmt::format("repeat: {}\n", repeat_command(mismatch, position));
  if (!function) return text;
  // What crashed may have been the compiler.
  constexpr unsigned seconds = 60;
  text += text_of_child([&] { return tools::describe_code(function, tier); }, seconds);
  return text;
}

}  // namespace castor::fuzz
