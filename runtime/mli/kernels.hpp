// SPDX-License-Identifier: Apache-2.0
// Kernels of conversions by form, shared by the whole process.
#pragma once

#include <castor/castor.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "runtime/fork_private.hpp"
#include "runtime/mli/mode.hpp"
#include "runtime/mli/tensor.hpp"

namespace castor::mli {

/// What a kernel depends on: all of two tensors but data and parameters, and the arithmetic.
/// Without padding: forms are compared and hashed word by word.
struct ConversionForm {
  uint16_t source_type = 0;
  uint16_t destination_type = 0;
  int8_t source_axis = -1;  ///< axis of parameters; -1: of the whole tensor, or fx, or fp32
  int8_t destination_axis = -1;
  uint8_t rank = 0;
  bool is_exact = false;
  /// Entries from `rank` on are 0.
  std::array<uint32_t, MLI_MAX_RANK> shape = {};
  std::array<int32_t, MLI_MAX_RANK> source_strides = {};
  std::array<int32_t, MLI_MAX_RANK> destination_strides = {};
  uint64_t is_convergent = 0;

  using Words = std::array<uint64_t, 8>;
  Words words() const { return std::bit_cast<Words>(*this); }
  friend bool operator==(const ConversionForm& a, const ConversionForm& b) {
    return a.words() == b.words();
  }
};

/// The first `rank` entries.
template <class Int>
Dims dims_of(const std::array<Int, MLI_MAX_RANK>& numbers, int rank) {
  Dims dims;
  for (int axis = 0; axis < rank; ++axis) dims.push_back(numbers[static_cast<size_t>(axis)]);
  return dims;
}

/// The form of a conversion that passed its checks.
ConversionForm form_of(const mli_tensor& source, const mli_tensor& destination, const Mode& mode);

/// How often kernels were bound for a form that was not known.
struct KernelStatistics {
  uint64_t bound = 0;
  uint64_t code_compiled = 0;  ///< pieces of machine code
};

/// Bound kernels by form. Thread safe. Holds a bounded number of forms: when there are too many,
/// all are forgotten (code that they share stays in the runtime's cache). A forked child begins
/// with none, and without a lock that a thread of its parent may hold.
class ConversionKernels {
 public:
  /// The process's own.
  static ConversionKernels& shared();

  /// Found, or compiled and bound; stays where it is. Throws std::bad_alloc.
  Result<std::shared_ptr<const BoundKernel>> find(const ConversionForm& form);
  KernelStatistics statistics() const;

 private:
  static constexpr size_t max_forms = 4096;

  struct Hash {
    size_t operator()(const ConversionForm& form) const;
  };

  struct Table {
    std::shared_mutex mutex;
    std::unordered_map<ConversionForm, std::shared_ptr<const BoundKernel>, Hash> kernels;
    uint64_t bound = 0;
  };

  explicit ConversionKernels(Runtime runtime) : runtime_(std::move(runtime)) {}
  Result<BoundKernel> bind(const ConversionForm& form) const;

  const Runtime runtime_;
  mutable ForkPrivate<Table> table_{jit::SystemCalls::real()};
};

/// The inputs of a form's kernel: the source, then the parameters of the source and of the
/// destination: scale, fractional bits, zero point, as far as their formats have them.
inline constexpr size_t max_inputs = 7;

}  // namespace castor::mli
