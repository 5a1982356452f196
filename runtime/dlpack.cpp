// SPDX-License-Identifier: Apache-2.0
#include <castor/dlpack.hpp>

#include <fmt/format.h>

#include <array>
#include <optional>
#include <span>

#include "ir/support/guarded.hpp"
#include "ir/types/storage.hpp"

namespace castor {

namespace {

constexpr int32_t cpu = 1;  // kDLCPU

/// An element type by DLDataTypeCode and bits.
struct Counterpart {
  uint8_t code;
  ElementType element;
};

/// DLPack 1.1, DLDataTypeCode; bits are those of the element type.
constexpr std::array counterparts = {
    Counterpart{0, ElementType::i2},  // kDLInt
    Counterpart{0, ElementType::i4},          Counterpart{0, ElementType::i8},
    Counterpart{0, ElementType::i16},         Counterpart{0, ElementType::i32},
    Counterpart{0, ElementType::i64},         Counterpart{1, ElementType::u1_lsb_first},  // kDLUInt
    Counterpart{1, ElementType::u2},          Counterpart{1, ElementType::u3},
    Counterpart{1, ElementType::u4},          Counterpart{1, ElementType::u6},
    Counterpart{1, ElementType::u8},          Counterpart{1, ElementType::u16},
    Counterpart{1, ElementType::u32},         Counterpart{1, ElementType::u64},
    Counterpart{2, ElementType::f16},  // kDLFloat
    Counterpart{2, ElementType::f32},         Counterpart{2, ElementType::f64},
    Counterpart{4, ElementType::bf16},         // kDLBfloat
    Counterpart{6, ElementType::boolean},      // kDLBool
    Counterpart{10, ElementType::f8e4m3},      // kDLFloat8_e4m3fn
    Counterpart{11, ElementType::f8e4m3fnuz},  // kDLFloat8_e4m3fnuz
    Counterpart{12, ElementType::f8e5m2},      // kDLFloat8_e5m2
    Counterpart{13, ElementType::f8e5m2fnuz},  // kDLFloat8_e5m2fnuz
    Counterpart{14, ElementType::f8e8m0},      // kDLFloat8_e8m0fnu
    Counterpart{15, ElementType::f6e2m3},      // kDLFloat6_e2m3fn
    Counterpart{16, ElementType::f6e3m2},      // kDLFloat6_e3m2fn
    Counterpart{17, ElementType::f4e2m1},      // kDLFloat4_e2m1fn
};

constexpr std::array<std::string_view, 18> code_names = {"int",
                                                         "uint",
                                                         "float",
                                                         "opaque handle",
                                                         "bfloat",
                                                         "complex",
                                                         "bool",
                                                         "float8_e3m4",
                                                         "float8_e4m3",
                                                         "float8_e4m3b11fnuz",
                                                         "float8_e4m3fn",
                                                         "float8_e4m3fnuz",
                                                         "float8_e5m2",
                                                         "float8_e5m2fnuz",
                                                         "float8_e8m0fnu",
                                                         "float6_e2m3fn",
                                                         "float6_e3m2fn",
                                                         "float4_e2m1fn"};

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }
Error unsupported(std::string message) { return {ErrorCode::unsupported, std::move(message)}; }

std::string in_words(const DlpackFields& fields) {
  const std::string name = fields.code < code_names.size() ? std::string(code_names[fields.code])
                                                           : fmt::format("code {}", fields.code);
  return fmt::format("{} of {} bits, {} lane{}", name, fields.bits, fields.lanes,
                     fields.lanes == 1 ? "" : "s");
}

Result<ElementType> element_of(const DlpackFields& fields, uint64_t flags) {
  if (fields.lanes != 1) {
    return unsupported(fmt::format("DLPack tensor of {}; expected 1 lane", in_words(fields)));
  }
  for (const Counterpart& each : counterparts) {
    if (each.code != fields.code || bits_of(each.element) != fields.bits) continue;
    if (is_sub_byte(each.element) && (flags & dlpack_padded) != 0) {
      return unsupported(
          fmt::format("DLPack tensor of {}, each padded to a byte; expected packed elements",
                      in_words(fields)));
    }
    return each.element;
  }
  return unsupported(
      fmt::format("DLPack tensor of {}; castor has no such element type (see castor/dlpack.hpp)",
                  in_words(fields)));
}

Status check_memory(const DlpackFields& fields) {
  if (fields.device_type != cpu) {
    return unsupported(fmt::format("DLPack tensor on a device of type {}; expected {} (CPU)",
                                   fields.device_type, cpu));
  }
  if (fields.rank < 0 || fields.rank > max_rank) {
    return invalid(
        fmt::format("DLPack tensor of {} dimensions; expected 0 to {}", fields.rank, max_rank));
  }
  if (fields.rank > 0 && fields.shape == nullptr) {
    return invalid(
        fmt::format("DLPack tensor without a shape (null); expected {} extents", fields.rank));
  }
  if (fields.byte_offset > uint64_t{INT64_MAX}) {
    return invalid(fmt::format("DLPack tensor at byte offset {}; expected less than 2^63",
                               fields.byte_offset));
  }
  return {};
}

/// Number of the last element, counted along the strides; `view` has elements.
Result<int64_t> last_element(const View& view) {
  int64_t last = 0;
  for (int axis = 0; axis < view.shape.rank(); ++axis) {
    const int64_t extent = view.shape[axis];
    const int64_t stride = view.strides[axis];
    if (extent == 1) continue;
    if (stride <= 0) {
      return invalid(
          fmt::format("DLPack tensor with stride {} on axis {} of shape {}; expected a "
                      "positive stride",
                      stride, axis, to_string(view.shape)));
    }
    int64_t reach = 0;
    if (__builtin_mul_overflow(stride, extent - 1, &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      last = INT64_MAX;
      break;
    }
  }
  if (last < INT64_MAX && byte_size(view.element, last + 1)) return last;
  return invalid(
      fmt::format("DLPack tensor with strides {} over shape {} reaches beyond 2^63 bytes",
                  to_string(view.strides), to_string(view.shape)));
}

Result<View> make_view(const DlpackFields& fields, uint64_t flags) {
  if (Status status = check_memory(fields); !status) return status.error();
  const Result<ElementType> element = element_of(fields, flags);
  if (!element.ok()) return element.error();
  const auto rank = static_cast<size_t>(fields.rank);
  View view;
  view.element = *element;
  if (rank > 0) view.shape = Dims(std::span(fields.shape, rank));
  bool is_empty = false;
  for (int axis = 0; axis < view.shape.rank(); ++axis) {
    is_empty = is_empty || view.shape[axis] == 0;
    if (view.shape[axis] >= 0) continue;
    return invalid(fmt::format("DLPack tensor of shape {}; expected extents of 0 or more",
                               to_string(view.shape)));
  }
  view.strides = fields.strides == nullptr || rank == 0 ? dense_strides(view.shape)
                                                        : Dims(std::span(fields.strides, rank));
  if (is_empty) return view;
  const Result<int64_t> last = last_element(view);
  if (!last.ok()) return last.error();
  if (fields.data == nullptr) {
    return invalid(
        fmt::format("DLPack tensor without data (null) of shape {}", to_string(view.shape)));
  }
  view.data = static_cast<std::byte*>(fields.data) + fields.byte_offset;
  view.bytes = static_cast<size_t>(*byte_size(view.element, *last + 1));
  return view;
}

Result<DlpackFields> make_fields(const View& view) {
  DlpackFields fields;
  const auto counterpart = [&]() -> std::optional<uint8_t> {
    for (const Counterpart& each : counterparts) {
      if (each.element == view.element) return each.code;
    }
    return std::nullopt;
  }();
  if (!is_element_type(view.element)) {
    return invalid(fmt::format("view of element type number {}; expected 0 to {}",
                               static_cast<int>(view.element), element_type_count - 1));
  }
  if (!counterpart) {
    return unsupported(
        fmt::format("element type {} has no counterpart in DLPack", name_of(view.element)));
  }
  if (view.shape.rank() > max_rank || view.strides.rank() != view.shape.rank()) {
    return invalid(
        fmt::format("view of {} extents and {} strides; expected equal numbers, up to {}",
                    view.shape.rank(), view.strides.rank(), max_rank));
  }
  if (view.offset < 0) {
    return invalid(fmt::format("view at offset {}; expected 0 or more", view.offset));
  }
  if (view.offset % aligned_elements(view.element) != 0) {
    return unsupported(
        fmt::format("view at offset {} of {}, inside a byte; expected a multiple of "
                    "{} elements for DLPack",
                    view.offset, name_of(view.element), aligned_elements(view.element)));
  }
  fields.data = view.data;
  fields.device_type = cpu;
  fields.rank = view.shape.rank();
  fields.code = *counterpart;
  fields.bits = static_cast<uint8_t>(bits_of(view.element));
  fields.byte_offset = static_cast<uint64_t>(storage_byte(view.element, view.offset));
  return fields;
}

}  // namespace

Result<View> view_of_dlpack_fields(const DlpackFields& fields, uint64_t flags) {
  return guarded([&] { return make_view(fields, flags); });
}

Result<DlpackFields> dlpack_fields_of_view(const View& view) {
  return guarded([&] { return make_fields(view); });
}

namespace detail {

Status check_dlpack_version(uint32_t major, uint32_t minor) {
  constexpr uint32_t known = 1;
  if (major == known) return {};
  return guarded([&]() -> Status {
    return unsupported(
        fmt::format("DLPack tensor of version {}.{}; expected {}.x", major, minor, known));
  });
}

Error dlpack_is_read_only() {
  return guarded(
      [] { return invalid("DLPack tensor that is read only; expected one that may be written"); });
}

}  // namespace detail

}  // namespace castor
