// SPDX-License-Identifier: Apache-2.0
// Matrix products whose zero points no single convolution takes, or takes as fast.
#pragma once

#include <string>

#include "ir/function.hpp"

namespace castor {

/// Writes products as ones without some of their zero points and a correction, equal modulo 2^32:
/// - with zero points of a by row, where b and its zero points are constants, as
///   sum over k of a * (b - b_zero_point)  -  a_zero_point * sum over k of (b - b_zero_point),
///   where the second sum is a constant: b is packed ahead;
/// - with zero points of b by column, where others of a by row or several b keep one convolution
///   from taking them, as
///   sum over k of (a - a_zero_point) * b  -  b_zero_point * sum over k of (a - a_zero_point),
///   where the second sum is a product with ones.
/// The correction becomes a part of the epilogue. Unknown extents of parameters get names, so that
/// the operations can say them. Products of the second kind stay whose K, or, by an a of rank 1,
/// several of whose batches have unknown extents that are no parameter's;
/// `one_convolution_suffices` holds for all others then. Returns the same pointer when nothing
/// changes. Thread safe.
FunctionPtr split_zero_points(const FunctionPtr& function);

/// Whether one convolution computes a `matmul_integer`, whatever extents are bound: b has one zero
/// point, or a has one and b is a single matrix.
CASTOR_API bool one_convolution_suffices(const Function& function, const Operation& matmul);

/// Why a function after `split_zero_points` cannot be compiled; empty where it can.
CASTOR_API std::string reason_not_split(const Function& function);

}  // namespace castor
