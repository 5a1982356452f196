# SPDX-License-Identifier: Apache-2.0
"""castor.Tensor: what it refuses, its values, equality and pickles."""

from __future__ import annotations

import copy
import ctypes
import gc
import math
import pickle
import sys
from typing import Any

import castor
import numpy as np
import pytest
from castor import _dlpack

HAS_VERSIONS = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1)
WITHOUT_DLPACK = ("u1", "nf4", "u2.msb_first", "u3.split", "u6.split")
"""Types that DLPack has in another order of bits, or not."""


def test_type_shape_and_memory_of_a_tensor_stay() -> None:
    """Else calls that were prepared would reach beyond the memory."""
    t = castor.convert(np.arange(64) % 16, "u4")
    castor.convert(t, "f32")
    for name, value in (
        ("data", np.zeros(1, np.uint8)),
        ("shape", (1 << 20,)),
        ("element", castor.element_type("u8")),
        ("dtype", castor.element_type("u8")),
    ):
        with pytest.raises(AttributeError):
            setattr(t, name, value)
    for checked in (True, False):
        with pytest.raises(ValueError, match="does not own its data|referenced"):
            t.data.resize(1, refcheck=checked)
    with pytest.raises(ValueError, match="takes 50 bytes, not 32"):
        t.__init__(t.data, "u4", 100)  # type: ignore[misc]
    assert castor.convert(t, "f32").tolist() == [n % 16 for n in range(64)]
    t.data[0] = 0x21
    assert castor.convert(t, "f32")[:3].tolist() == [1, 2, 2]
    bytes_of_two = np.zeros((4, 4), np.uint8)
    for data, dtype, shape, kind, message in (
        (bytes_of_two[:, ::2], "u8", 8, ValueError, "is not contiguous"),
        (bytes_of_two.T[:, :2], "u8", 8, ValueError, "is not contiguous"),
        (memoryview(bytes(8))[::2], "u8", 4, ValueError, "is not contiguous"),
        (bytes(3), "u4", 7, ValueError, r"of u4 and shape \(7,\) takes 4 bytes, not 3"),
        (bytes(3), "u4", (3, 3), ValueError, "takes 5 bytes, not 3"),
        (bytes(3), "u4", -6, ValueError, "negative extent"),
        (bytes(3), "u4", 6.0, TypeError, "shape 6.0 of a tensor, expected an integer or several"),
        (bytes(3), "u4", (2, 3.5), TypeError, r"shape \(2, 3.5\) of a tensor, expected"),
        (bytes(3), "u4", "6", TypeError, "shape '6' of a tensor, expected"),
        ([1, 2], "u8", 2, TypeError, "bytes-like"),
    ):
        with pytest.raises(kind, match=message):
            castor.Tensor(data, dtype, shape)
        if isinstance(data, np.ndarray):
            with pytest.raises(kind, match=message):
                castor.Tensor.of_packed(data, castor.element_type(dtype), (shape,))
    for shape in (np.int64(6), [np.int64(6)], np.array([6]), np.uint8([2, 3])):
        made = castor.Tensor(bytes(3), "u4", shape)
        assert made.size == 6 and all(type(extent) is int for extent in made.shape)


@pytest.mark.parametrize("element", castor.element_types(), ids=str)
def test_values_of_tensors(element: castor.ElementType) -> None:
    """Five elements leave some bits of the last bytes, which do not count."""
    made = castor.convert(np.float32([1, 2, 1, 0.5, 2]), element)
    data = made.data if isinstance(made, castor.Tensor) else made.view(np.uint8)
    t = castor.Tensor(data, element, 5)
    assert t.tolist() == t.numpy().tolist() == castor.convert(t, "f64").tolist()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(t, protocol))
        assert again == t and again.element is element and again.shape == (5,)
    assert copy.deepcopy(t) == t == copy.copy(t)
    zeros = castor.Tensor(bytes(t.nbytes), element, 5)
    ones = castor.Tensor(b"\xff" * t.nbytes, element, 5)
    assert zeros != ones
    if element.bits < 8:
        assert ones == castor.convert(ones, element)


def test_equal_tensors() -> None:
    t = castor.Tensor(bytes([0x21, 0x03]), "u4", 3)
    for other, is_equal in (
        (castor.Tensor(bytes([0x21, 0x03]), "u4", 3), True),
        (castor.Tensor(bytes([0x21, 0xF3]), "u4", 3), True),  # the last four bits mean nothing
        (castor.Tensor(bytes([0x21, 0x04]), "u4", 3), False),
        (castor.Tensor(bytes([0x21, 0x03]), "i4", 3), False),
        (castor.Tensor(bytes([0x21, 0x03]), "u4", (3, 1)), False),
        (castor.Tensor(bytes([0x21, 0x03]), "u4", 4), False),
        (None, False),
        ("u4", False),
    ):
        assert (t == other) is is_equal and (t != other) is not is_equal
    with pytest.raises(TypeError, match="unhashable"):
        hash(t)
    negative_zero = castor.Tensor(np.float32([-0.0]), "f32", 1)
    assert negative_zero != castor.Tensor(np.float32([0.0]), "f32", 1)
    nan = castor.Tensor(np.float32([np.nan]), "f32", 1)
    assert nan == castor.Tensor(np.float32([np.nan]), "f32", 1)
    for dtype, value in ((np.uint32, 300), (np.int64, -(2**40)), (np.float64, 0.1), (bool, True)):
        stored = dtype([value]) if dtype is not bool else np.array([value])
        made = castor.Tensor(stored, stored.dtype, 1)
        assert made.tolist() == [value] and made.numpy().dtype == stored.dtype
    assert castor.Tensor(b"\x07", "u4", ()).tolist() == 7


