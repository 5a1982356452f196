// SPDX-License-Identifier: Apache-2.0
// Functions of castor's C API: from text, and op by op. Include castor/castor.h.
#pragma once

#include "castor/c/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A verified function. Immutable; any thread may use it, several at a time.
typedef struct castor_function castor_function;

/// Data for `constant @name` in a text.
typedef struct castor_named_constant {
  const char* name;
  const void* data;  ///< dense, in the storage order of the type that the text gives
  size_t bytes;      ///< exactly as many as that type takes
} castor_named_constant;

/// The largest texts and functions that are read and compiled. What exceeds one of them is refused
/// with CASTOR_LIMIT_EXCEEDED; the message names what was found and the limit. Time and memory grow
/// about in proportion to these numbers. 0 is the default. No text is longer, and no function has
/// more operations or values, than the defaults say; of names and nests, more may be allowed.
typedef struct castor_compile_limits {
  size_t struct_size;  ///< sizeof(castor_compile_limits)
  size_t text_bytes;   ///< per text; 16 MiB
  size_t operations;   ///< per function; 65536
  size_t values;       ///< per function, inputs among them; 65536
  size_t name_bytes;   ///< names of one function, its values and unknown extents; 16 MiB
  size_t nests;        ///< loops that one function becomes, when it is compiled; 16384
} castor_compile_limits;
#define CASTOR_COMPILE_LIMITS \
  { sizeof(castor_compile_limits), 0, 0, 0, 0, 0 }

/// How a text is read. A field of zeros is its default.
typedef struct castor_parse_options {
  size_t struct_size;                      ///< sizeof(castor_parse_options)
  const castor_named_constant* constants;  ///< copied; those that the text does not name are let be
  size_t constant_count;
  const castor_compile_limits* limits;  ///< NULL: the defaults
} castor_parse_options;
#define CASTOR_PARSE_OPTIONS \
  { sizeof(castor_parse_options), NULL, 0, NULL }

/// Reads a text of `length` bytes and picks the function of that name, or the only one where `name`
/// is NULL. Of functions that have another name than the one asked for, nothing but the name is
/// looked at: mistakes in them do not matter. `options` may be NULL. On success *function is the
/// caller's, else NULL.
CASTOR_API castor_status castor_function_parse(const char* text, size_t length, const char* name,
                                               const castor_parse_options* options,
                                               castor_function** function,
                                               castor_error* error) CASTOR_NOEXCEPT;
CASTOR_API void castor_function_destroy(castor_function* function) CASTOR_NOEXCEPT;

/// The text form, which castor_function_parse reads back. On success *text is the caller's, else
/// NULL.
CASTOR_API castor_status castor_function_print(const castor_function* function, castor_text** text,
                                               castor_error* error) CASTOR_NOEXCEPT;

// What these give lives as long as the function. They give NULL or 0 for a function that is NULL,
// and for an index that it does not have.

CASTOR_API const char* castor_function_name(const castor_function* function) CASTOR_NOEXCEPT;
CASTOR_API size_t castor_function_input_count(const castor_function* function) CASTOR_NOEXCEPT;
CASTOR_API size_t castor_function_output_count(const castor_function* function) CASTOR_NOEXCEPT;
/// The name without the percent sign; of an output, that of the value that is returned.
CASTOR_API const char* castor_function_input_name(const castor_function* function,
                                                  size_t index) CASTOR_NOEXCEPT;
CASTOR_API const char* castor_function_output_name(const castor_function* function,
                                                   size_t index) CASTOR_NOEXCEPT;
/// The type, unknown extents among them; of an output, as the function declares it.
CASTOR_API const castor_tensor_type* castor_function_input_type(const castor_function* function,
                                                                size_t index) CASTOR_NOEXCEPT;
CASTOR_API const castor_tensor_type* castor_function_output_type(const castor_function* function,
                                                                 size_t index) CASTOR_NOEXCEPT;

/// Collects the inputs and operations of a function. For one thread at a time.
///
/// The first mistake is kept, every later call does nothing, and castor_builder_finish tells it: so
/// no call in between needs a check. What is handed over is copied.
typedef struct castor_builder castor_builder;

