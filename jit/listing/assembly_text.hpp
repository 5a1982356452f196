// SPDX-License-Identifier: Apache-2.0
// Machine code as text that other tools read: assemblers, llvm-mca, disassemblers.
#pragma once

#include <string>
#include <string_view>

#include "ir/support/result.hpp"
#include "jit/code.hpp"

namespace castor::jit {

/// The code in the syntax that GNU as and LLVM's assembler read (Intel syntax), with its constants
/// as data. Assembled, it gives the same instructions; their encodings may differ in length, so
/// padding is written as bytes. `name` is the function's symbol, and begins all labels. Fails where
/// disassemble does.
Result<std::string> gas_text(const MachineCode& code, std::string_view name);

/// The same without constants, and with a region for each loop that llvm-mca analyses, called
/// `name`, the loop's name and its offset: loops within loops are regions within regions.
Result<std::string> mca_text(const MachineCode& code, std::string_view name);

/// All bytes of the code as hexadecimal digits, 16 a line, as `xxd -r -p` reads them.
std::string hex_text(const MachineCode& code);

}  // namespace castor::jit
