// SPDX-License-Identifier: Apache-2.0
// Version, ABI, status codes and texts of castor's C API. Include castor/castor.h.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "castor/export.h"

#ifdef __cplusplus
#define CASTOR_NOEXCEPT noexcept
extern "C" {
#else
#define CASTOR_NOEXCEPT
#endif

/// The version of these headers (semantic versioning).
#define CASTOR_VERSION_MAJOR 0
#define CASTOR_VERSION_MINOR 1
#define CASTOR_VERSION_PATCH 0

/// Changes when a program that was compiled with older headers must be compiled again. Values and
/// fields that are added at an end do not change it.
#define CASTOR_ABI_VERSION 1

/// What became of a call. An int32_t, here and for every other set of names, so that its size is
/// fixed and any value that is passed can be checked.
typedef int32_t castor_status;
enum {
  CASTOR_OK = 0,
  CASTOR_INVALID_TEXT = 1,       ///< a text does not parse; line and column are set
  CASTOR_INVALID_FUNCTION = 2,   ///< a function breaks a rule (types, shapes, attributes)
  CASTOR_INVALID_ARGUMENT = 3,   ///< NULL, or views, shapes, strides or options that do not fit
  CASTOR_UNSUPPORTED = 4,        ///< well formed, but not implemented, here or on this machine
  CASTOR_OUT_OF_MEMORY = 5,      ///< an allocation was refused
  CASTOR_EXECUTABLE_MEMORY = 6,  ///< the system refuses memory that can be executed
  CASTOR_IO = 7,                 ///< a file cannot be read or written
  CASTOR_INTERNAL = 8,           ///< a bug in castor
  CASTOR_LIMIT_EXCEEDED = 9      ///< a text or function is larger than castor_compile_limits
};

/// The code's name, e.g. "invalid_text" ("ok" for success, "unknown" for any other number). Lives
/// for ever.
CASTOR_API const char* castor_status_name(castor_status status) CASTOR_NOEXCEPT;

/// Bytes of a message, with its final zero.
#define CASTOR_MESSAGE_BYTES 1024

/// Why a call failed. The caller owns it; every function that takes one also takes NULL. On success
/// the call sets the status to CASTOR_OK, line and column to 0 and the message to "".
typedef struct castor_error {
  castor_status status;  ///< what the call returned
  uint32_t line;         ///< in the text that was compiled, from 1; 0: not from a text
  uint32_t column;       ///< counts bytes from 1
  /// A sentence that says what was found, what was expected and where, in UTF-8. A longer one ends
  /// in "..." after its last whole character that fits.
  char message[CASTOR_MESSAGE_BYTES];
} castor_error;

/// The version of the library that runs, "major.minor.patch". Lives for ever.
CASTOR_API const char* castor_version_string(void) CASTOR_NOEXCEPT;

/// Whether the library that runs fits these headers: call castor_check_abi(CASTOR_ABI_VERSION,
/// &error) where they may have been installed apart. CASTOR_UNSUPPORTED if not, with both numbers.
CASTOR_API castor_status castor_check_abi(uint32_t abi_version,
                                          castor_error* error) CASTOR_NOEXCEPT;

/// A text that a call made, of any length. The caller owns it.
typedef struct castor_text castor_text;

/// Its bytes in UTF-8, with a zero after them; they live as long as the text. NULL gives "".
CASTOR_API const char* castor_text_data(const castor_text* text) CASTOR_NOEXCEPT;
/// Bytes without the final zero; 0 for NULL.
CASTOR_API size_t castor_text_length(const castor_text* text) CASTOR_NOEXCEPT;
CASTOR_API void castor_text_destroy(castor_text* text) CASTOR_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif
