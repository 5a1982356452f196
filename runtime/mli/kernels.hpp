// SPDX-License-Identifier: Apache-2.0
// Kernels of conversions by form, shared by the whole process.
#pragma once

#include <castor/castor.hpp>

#include <array>
#include <compare>
#include <cstdint>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "runtime/mli/mode.hpp"
#include "runtime/mli/tensor.hpp"

namespace castor::mli {

/// What a kernel depends on: all of two tensors but data and parameters, and the arithmetic.
struct ConversionForm {
  uint16_t source_type = 0;
  uint16_t destination_type = 0;
  uint8_t rank = 0;
  int8_t source_axis = -1;  ///< of parameters; -1: of the whole tensor, or fx, or fp32
  int8_t destination_axis = -1;
  uint8_t arithmetic = 0;
  uint8_t rounding = 0;
  /// Entries from `rank` on are 0.
  std::array<uint32_t, MLI_MAX_RANK> shape = {};
  std::array<int32_t, MLI_MAX_RANK> source_strides = {};
  std::array<int32_t, MLI_MAX_RANK> destination_strides = {};

  friend bool operator==(const ConversionForm&, const ConversionForm&) = default;
};

/// The form of a conversion that passed its checks.
ConversionForm form_of(const mli_tensor& source, const mli_tensor& destination, const Mode& mode);

/// How often kernels were bound for a form that was not known.
struct KernelStatistics {
  uint64_t bound = 0;
  uint64_t code_compiled = 0;  ///< pieces of machine code
};

/// Bound kernels by form. Thread safe. Holds a bounded number of forms: when there are too many,
/// all are forgotten (code that they share stays in the runtime's cache).
class ConversionKernels {
 public:
  /// The process's own.
  static ConversionKernels& shared();

  /// Found, or compiled and bound. Throws std::bad_alloc.
  Result<BoundKernel> find(const ConversionForm& form);
  KernelStatistics statistics() const;

 private:
  static constexpr size_t most_forms = 4096;

  struct Hash {
    size_t operator()(const ConversionForm& form) const;
  };

  explicit ConversionKernels(Runtime runtime) : runtime_(std::move(runtime)) {}
  Result<BoundKernel> bind(const ConversionForm& form) const;

  const Runtime runtime_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<ConversionForm, BoundKernel, Hash> kernels_;
  uint64_t bound_ = 0;
};

/// The inputs of a form's kernel: the source, then the parameters of the source and of the
/// destination: scale, fractional bits, zero point, as far as their formats have them.
inline constexpr size_t most_inputs = 7;

}  // namespace castor::mli
