// SPDX-License-Identifier: Apache-2.0
// The explorer's page.
#pragma once

#include <string>

#include "tools/explorer/model.hpp"

namespace castor::tools::explorer {

/// The model as JSON, as page.html's scripts read it: texts are strings, numbers of sections,
/// lanes, operations and origins are indices, -1 for none.
std::string to_json(const Model& model);

/// One HTML file that holds all that it needs: page.html with the style sheet, the scripts and the
/// model. Nothing of the model's texts can end the script that holds them.
std::string to_page(const Model& model);

}  // namespace castor::tools::explorer