/// A value of a builder's function.
typedef uint32_t castor_value;
/// No value: an optional operand that is absent, or what a call gives after a mistake.
#define CASTOR_NO_VALUE UINT32_MAX

/// Begins a function of that name. On success *builder is the caller's, else NULL.
CASTOR_API castor_status castor_builder_create(const char* name, castor_builder** builder,
                                               castor_error* error) CASTOR_NOEXCEPT;
CASTOR_API void castor_builder_destroy(castor_builder* builder) CASTOR_NOEXCEPT;

/// Adds an input. Names (given without the percent sign) are unique; NULL and "" ask for a fresh
/// one, here and below.
CASTOR_API castor_value castor_builder_input(castor_builder* builder, const char* name,
                                             const castor_tensor_type* type) CASTOR_NOEXCEPT;

/// What an attribute's value is.
typedef int32_t castor_attribute_kind;
enum {
  CASTOR_ATTRIBUTE_INTEGER = 1,     ///< `group = 2`: integer
  CASTOR_ATTRIBUTE_FLOAT = 2,       ///< `lo = 0.5`: number
  CASTOR_ATTRIBUTE_BOOLEAN = 3,     ///< `promote_unsafe = true`: integer, 0 or 1
  CASTOR_ATTRIBUTE_IDENTIFIER = 4,  ///< `overflow = saturate`: text
  CASTOR_ATTRIBUTE_STRING = 5,      ///< a text in quotes: text
  CASTOR_ATTRIBUTE_INTEGERS = 6     ///< `pads = [1, 1, 1, 1]`: integers, count
};

/// One attribute of an operation or of the function. Made by the functions below.
typedef struct castor_attribute {
  const char* name;
  castor_attribute_kind kind;
  int64_t integer;
  double number;
  const char* text;
  const int64_t* integers;
  size_t count;
} castor_attribute;

static inline castor_attribute castor_integer_attribute(const char* name, int64_t value) {
  castor_attribute attribute = {name, CASTOR_ATTRIBUTE_INTEGER, value, 0, NULL, NULL, 0};
  return attribute;
}
static inline castor_attribute castor_float_attribute(const char* name, double value) {
  castor_attribute attribute = {name, CASTOR_ATTRIBUTE_FLOAT, 0, value, NULL, NULL, 0};
  return attribute;
}
static inline castor_attribute castor_boolean_attribute(const char* name, bool value) {
  castor_attribute attribute = {name, CASTOR_ATTRIBUTE_BOOLEAN, value, 0, NULL, NULL, 0};
  return attribute;
}
static inline castor_attribute castor_identifier_attribute(const char* name, const char* value) {
  castor_attribute attribute = {name, CASTOR_ATTRIBUTE_IDENTIFIER, 0, 0, value, NULL, 0};
  return attribute;
}
static inline castor_attribute castor_integers_attribute(const char* name, const int64_t* values,
                                                         size_t count) {
  castor_attribute attribute = {name, CASTOR_ATTRIBUTE_INTEGERS, 0, 0, NULL, values, count};
  return attribute;
}

/// The rank of a type of which only the element is written.
#define CASTOR_NO_RANK (-1)

/// One operation: all that a line of the text form can say. A field of zeros is absent.
typedef struct castor_operation {
  size_t struct_size;  ///< sizeof(castor_operation)
  const char* op;      ///< the op's name, e.g. "add": ir/README.md, Ops, lists them
  const castor_value* operands;
  size_t operand_count;  ///< optional operands may be left out at the end
  const castor_attribute* attributes;
  size_t attribute_count;
  /// What the text form writes after the colon, for ops that need it: the element type to convert
  /// or requantize to, the target shape of `broadcast` and `reshape`, the type of a constant.
  /// Elsewhere it is checked. NULL: nothing; CASTOR_NO_ELEMENT: a shape alone; rank CASTOR_NO_RANK:
  /// an element type alone.
  const castor_tensor_type* type;
  const void* data;          ///< a constant's data: dense, in the storage order of its type
  size_t bytes;              ///< a constant's bytes: exactly what the type takes
  const char* binding;       ///< a constant's name, to print it as `@name`; or NULL
  const char* const* names;  ///< one for each result (`convert_promote_types` has two); or NULL
} castor_operation;