def test_tensors() -> None:
    t = castor.Tensor(bytes([0x21, 0x03]), "u4", 3)
    assert t.numpy().tolist() == [1, 2, 3]
    assert np.asarray(t, np.int32).tolist() == [1, 2, 3]
    assert (t.size, t.ndim, t.nbytes, len(t)) == (3, 1, 2, 3)
    assert t.reshape(1, -1).shape == t.reshape((1, 3)).shape == (1, 3)
    assert t.astype("i8").tolist() == [1, 2, 3]
    again = pickle.loads(pickle.dumps(t))
    assert (again.element, again.shape, again.data.tolist()) == (t.element, (3,), [0x21, 3])
    with pytest.raises(ValueError, match="takes 2 bytes, not 3"):
        castor.Tensor(bytes(3), "u4", (1, 3))
    with pytest.raises(ValueError, match="read-only"):
        castor.convert(np.float32([1, 2, 3]), out=t)
    own = castor.Tensor(bytearray(2), "u4", 3)
    castor.convert(np.float32([1, 2, 30]), out=own, overflow="saturate")
    assert own.data.tolist() == [0x21, 0x0F]
    empty = castor.convert(np.empty((0, 3), np.float32), "i4")
    assert (empty.shape, empty.nbytes) == ((0, 3), 0)


class Lent:
    """A tensor that is taken by DLPack alone."""

    def __init__(self, tensor: castor.Tensor, **options: Any) -> None:
        self.tensor, self.options = tensor, options

    def __dlpack__(self, max_version: Any = None) -> Any:
        return self.tensor.__dlpack__(max_version=max_version, **self.options)


@pytest.mark.parametrize("element", castor.element_types(), ids=str)
@pytest.mark.parametrize("shape", [(6,), (2, 3), (2, 1, 3), (0, 4), ()])
def test_tensors_are_lent_by_dlpack(element: castor.ElementType, shape: Any) -> None:
    """In the type of the elements, which NumPy may lack, and without a copy unless it is wanted."""
    made = castor.Tensor(bytearray(element.bytes_of(math.prod(shape))), element, shape)
    if element.name in WITHOUT_DLPACK:
        with pytest.raises(BufferError, match=element.name):
            made.__dlpack__()
        return
    assert made.__dlpack_device__() == (1, 0)
    for copy in (None, False, True):
        lent = Lent(made, copy=copy)
        made.data[:] = 0
        zeros = castor.convert(made, "f32")
        capsule = lent.__dlpack__((1, 1))
        del capsule  # one that nobody takes gives its memory back
        read = castor.convert(lent, element)
        assert (getattr(read, "element", element), read.shape) == (element, shape)
        castor.convert(np.ones(shape, np.float32), out=lent)
        expected = zeros if copy else np.ones(shape, np.float32)
        assert castor.convert(made, "f32").tolist() == expected.tolist()


def test_dlpack_of_numpy_and_its_refusals() -> None:
    t = castor.Tensor(bytearray(b"\x01\x02\x03\x04"), "u8", (2, 2))
    lent = np.from_dlpack(t)
    t.data[0] = 9
    assert lent.tolist() == [[9, 2], [3, 4]]
    for options in ({"stream": 1}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError, match="on device"):
            t.__dlpack__(**options)
    assert t.__dlpack__(dl_device=(1, 0), stream=None) is not None


def test_what_capsules_say() -> None:
    """The version that has the type, what is read only or copied; and they keep the memory."""
    stored = np.arange(6, dtype=np.uint8)
    t = castor.Tensor(stored, "f8e4m3", (2, 3))
    references = sys.getrefcount(stored)
    for copy in (False, True):
        capsule = t.__dlpack__(max_version=(1, 1), copy=copy)
        managed = _dlpack.managed_of(capsule)
        if HAS_VERSIONS:
            assert (managed.major, managed.minor) >= (1, 1)
            assert managed.flags & 2 == (2 if copy else 0)
        assert (managed.tensor.code, managed.tensor.bits, managed.tensor.lanes) == (10, 8, 1)
        del capsule
    assert sys.getrefcount(stored) == references
    capsule = t.__dlpack__()
    del t, stored
    gc.collect()
    address = _dlpack.managed_of(capsule).tensor.data
    assert ctypes.string_at(address, 6) == bytes(range(6))


def test_read_only_and_impossible_tensors_by_dlpack() -> None:
    t = castor.Tensor(bytes(4), "u8", 4)
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()
    if HAS_VERSIONS:
        assert not np.from_dlpack(t).flags.writeable
    for shape in ((0, 2**62), (1,) * 17):
        data = bytearray(math.prod(shape) * 8)
        with pytest.raises(BufferError):
            castor.Tensor(data, "u64", shape).__dlpack__()
