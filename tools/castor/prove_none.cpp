// SPDX-License-Identifier: Apache-2.0
// castor prove where castor was built without z3.
#include "tools/castor/command.hpp"

namespace castor::tools {

void add_prove(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("prove", "Not in this build, which is without z3");
  command->allow_extras();
  command->callback([&action] {
    action = []() -> Outcome {
      return failed({ErrorCode::unsupported,
                     "castor was built without z3 (Debian: libz3-dev; CMake: CASTOR_WITH_Z3)"});
    };
  });
}

}  // namespace castor::tools