/// Adds an operation and gives its first result; further ones are the next values.
CASTOR_API castor_value castor_builder_op(castor_builder* builder,
                                          const castor_operation* operation) CASTOR_NOEXCEPT;

// Shorter forms for what is written most often.

/// An op of one operand without attributes: `castor_builder_unary(b, "relu", x, NULL)`.
CASTOR_API castor_value castor_builder_unary(castor_builder* builder, const char* op,
                                             castor_value x, const char* name) CASTOR_NOEXCEPT;
/// An op of two operands whose shapes broadcast as NumPy's: `castor_builder_binary(b, "add", x, y,
/// NULL)`.
CASTOR_API castor_value castor_builder_binary(castor_builder* builder, const char* op,
                                              castor_value x, castor_value y,
                                              const char* name) CASTOR_NOEXCEPT;
/// A constant of fixed extents.
CASTOR_API castor_value castor_builder_constant(castor_builder* builder,
                                                const castor_tensor_type* type, const void* data,
                                                size_t bytes, const char* name) CASTOR_NOEXCEPT;

/// What becomes of values out of the destination's range.
typedef int32_t castor_overflow;
enum {
  CASTOR_OVERFLOW_BY_TYPE = 0,   ///< integers wrap, float to integer saturates, floats: infinity
  CASTOR_OVERFLOW_SATURATE = 1,  ///< to the largest finite number, infinities too
  CASTOR_OVERFLOW_WRAP = 2,
  CASTOR_OVERFLOW_NAN = 3,
  CASTOR_OVERFLOW_SATURATE_FINITE = 4  ///< as SATURATE, but infinities stay where the type has them
};
/// How values between two of the destination's are rounded.
typedef int32_t castor_rounding;
enum {
  CASTOR_ROUNDING_BY_TYPE = 0,  ///< float to integer toward zero, all else to nearest, ties to even
  CASTOR_ROUNDING_TOWARD_ZERO = 1,
  CASTOR_ROUNDING_NEAREST_EVEN = 2,
  CASTOR_ROUNDING_NEAREST_AWAY = 3,
  CASTOR_ROUNDING_DOWN = 4,
  CASTOR_ROUNDING_UP = 5,
  CASTOR_ROUNDING_HALF_UP = 6  ///< floor(x + 1/2)
};
/// What a NaN becomes in a format without one.
typedef int32_t castor_nan_mode;
enum { CASTOR_NAN_BY_TYPE = 0, CASTOR_NAN_ZERO = 1 };

/// How a conversion goes; ir/README.md, Convert, says which options two types admit. A field of
/// zeros is its default.
typedef struct castor_convert_options {
  size_t struct_size;  ///< sizeof(castor_convert_options)
  castor_overflow overflow;
  castor_rounding rounding;
  castor_nan_mode nan;
  int32_t reserved;  ///< 0
} castor_convert_options;
#define CASTOR_CONVERT_OPTIONS                                                        \
  {                                                                                   \
    sizeof(castor_convert_options), CASTOR_OVERFLOW_BY_TYPE, CASTOR_ROUNDING_BY_TYPE, \
        CASTOR_NAN_BY_TYPE, 0                                                         \
  }

/// `x` converted elementwise. `options` may be NULL.
CASTOR_API castor_value castor_builder_convert(castor_builder* builder, castor_value x,
                                               castor_element_type to,
                                               const castor_convert_options* options,
                                               const char* name) CASTOR_NOEXCEPT;

/// Adds an attribute of the function: `castor_identifier_attribute("excess_precision", "allow")`.
CASTOR_API void castor_builder_attribute(castor_builder* builder,
                                         const castor_attribute* attribute) CASTOR_NOEXCEPT;

/// Names the function's next output and, where `declared` is not NULL, its declared type.
CASTOR_API void castor_builder_output(castor_builder* builder, castor_value value,
                                      const castor_tensor_type* declared) CASTOR_NOEXCEPT;

/// Verifies the function, or tells the first mistake. On success *function is the caller's, else
/// NULL. The builder is spent either way, and is only good for castor_builder_destroy.
CASTOR_API castor_status castor_builder_finish(castor_builder* builder, castor_function** function,
                                               castor_error* error) CASTOR_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif
