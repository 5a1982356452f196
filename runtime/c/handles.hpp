// SPDX-License-Identifier: Apache-2.0
// What the handles of the C API are.
#pragma once

#include <castor/castor.h>
#include <castor/castor.hpp>

#include <optional>
#include <string>
#include <vector>

namespace castor::c {

/// A tensor type in C, with the memory that it points to but for names and parameters, which are
/// the function's.
struct TypeInC {
  std::vector<castor_dim> dims;
  std::optional<castor_quantization> quantization;
  castor_tensor_type type = {};
  const char* name = "";

  /// Points `type` to the other fields, once they stay where they are.
  void settle() {
    type.dims = dims.data();
    type.quantization = quantization ? &*quantization : nullptr;
  }
};

}  // namespace castor::c

struct castor_text {
  std::string text;
};

struct castor_function {
  /// Throws std::bad_alloc.
  explicit castor_function(castor::FunctionPtr shared);

  castor::FunctionPtr function;
  std::vector<castor::c::TypeInC> inputs;
  std::vector<castor::c::TypeInC> outputs;
};

struct castor_builder {
  castor::FunctionBuilder builder;
  /// The first mistake that is not the builder's own: of an argument.
  castor::Status mistake{};
  bool no_memory = false;
  bool spent = false;
};

struct castor_kernel {
  castor::Kernel kernel;
  castor_function function;
};

struct castor_bound_kernel {
  castor::BoundKernel kernel;
};

struct castor_packed_weights {
  castor::PackedWeights weights;
};

struct castor_disassembler {
  castor::ListingWriter write;
};

struct castor_runtime {
  castor::Runtime runtime;
};
