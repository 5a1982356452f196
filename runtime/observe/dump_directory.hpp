// SPDX-License-Identifier: Apache-2.0
// The directory that compiled functions and their code are written to, for people to read.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "castor/observe.hpp"
#include "ir/function.hpp"
#include "jit/target.hpp"
#include "runtime/observe/code_description.hpp"

namespace castor {

/// Files are complete when they get their names, and never change: where a name is taken by a file
/// with another content, a hash of the content is appended to it. So several runtimes and processes
/// may write to one directory. Immutable; thread safe.
class DumpDirectory {
 public:
  explicit DumpDirectory(std::string path) : path_(std::move(path)) {}

  /// NAME.castor and NAME.nests.txt. `target`: null where the function is interpreted. Fails (io).
  Status write(const Function& function, const Function& canonical,
               const jit::Target* target) const;

  /// NAME.nest.txt, and NAME.asm.txt or, without a writer, NAME.bin. Fails (io).
  Status write(std::string_view name, const CodeDescription& description,
               const jit::MachineCode& code, ListingWriter listing) const;

 private:
  /// Writes a file of that name, or finds it there, or one with a hash after the name; says which.
  Result<std::string> write_file(std::string_view name, std::string_view extension,
                                 std::string_view content) const;
  /// The function with large constants bound to files, which are written.
  Result<Function> with_bound_constants(const Function& function) const;

  std::string path_;
};

}  // namespace castor
