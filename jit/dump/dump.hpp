// SPDX-License-Identifier: Apache-2.0
// The stages of the lowering as text, and machine code with notes, for people to read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/function.hpp"
#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/dump/dump_convolution.hpp"
#include "jit/plan/nest.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// The nests that the function becomes for this target: operands with their access classes, and
/// what the loops do, as if every operand were dense. `function` is canonicalised
/// (ir/rewrite/canonicalize.hpp). Any target will do, also one that this machine cannot run. Fails
/// (unsupported) where no nest can be planned. Thread safe.
Result<std::string> dump_nest(const Function& function, const Target& target);

/// One kernel's code, with notes.
struct DumpedCode {
  std::string name;  ///< "nest", "microkernel", "input packer"
  MachineCode code;
};

/// A nest with all that dumps show of it.
struct DumpedNest {
  std::string text;                   ///< as dump_nest prints it, without the heading
  std::optional<uint32_t> operation;  ///< that it is alone, a convolution or a requantization
  std::vector<DumpedCode> codes;      ///< none where the kernel before applies the nest
  std::optional<DumpedConvolution> convolution;
};

/// All nests; otherwise like dump_nest.
Result<std::vector<DumpedNest>> dump_nests(const Function& function, const Target& target);

/// The lane program of each nest, one operation per line under the IR operation that it comes from;
/// constants stand where they are used. Otherwise like dump_nest.
Result<std::string> dump_lanes(const Function& function, const Target& target);

/// The machine code of each nest with notes and loops, dense operands; otherwise like dump_nest.
Result<std::vector<MachineCode>> emit_annotated(const Function& function, const Target& target);

/// The machine code of one nest of the function, for operands of that form.
Result<MachineCode> emit_annotated(const Function& function, const Nest& nest, const NestForm& form,
                                   const Target& target);
/// The machine code of a nest that computes no operation of a function, such as a copy: its notes
/// name none.
Result<MachineCode> emit_annotated(const Nest& nest, const NestForm& form, const Target& target);

}  // namespace castor::jit
