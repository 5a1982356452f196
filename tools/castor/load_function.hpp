// SPDX-License-Identifier: Apache-2.0
// Functions from text files, with constants from the files beside them.
#pragma once

#include <string>
#include <vector>

#include "ir/function.hpp"
#include "runtime/onnx/plan.hpp"

namespace castor::tools {

/// The functions of a text file: the one called `name`, or all of them when `name` is empty. Where
/// there is a name, mistakes in other functions do not matter (see parse_function).
/// `constant @weights` is read from weights.npy, or else from weights.bin (raw, dense, in the
/// type's storage order) in the text's folder. Errors in the text read "path:line:column:
/// message". A model of ONNX gives the functions of its units, for which `plan` is.
Result<std::vector<FunctionPtr>> load_functions(const std::string& path, const std::string& name,
                                                const onnx::PlanOptions& plan = {});

/// Like load_functions, but fails where there is more than one. Of a model without a name: the
/// whole model.
Result<FunctionPtr> load_function(const std::string& path, const std::string& name,
                                  const onnx::PlanOptions& plan = {});

}  // namespace castor::tools
