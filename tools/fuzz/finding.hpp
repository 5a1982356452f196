// SPDX-License-Identifier: Apache-2.0
// What can be found wrong with one program on one tier.
#pragma once

#include <cstddef>
#include <cstdint>

namespace castor::fuzz {

/// What was found wrong first. Plain memory, to be handed from one process to another.
struct Finding {
  enum class Kind : uint8_t {
    none,
    element,     ///< an output's element differs
    stray,       ///< bits of an output's pages that are no element of it are not what they must be
    input,       ///< an input, or a byte around it, was written
    touched,     ///< memory was written by a call that was refused
    accepted,    ///< a call that had to be refused was not
    refusal,     ///< compiling, binding or running was refused
    crash,       ///< a signal ended the process
    unprepared,  ///< the function could not be built or interpreted, or that crashed
  };
  Kind kind = Kind::none;
  size_t tier = 0;        ///< index into the run's tiers
  size_t tensor = 0;      ///< index of the output or input
  int64_t element = 0;    ///< element: index in row-major order
  int64_t differing = 0;  ///< element: how many differ
  uint64_t expected = 0;
  uint64_t actual = 0;
  int64_t byte = 0;        ///< stray, input: from the view's first byte
  int signal = 0;          ///< crash
  char message[240] = {};  ///< refusal, unprepared: why

  explicit operator bool() const { return kind != Kind::none; }
};

/// Whether the two may have one cause: a wrong element and a stray byte may, a crash and a refusal
/// may not.
constexpr bool are_alike(const Finding& a, const Finding& b) {
  const auto is_difference = [](const Finding& finding) {
    return finding.kind == Finding::Kind::element || finding.kind == Finding::Kind::stray ||
           finding.kind == Finding::Kind::input;
  };
  return a.kind == b.kind || (is_difference(a) && is_difference(b));
}

}  // namespace castor::fuzz
