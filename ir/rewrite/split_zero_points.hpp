// SPDX-License-Identifier: Apache-2.0
// Matrix products whose zero points no single convolution can take.
#pragma once

#include <string>

#include "ir/function.hpp"

namespace castor {

/// Writes each product that has zero points of b by column, and zero points of a by row or a b of
/// several batches, as
///   sum over k of (a - a_zero_point) * b  -  b_zero_point * sum over k of (a - a_zero_point),
/// which is equal modulo 2^32: two products and an elementwise correction, which becomes an
/// epilogue. Unknown extents of parameters get names, so that the operations can say them. Products
/// stay whose K, or, by an a of rank 1, several of whose batches have unknown extents that are no
/// parameter's; `one_convolution_suffices` holds for all others then. Returns the same pointer when
/// nothing changes. Thread safe.
FunctionPtr split_zero_points(const FunctionPtr& function);

/// Whether one convolution computes a `matmul_integer`, whatever extents are bound: b has one zero
/// point, or a has one and b is a single matrix.
CASTOR_API bool one_convolution_suffices(const Function& function, const Operation& matmul);

/// Why a function after `split_zero_points` cannot be compiled; empty where it can.
CASTOR_API std::string reason_not_split(const Function& function);

}  // namespace castor
