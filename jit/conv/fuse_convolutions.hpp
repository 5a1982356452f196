// SPDX-License-Identifier: Apache-2.0
// Which nests take a convolution's result piece by piece, while it is in the first cache, so that
// the tensor of i32 is never made.
#pragma once

#include <string>
#include <vector>

#include "jit/plan/nest.hpp"

namespace castor::jit {

/// Marks the convolutions whose result one elementwise nest alone reads, place by place, and that
/// nest; and moves each of these convolutions directly in front of it. Where two convolutions feed
/// one nest it is the later one's.
void fuse_convolutions(const Function& function, std::vector<Nest>& nests);

/// What the fusion of a convolution's nest is, in words.
std::string text_of(const Function& function, const Fusion& fusion);

}  // namespace castor::jit
