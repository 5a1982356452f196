// SPDX-License-Identifier: Apache-2.0
// fmt's own code, compiled into libraries that programs load: hosts have none of fmt, and Debian no
// static one.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
// What the header declares as templates of the library.
template FMT_API locale_ref::locale_ref(const std::locale& loc);
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;
template FMT_API auto dragonbox::to_decimal(float x) -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double x) -> dragonbox::decimal_fp<double>;
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
}  // namespace detail
FMT_END_NAMESPACE
