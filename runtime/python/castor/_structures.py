# SPDX-License-Identifier: Apache-2.0
"""The structures of castor's C API (castor/c/*.h) as ctypes knows them, field by field."""

from __future__ import annotations

from ctypes import (
    POINTER,
    Structure,
    c_char,
    c_char_p,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
)


class ErrorStructure(Structure):
    """castor_error."""

    _fields_ = [
        ("status", c_int32),
        ("line", c_uint32),
        ("column", c_uint32),
        ("message", c_char * 1024),
    ]


class Dim(Structure):
    """castor_dim."""

    _fields_ = [("extent", c_int64), ("name", c_char_p)]


class TensorType(Structure):
    """castor_tensor_type. Its quantization is not read."""

    _fields_ = [
        ("element", c_int32),
        ("rank", c_int32),
        ("dims", POINTER(Dim)),
        ("quantization", c_void_p),
    ]


class Extents(Structure):
    """castor_extents."""

    _fields_ = [("values", POINTER(c_int64)), ("rank", c_int32)]


class View(Structure):
    """castor_view."""

    _fields_ = [
        ("data", c_void_p),
        ("element", c_int32),
        ("rank", c_int32),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("offset", c_int64),
        ("bytes", c_size_t),
    ]


class NamedConstant(Structure):
    """castor_named_constant."""

    _fields_ = [("name", c_char_p), ("data", c_void_p), ("bytes", c_size_t)]


class ParseOptions(Structure):
    """castor_parse_options."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("constants", POINTER(NamedConstant)),
        ("constant_count", c_size_t),
        ("limits", c_void_p),
    ]


class RunOptions(Structure):
    """castor_run_options."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("stores", c_int32),
        ("reserved", c_int32),
        ("executor", c_void_p),
        ("scratch", c_void_p),
        ("scratch_bytes", c_size_t),
    ]


class RuntimeOptions(Structure):
    """castor_runtime_options."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("tier", c_int32),
        ("interpret", c_int32),
        ("cache_bytes", c_size_t),
        ("code_bytes_limit", c_size_t),
        ("executor", c_void_p),
        ("allocator", c_void_p),
        ("packed_weights", c_void_p),
        ("observe", c_void_p),
        ("limits", c_void_p),
        ("core", c_int32),
        ("reserved", c_int32),
    ]
