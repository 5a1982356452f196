// SPDX-License-Identifier: Apache-2.0
#include "runtime/mli/mode.hpp"

#include <atomic>
#include <cstring>

// The build may configure other defaults: names of the enumerations in castor/mli.h.
#ifndef CASTOR_MLI_DEFAULT_ARITHMETIC
#define CASTOR_MLI_DEFAULT_ARITHMETIC CASTOR_MLI_EMBARC
#endif
#ifndef CASTOR_MLI_DEFAULT_ROUNDING
#define CASTOR_MLI_DEFAULT_ROUNDING CASTOR_MLI_UP
#endif

namespace castor::mli {

namespace {

/// Both in one object, so that no thread sees one of them old and the other new.
std::atomic<Mode> mode = Mode{CASTOR_MLI_DEFAULT_ARITHMETIC, CASTOR_MLI_DEFAULT_ROUNDING};
static_assert(std::atomic<Mode>::is_always_lock_free);

/// What a C program handed in, which may be any number.
template <class Enum>
uint32_t number_of(const Enum& value) {
  uint32_t number = 0;
  static_assert(sizeof(number) == sizeof(value));
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

}  // namespace

Mode current_mode() { return mode.load(std::memory_order_relaxed); }

}  // namespace castor::mli

extern "C" {

mli_status castor_mli_set_arithmetic(castor_mli_arithmetic arithmetic,
                                     castor_mli_rounding rounding) {
  using castor::mli::number_of;
  if (number_of(arithmetic) > CASTOR_MLI_EMBARC) return MLI_STATUS_ARGUMENT_ERROR;
  if (number_of(rounding) > CASTOR_MLI_CONVERGENT) return MLI_STATUS_ARGUMENT_ERROR;
  castor::mli::mode.store({arithmetic, rounding}, std::memory_order_relaxed);
  return MLI_STATUS_OK;
}

void castor_mli_get_arithmetic(castor_mli_arithmetic* arithmetic, castor_mli_rounding* rounding) {
  const castor::mli::Mode mode = castor::mli::current_mode();
  if (arithmetic != nullptr) *arithmetic = mode.arithmetic;
  if (rounding != nullptr) *rounding = mode.rounding;
}

}  // extern "C"
