// SPDX-License-Identifier: Apache-2.0
// Tensors of the C API as those of the C++ API. What is given is checked as far as it cannot be
// said in C++.
#pragma once

#include <castor/c/function.h>

#include <castor/castor.hpp>

#include <string_view>

#include "runtime/c/element_numbers.hpp"
#include "runtime/c/handles.hpp"

namespace castor::c {

/// The numbers of an enumeration in C are those in C++ plus 1, as 0 is none; but element types have
/// a table.
inline castor_tier to_c(Tier tier) { return static_cast<int32_t>(tier) + 1; }
inline castor_tier to_c(const std::optional<Tier>& tier) {
  return tier ? to_c(*tier) : CASTOR_TIER_NONE;
}
inline castor_engine to_c(Engine engine) { return static_cast<int32_t>(engine) + 1; }

/// `what` names the owner in messages, here and below.
Result<ElementType> element_of(castor_element_type type, std::string_view what);
Result<TensorType> type_of(const castor_tensor_type& type, std::string_view what);
Result<WrittenType> written_type_of(const castor_tensor_type& type, std::string_view what);
Result<Dims> dims_of(const castor_extents& extents, std::string_view what);
Result<ConvertOptions> convert_options_of(const castor_convert_options* options);

/// What a message calls a view: "source", or "input 2". Made where there is a mistake to tell.
struct ViewName {
  static constexpr size_t alone = SIZE_MAX;
  const char* what;
  size_t index = alone;
};

/// Completes `to`. Allocates nothing but for a mistake's message.
template <class Pointer>
Status read_view(const castor_view& view, const ViewName& name, BasicView<Pointer>& to);

/// A type in C, to be settled by its owner; names and parameters stay where they are.
TypeInC in_c(const TensorType& type, const std::string& name);

}  // namespace castor::c
