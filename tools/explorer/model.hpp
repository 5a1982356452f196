// SPDX-License-Identifier: Apache-2.0
// What the explorer's page shows: functions, their nests on every tier, lanes, and instructions
// with their origins.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/function.hpp"
#include "jit/code_section.hpp"
#include "jit/conv/candidates.hpp"
#include "jit/listing/listing.hpp"

namespace castor::tools::explorer {

/// An index of the same model, or none.
using Index = int32_t;
inline constexpr Index none = -1;

/// The origin of an instruction.
struct Origin {
  jit::CodeSection section = jit::CodeSection::none;
  int32_t number = none;   ///< within the section
  Index lane = none;       ///< in `Code::lanes`
  Index operation = none;  ///< in `Function::operations`
};

struct Instruction {
  uint32_t offset = 0;
  std::string bytes;  ///< in hexadecimal
  std::string text;
  std::string comment;  ///< the constant that it reads, or empty
  int32_t label = none;
  Index origin = none;  ///< in `Code::origins`; every instruction has one
};

struct Loop {
  jit::CodeLoop noted;
  Index first = none;  ///< instructions
  Index end = none;
  std::optional<jit::PortCycles> cycles;
  std::string refusal;  ///< why the port model has none
};

struct Code {
  std::string name;  ///< "nest", "microkernel", "input packer", or as profilers name it
  std::vector<jit::CodeLane> lanes;
  std::vector<Origin> origins;
  std::vector<Instruction> instructions;
  std::vector<Loop> loops;
  size_t instruction_bytes = 0;
  size_t constant_bytes = 0;
  int spills = 0;
};

/// Cycles of an image that one kind of event takes.
struct CostPart {
  std::string_view name;
  std::string_view meaning;
  double count = 0;
  double cycles = 0;
};
struct CandidateCost {
  std::string name;
  double cycles = 0;
  bool applies_epilogue = false;
  std::vector<CostPart> parts;  ///< by descending cycles; none is 0
};
struct Convolution {
  std::vector<CandidateCost> candidates;  ///< the first is chosen
  jit::ConvolutionProblem problem;
  jit::ConvolutionPlan plan;
};

struct Nest {
  std::vector<std::string> lines;  ///< the plan in words
  Index operation = none;          ///< that it computes alone, if it does
  /// All kernels that the function is compiled to for dense tensors, the nest's own first, which is
  /// missing where the microkernel before applies the nest. One that several nests need is the
  /// first's.
  std::vector<Code> codes;
  std::optional<Convolution> convolution;
};

struct TierView {
  jit::Target target;
  std::vector<Nest> nests;
  std::string refusal;  ///< why there are no nests
  std::string missing;  ///< why kernels that binding makes are not among the codes
};

struct OperationLine {
  std::string text;
  Index operation = none;  ///< none: the first and the last lines
};
/// A line of the text before it is canonicalised.
struct WrittenLine {
  std::string text;
  Index operation = none;     ///< the written function's; none: the first and the last lines
  std::vector<Index> became;  ///< operations of the canonical function
};
struct FunctionView {
  std::string name;
  std::vector<WrittenLine> written;  ///< none where that is the canonical function
  std::vector<OperationLine> lines;  ///< the canonical function
  std::vector<TierView> tiers;
};

struct Model {
  std::string file;
  jit::Tier selected = jit::Tier::avx2;  ///< the tier that the page shows first
  std::vector<FunctionView> functions;
};

/// The function's text, each operation of which is a line of its own.
std::vector<OperationLine> operation_lines(const Function& function);

/// The model of all functions on all tiers, planned for the core, with cycles of its port model as
/// this machine has it (jit::port_model_of). Code keeps rbp as the frame pointer where
/// `frame_pointers` says so. Fails (internal) where an instruction has no origin;
/// what cannot be planned is a refusal of its tier.
Result<Model> explore(std::string file, std::span<const FunctionPtr> functions, jit::Tier selected,
                      jit::Core core, bool frame_pointers = false);

/// One code of a model.
Result<Code> explore(std::string name, const jit::MachineCode& code, jit::PortModel model);

}  // namespace castor::tools::explorer
