// SPDX-License-Identifier: Apache-2.0
// castor run --profile: where the time of a call goes, against what the machine allows.
#pragma once

#include <castor/castor.hpp>

#include <span>
#include <string>
#include <vector>

namespace castor::tools {

/// A line of a profile: a nest, or work within one.
struct ProfilePart {
  std::string name;        ///< "nest 0: convert", "block"
  bool is_nest = true;     ///< else part of the last nest before it
  double parts = 0;        ///< how often it was done
  double nanoseconds = 0;  ///< by all threads together
  double bytes_read = 0;   ///< each tensor or buffer once
  double bytes_written = 0;
  double products = 0;  ///< multiplications that are summed
  /// The time that the machine needs at least over that taken; 0: unknown.
  double limit_fraction = 0;
  std::string_view limit = {};  ///< "stream" or "products": what it needs that time for
};

/// The fastest of several calls.
struct Profile {
  int calls = 0;
  double nanoseconds = 0;  ///< that it takes
  std::vector<ProfilePart> parts;
  double products_per_ns = 0;  ///< maximum; 0: nothing is multiplied
  std::string products_by;     ///< the instructions that do so
};

/// Calls the kernel for about half a second, at least three times, after a first call that does not
/// count; then measures limits. Fails as the call does, and (unsupported) where the interpreter
/// would run.
Result<Profile> take_profile(const BoundKernel& bound, std::span<const ConstView> inputs,
                             std::span<const View> outputs);

/// A table.
std::string print(const Profile& profile);

}  // namespace castor::tools
