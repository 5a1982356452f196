// SPDX-License-Identifier: Apache-2.0
// For tests on machines that lack a feature.
#pragma once

#include "jit/target.hpp"

namespace castor::jit {

/// Those of the features that the host lacks count as its own, since a signal handler of the
/// program carries their instructions out (tools/emulator). Tiers with them run where they are
/// asked for, and are never the best one. To be called before the first `host()`; false where that
/// has answered otherwise.
CASTOR_API bool emulate_features(FeatureSet features);

}  // namespace castor::jit
