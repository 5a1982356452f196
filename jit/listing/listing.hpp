// SPDX-License-Identifier: Apache-2.0
// Listings: machine code disassembled (Zydis), annotated with the IR op and nest that each
// instruction comes from, and weighed by the port model. Not linked by the embedded core: CMake
// target castor_listing. Every function here is pure and may be called from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/core/core_tuning.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// One decoded instruction.
struct ListedInstruction {
  uint32_t offset = 0;  ///< bytes from the start of the code
  uint32_t length = 0;
  std::string mnemonic;  ///< lower case, as Zydis names it
  std::string text;      ///< Intel syntax; branches go to labels (L0), constants are [pool+0x40]
  std::string comment;   ///< the constant that the instruction reads; may be empty
  std::optional<int> label;  ///< n when a branch goes here: label Ln, numbered by offset
};

/// Decodes the instruction part. Fails (internal) at bytes that are no instruction, at a branch to
/// anything but the start of an instruction, and at a rip-relative operand outside the code.
/// `with_sizes`: memory operands have their size also where a register says it.
Result<std::vector<ListedInstruction>> disassemble(const MachineCode& code,
                                                   bool with_sizes = false);

/// An execution port of a core, and the cycles that it works.
struct PortLoad {
  std::string_view port;  ///< e.g. "FP1"
  double cycles = 0;
};

/// What the port model says of one iteration of a loop: lower bounds by loads, by stores, by the
/// execution pipes and by the front end; the largest is the limit. Cycles of the model's core with
/// data in L1, aligned, and no wait for results (latencies are not modelled). An inner loop or a
/// branch not taken within the body counts once.
struct PortCycles {
  double load = 0;
  double store = 0;
  double pipes = 0;      ///< the busiest set of vector, transfer, integer or branch pipes
  double front_end = 0;  ///< macro-operations over the dispatch width, or taken branches
  std::string busiest;   ///< what `pipes` comes from, e.g. "FP1 FP2"; empty when no pipe is used
  /// Every execution port of the core, in its order, loaded as the best division of the work among
  /// ports loads it (port_balance.hpp), without loads and stores; where there are tiles, the tile
  /// unit after them, TMUL.
  std::vector<PortLoad> ports;
  std::string core;        ///< whose figures these are, e.g. "Zen 4"
  bool has_tiles = false;  ///< whether there are instructions on tile data
  /// Whether the core lacks tiles, so that their figures are Granite Rapids' (tile_unit.hpp).
  bool has_foreign_tiles = false;

  double bound() const;
  /// "load", "store", "pipes" or "front end": what bound() comes from.
  std::string_view limited_by() const;
};
/// Fails (internal) where disassemble does, when the loop does not begin and end at instructions of
/// `code`, and at an instruction that the model has no cost for.
Result<PortCycles> port_cycles(const MachineCode& code, const CodeLoop& loop,
                               PortModel model = PortModel::zen4);

/// The port model that the core's row of the tuning table names; Redwood Cove's where that is
/// Golden Cove's and the CPU says that it is a Granite Rapids (the two cores share a row).
PortModel port_model_of(Core core, const CpuIdentity& identity);

/// Cycles from the first source of the instruction at that offset to its result, both in registers
/// of one kind; 0 where the model knows none. Fails (internal) as port_cycles does, and where no
/// instruction begins.
Result<double> latency_at(const MachineCode& code, uint32_t offset,
                          PortModel model = PortModel::zen4);

/// Checks that every instruction belongs to the tier's features: the error (internal) names the
/// first one that does not, with its offset and what it needs. BMI1, LZCNT and POPCNT count as
/// bmi2, SSE to SSE4.2 and AVX as avx2: no CPU has the latter without the former.
Status check_features(const MachineCode& code, const Target& target);

/// Checks what makes code hard to misuse: it begins with endbr64 and has no other, it does not
/// branch to addresses that it computes or reads (but for returning), and the displacements that
/// lead to the constant pool are its `pool_references`, so that published code reads no constant
/// from its own pages. Fails (internal) where disassemble does.
Status check_hardening(const MachineCode& code);

/// Checks that the code's notes on its frame (`MachineCode::frame`) lead to the frame of the caller
/// and to its registers from every instruction, and that returns leave both as they were: the
/// general registers and the stack are followed along all paths. Fails (internal) where disassemble
/// does, and at the first instruction from which they lead elsewhere.
Status check_unwinding(const MachineCode& code);

struct ListingOptions {
  /// For comparing: leaves out what changes with everything before it (offsets and bytes of
  /// instructions, the amount of padding, the names of repeated lane operations), so that a change
  /// of the code shows where it is and hardly elsewhere.
  bool compact = false;
  PortModel model = PortModel::zen4;  ///< whose cycles loops are said to take
};

/// The annotated listing: the parts of the nest, instructions with the lane operation that they
/// begin and the constant that they read, and for each loop its port-model cycles (or why the
/// model has none); then the constant pool, and totals. A lane operation is written out where it
/// first occurs; the copies of an unrolled loop show the name of its value. Deterministic: a pure
/// function of its arguments. Fails where disassemble does.
Result<std::string> listing(const MachineCode& code, const ListingOptions& options = {});

}  // namespace castor::jit
