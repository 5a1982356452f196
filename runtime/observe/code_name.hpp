// SPDX-License-Identifier: Apache-2.0
// Names of pieces of code, for profilers, debuggers and files.
//
// castor_<what>_<element types>_<access>_<tier>, C identifiers of at most `max_name_characters`.
// Types and access are those of the operands in order, inputs first; runs of equal ones are
// written once, with their number: f32x2_f32. What differs where the words are equal has different
// hashes after them: the words say it all for one operation whose attributes they name, for others
// they do not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/function.hpp"
#include "jit/plan/nest.hpp"

namespace castor {

inline constexpr size_t max_name_characters = 120;

/// Indices of the operations that the nest computes, ascending; none where it only copies.
std::vector<uint32_t> operations_of(const Function& function, const jit::Nest& nest);

/// The name of a nest's code. `function` is the canonical one that the nest is of; null: unknown.
/// `key` is the specialisation key. Deterministic, thread safe.
std::string code_name(const Function* function, const jit::Nest& nest, const jit::NestForm& form,
                      const jit::Target& target, std::string_view key);

/// Letters and digits of the text, with one underscore for whatever stands between them; of at most
/// `max_name_characters` characters.
std::string as_identifier(std::string_view text);
/// Eight hexadecimal digits of a hash of the bytes; the same in every process.
std::string short_hash(std::string_view bytes);
/// "castor_" + front + "_" + back, the front cut where that is too long; with a hash of `key` at
/// the end where it is cut, or where `says_all` is false.
std::string bounded_name(std::string_view front, std::string_view back, bool says_all,
                         std::string_view key);

}  // namespace castor
