// SPDX-License-Identifier: Apache-2.0
// Broadcasting: which axes of a result the axes of an operand are aligned with, and the result's
// shape. Sources: OpenVINO's broadcast rules; ir/README.md, Broadcasting.
#pragma once

#include <span>
#include <vector>

#include "ir/function.hpp"
#include "ir/support/export.hpp"

namespace castor {

enum class BroadcastMode : uint8_t {
  numpy,          ///< right aligned; extents are equal, or one of them is 1
  none,           ///< equal shapes
  pdpd,           ///< B is aligned with A's axes from `axis` on; the result has A's shape
  bidirectional,  ///< `broadcast` only: as numpy, and the result may be larger than the target
  explicitly,     ///< `broadcast` only: `axes` names the target's axis of each axis of the data
  blocked,  ///< B is aligned right with A; along `axes` of A, each of its elements serves a block
};

/// How the attributes of an operation say that shapes are broadcast.
struct BroadcastRule {
  BroadcastMode mode = BroadcastMode::numpy;
  /// For pdpd: A's axis that B's first one is aligned with; -1 stands for rank(A) - rank(B).
  int64_t axis = -1;
  /// For explicitly: one for each axis of the data; for blocked: A's axes with blocks. Ascending.
  std::vector<int64_t> axes{};
  /// For blocked: for each of `axes`, the elements of A along it that share one of B. The last
  /// block may be short.
  std::vector<int64_t> block{};
};

/// The rule of an operation with the attribute `broadcast`, or of `broadcast` (`mode`). The error
/// says which attribute does not fit, what was found and what was expected.
CASTOR_API Result<BroadcastRule> broadcast_rule(const Operation& operation);

/// The attributes that say this rule; defaults are not written.
CASTOR_API Attributes attributes_of(OpKind op, const BroadcastRule& rule);

/// The shape of an elementwise operation's result (numpy, none, pdpd, blocked); `operands` are two
/// or three shapes, for pdpd and blocked A and B. Trailing ones of B after A's last axis are
/// ignored. Unknown extents: what they must be for the rule to hold is taken for granted, and
/// checked where extents are bound: n other than 1 with an unknown gives n, 1 with an unknown gives
/// the unknown, equal names give the name, other unknowns `?` (none and pdpd: A's). The error names
/// two shapes, the axis and the rule.
CASTOR_API Result<Shape> broadcast_shapes(OpKind op, const BroadcastRule& rule,
                                          std::span<const Shape* const> operands);
/// Applies the same rules, with the same messages, to extents.
CASTOR_API Result<Dims> broadcast_shapes(OpKind op, const BroadcastRule& rule,
                                         std::span<const Dims* const> operands);

/// The shape that `broadcast` gives data: the target, but for bidirectional the broadcast shape of
/// both. pdpd and blocked take the target as A, the data as B.
CASTOR_API Result<Shape> broadcast_to_target(const BroadcastRule& rule, const Shape& data,
                                             const Shape& target);
CASTOR_API Result<Dims> broadcast_to_target(const BroadcastRule& rule, const Dims& data,
                                            const Dims& target);

/// For each axis of operand `operand` (of rank `operand_rank`) of an elementwise operation, of a
/// `look_up` or of a `broadcast`, the axis of the result (of rank `result_rank`) that it is aligned
/// with, or -1 for one of extent 1 that is aligned with none (pdpd: trailing ones after A's last
/// axis), and for the entries of a table. An operand axis of extent 1 repeats its element along the
/// result's axis, as do result axes without an operand axis. The operation is verified: ranks and
/// attributes fit. Depends on ranks and attributes only.
CASTOR_API Dims axes_along_result(const Operation& operation, size_t operand, int operand_rank,
                                  int result_rank);

/// For each axis of the same operand, how many consecutive elements along the result's axis each of
/// its elements serves: 1 but for axes with blocks. Element i of the result belongs to element
/// i / block of the operand.
CASTOR_API Dims blocks_along_result(const Operation& operation, size_t operand, int operand_rank,
                                    int result_rank);

}  // namespace castor
