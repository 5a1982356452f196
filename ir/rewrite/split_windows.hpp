// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ir/function.hpp"

namespace castor {

/// Kernel positions of a pooling at most that one nest computes: it reads the operand once for
/// each.
inline constexpr int64_t max_pooling_taps = 16;

/// Writes poolings of large windows as several of smaller ones, which have the same result, since a
/// maximum may be taken in any order and of any element more than once:
/// - by the last spatial axis after the others, where that reads fewer elements;
/// - along one axis by windows of half the extent, then by two of these;
/// - along one axis by all windows, then by those that its stride leaves.
/// Along one axis windows stay whose padding follows from an unknown extent (auto_pad = same with a
/// stride), and those whose parts would refuse a short input that the whole window takes. Returns
/// the same pointer when nothing changes. Thread safe.
FunctionPtr split_windows(const FunctionPtr& function);

/// Why a function after `split_windows` cannot be compiled; empty where it can.
CASTOR_API std::string reason_windows_not_split(const Function& function);

}  // namespace castor
