// SPDX-License-Identifier: Apache-2.0
// Machine code as text: the component castor::listing, which links a disassembler (Zydis); the
// library itself does not.
#pragma once

#include <castor/castor.hpp>

#include <string>

namespace castor {

/// The annotated listing of a bound kernel's code, as `castor dump --stage asm` prints it: of every
/// elementwise nest the code that its calls go through; of convolutions and requantizations the
/// code that is made for large tensors of that kind. In the interpreter it is one line that says
/// so. Thread safe.
CASTOR_API Result<std::string> listing(const BoundKernel& kernel);

/// Stages of the lowering: the function before and after it is canonicalised; its nests with their
/// loops, operands and access patterns; the program that one chunk of lanes runs through; the
/// annotated listing of the machine code.
enum class DumpStage : uint8_t { ir, nest, lanes, assembly };

/// One stage of the function's lowering as text, as `castor dump` prints it, for dense tensors. The
/// cycles of loops are those of the core's port model (of the generic core: Zen 4's; of Golden Cove
/// on a Granite Rapids: Redwood Cove's). Code keeps rbp as the frame pointer where `frame_pointers`
/// says so (RuntimeOptions::frame_pointers). Any tier will do, also one that this machine cannot
/// run. Fails (unsupported) where no nest can be planned. Thread safe.
CASTOR_API Result<std::string> dump(const FunctionPtr& function, DumpStage stage, Tier tier,
                                    Core core = Core::generic, bool frame_pointers = false);

/// Machine code for other tools: text that GNU as and LLVM's assembler read, its constants
/// included; all bytes as hexadecimal digits; text that llvm-mca reads, with a region for each
/// loop.
enum class CodeFormat : uint8_t { gas, hex, mca };

/// The code of every nest, as dump() shows it, in that format. Lines that begin with '#' are
/// comments. Fails as dump() does. Thread safe.
CASTOR_API Result<std::string> dump_code(const FunctionPtr& function, CodeFormat format, Tier tier,
                                         Core core = Core::generic, bool frame_pointers = false);

/// For ObserveOptions::listing: the annotated listing that `castor dump --stage asm` prints, with
/// the operation that each instruction comes from, the cycles of loops, and the constants. Cycles
/// are those of the core that CASTOR_CORE names, else of the machine's. Never null. The writer
/// fails (internal) at bytes that are no instruction. Thread safe.
CASTOR_API ListingWriter listing_writer();

}  // namespace castor
