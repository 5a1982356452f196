# SPDX-License-Identifier: Apache-2.0
"""The shared library and the functions of its C API.

It is libcastor.so beside this file, or the one that the environment variable CASTOR_LIBRARY names.
ctypes releases the GIL while a function of it runs.
"""

from __future__ import annotations

import os
from ctypes import (
    CDLL,
    POINTER,
    byref,
    c_char_p,
    c_int32,
    c_size_t,
    c_uint32,
    c_void_p,
    string_at,
)
from typing import Any, Callable, List, Optional

from castor._structures import (
    ErrorStructure,
    Extents,
    ParseOptions,
    RuntimeOptions,
    TensorType,
    View,
)
from castor.errors import BY_STATUS, Error, InternalError

ABI_VERSION = 1
"""CASTOR_ABI_VERSION of the headers that _structures.py copies."""


def _load() -> CDLL:
    bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libcastor.so")
    path = os.environ.get("CASTOR_LIBRARY") or bundled
    try:
        return CDLL(path)
    except OSError as failure:
        raise ImportError(
            f"castor's library does not load: {failure}; it is expected at {path}"
            " (the environment variable CASTOR_LIBRARY names another one)"
        ) from failure


library = _load()


def exception_of(error: ErrorStructure) -> Error:
    """The exception that stands for a failed call."""
    kind = BY_STATUS.get(error.status, InternalError)
    return kind(error.message.decode("utf-8", "replace"), error.line, error.column)


def plain(name: str, result: Any, *arguments: Any) -> Any:
    """A function that cannot fail."""
    function = library[name]
    function.restype = result
    function.argtypes = arguments
    return function


def checked(name: str, *arguments: Any) -> Callable[..., None]:
    """A function that gives a status and, by its last parameter, an error: it raises instead."""
    function = library[name]
    function.restype = c_int32
    function.argtypes = [*arguments, POINTER(ErrorStructure)]

    def call(*given: Any) -> None:
        error = ErrorStructure()
        if function(*given, byref(error)):
            raise exception_of(error)

    return call


class Handle:
    """A handle of the C API, which is destroyed with the object."""

    __slots__ = ("_destroy", "pointer")

    def __init__(self, destroy: Callable[[c_void_p], None]) -> None:
        self._destroy = destroy
        self.pointer = c_void_p()

    def __del__(self) -> None:
        self._destroy(self.pointer)


_handle = POINTER(c_void_p)

checked("castor_check_abi", c_uint32)(ABI_VERSION)

version_string = plain("castor_version_string", c_char_p)
element_name = plain("castor_element_name", c_char_p, c_int32)
element_named = plain("castor_element_named", c_int32, c_char_p)
element_bits = plain("castor_element_bits", c_int32, c_int32)
tier_name = plain("castor_tier_name", c_char_p, c_int32)

text_data = plain("castor_text_data", c_void_p, c_void_p)
text_length = plain("castor_text_length", c_size_t, c_void_p)
text_destroy = plain("castor_text_destroy", None, c_void_p)

runtime_create = checked("castor_runtime_create", POINTER(RuntimeOptions), _handle)
runtime_destroy = plain("castor_runtime_destroy", None, c_void_p)
runtime_tier = plain("castor_runtime_tier", c_int32, c_void_p)
runtime_compile = checked("castor_runtime_compile", c_void_p, c_void_p, _handle)

function_parse = checked(
    "castor_function_parse", c_char_p, c_size_t, c_char_p, POINTER(ParseOptions), _handle
)
function_destroy = plain("castor_function_destroy", None, c_void_p)
function_print = checked("castor_function_print", c_void_p, _handle)
function_name = plain("castor_function_name", c_char_p, c_void_p)
function_input_count = plain("castor_function_input_count", c_size_t, c_void_p)
function_output_count = plain("castor_function_output_count", c_size_t, c_void_p)
function_input_name = plain("castor_function_input_name", c_char_p, c_void_p, c_size_t)
function_output_name = plain("castor_function_output_name", c_char_p, c_void_p, c_size_t)
function_input_type = plain("castor_function_input_type", POINTER(TensorType), c_void_p, c_size_t)
function_output_type = plain("castor_function_output_type", POINTER(TensorType), c_void_p, c_size_t)
function_dump = checked("castor_function_dump", c_void_p, c_int32, c_int32, c_int32, _handle)

kernel_destroy = plain("castor_kernel_destroy", None, c_void_p)
kernel_function = plain("castor_kernel_function", c_void_p, c_void_p)
kernel_bind = checked(
    "castor_kernel_bind",
    c_void_p,
    POINTER(Extents),
    c_size_t,
    POINTER(Extents),
    c_size_t,
    c_void_p,
    _handle,
)
kernel_bind_views = checked(
    "castor_kernel_bind_views",
    c_void_p,
    POINTER(View),
    c_size_t,
    POINTER(View),
    c_size_t,
    c_void_p,
    _handle,
)
bound_kernel_destroy = plain("castor_bound_kernel_destroy", None, c_void_p)
bound_kernel_output_shape = plain("castor_bound_kernel_output_shape", Extents, c_void_p, c_size_t)
bound_kernel_engine_reason = plain("castor_bound_kernel_engine_reason", c_char_p, c_void_p)
bound_kernel_listing = checked("castor_bound_kernel_listing", c_void_p, _handle)

bound_kernel_run = library["castor_bound_kernel_run"]
"""Without types of parameters: ctypes would check them in every call. _bound.py prepares them."""

thread_pool_create = checked("castor_thread_pool_create", c_int32, _handle)
thread_pool_destroy = plain("castor_thread_pool_destroy", None, c_void_p)
thread_pool_executor = plain("castor_thread_pool_executor", c_void_p, c_void_p)


def text_of(make: Callable[..., None], *arguments: Any) -> str:
    """The text that a call makes."""
    text = Handle(text_destroy)
    make(*arguments, byref(text.pointer))
    return string_at(text_data(text.pointer), text_length(text.pointer)).decode("utf-8")


def decoded(name: Optional[bytes]) -> str:
    """A name that the C API gives."""
    return "" if name is None else name.decode("utf-8")


def names(count: int, name: Callable[[int], Optional[bytes]]) -> List[str]:
    """The names of the first `count` indices."""
    return [decoded(name(index)) for index in range(count)]
