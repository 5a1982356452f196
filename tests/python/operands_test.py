# SPDX-License-Identifier: Apache-2.0
"""What is taken as a tensor: arrays of any strides, buffers, DLPack, names of types."""

from __future__ import annotations

import array
import ctypes
import mmap
import sys
from pathlib import Path
from typing import Any, List, Tuple

import castor
import ml_dtypes
import numpy as np
import pytest
from castor import _address
from hypothesis import given
from hypothesis import strategies as st

BASE = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)

slices = st.tuples(
    *[
        st.builds(slice, st.integers(-n, n), st.integers(-n, n), st.sampled_from([-2, -1, 1, 2, 3]))
        for n in BASE.shape
    ]
)


@given(slices, st.permutations(range(4)), st.sampled_from(["C", "F"]), st.booleans())
def test_any_strides(index: Tuple[slice, ...], axes: Any, order: Any, read_only: bool) -> None:
    x = BASE.copy(order)[index].transpose(axes)
    x.flags.writeable = not read_only
    for _ in range(2):  # the second call is prepared
        found = castor.convert(x, "u8")
        assert found.shape == x.shape
        assert (found == x).all()
    packed = castor.convert(x, "u4", overflow="saturate")
    assert (packed.numpy() == np.minimum(x, 15)).all()


@given(slices, st.permutations(range(4)))
def test_strided_outputs(index: Tuple[slice, ...], axes: Any) -> None:
    whole = np.full(BASE.shape, 99, np.int16)
    out = whole[index].transpose(axes)
    x = np.arange(out.size, dtype=np.float32).reshape(out.shape)
    if out.size and any(stride < 0 for n, stride in zip(out.shape, out.strides) if n > 1):
        with pytest.raises(ValueError, match="positive strides"):
            castor.convert(x, out=out)
        return
    untouched = np.ones(BASE.shape, bool)
    untouched[index] = False
    assert castor.convert(x, out=out) is out
    assert (out == x).all()
    assert (whole[untouched] == 99).all()


def test_column_major_stays() -> None:
    x = np.asfortranarray(np.ones((3, 4), np.float32))
    for _ in range(2):
        assert castor.convert(x, "f16").flags.f_contiguous


def test_addresses(tmp_path: Path) -> None:
    """As NumPy tells them, of arrays of every kind; CPython has them in the arrays themselves."""
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    mapped = np.memmap(tmp_path / "mapped", np.uint8, "w+", offset=3, shape=(5, 7))
    read_only = np.frombuffer(b"read-only", np.uint8)
    arrays: List[Any] = [whole, whole[1:, ::2], whole[::-1], whole.T, whole[3:, 6:], whole[2, 3]]
    arrays += [mapped, mapped[2:], read_only, read_only[4:], np.zeros(0), np.zeros((), np.int8)]
    arrays += [np.ma.masked_array(whole, whole > 3), whole.astype(ml_dtypes.bfloat16)[1]]
    arrays += [np.zeros(3, "S5")[1:], np.zeros(2, [("a", "i1"), ("b", "f8")])["b"]]
    for array in map(np.asanyarray, arrays):
        assert _address.address_of(array) == array.ctypes.data
    if sys.implementation.name == "cpython":
        assert _address.address_of is _address.by_field


def test_repeated_and_swapped() -> None:
    x = np.broadcast_to(np.float32([1, 2]), (3, 2))
    assert castor.convert(x, "i8").tolist() == [[1, 2]] * 3
    assert castor.convert(np.arange(3, dtype=">f4"), "i8").tolist() == [0, 1, 2]
    assert castor.convert(np.arange(3, dtype=">u2"), "f64").tolist() == [0, 1, 2]


def test_unaligned() -> None:
    stored = np.zeros(4 * 9 + 1, np.uint8)[1:].view(np.float32)
    stored[...] = range(9)
    assert castor.convert(stored, "i16").tolist() == list(range(9))
    assert castor.convert(np.arange(9, dtype=np.int16), out=stored) is stored


def test_objects_that_lend_memory() -> None:
    assert castor.convert(b"\1\2", "f32").tolist() == [1, 2]
    assert castor.convert(memoryview(b"\1\2\3\4")[::2], "f32").tolist() == [1, 3]
    assert castor.convert(array.array("h", [-1, 2]), "f32").tolist() == [-1, 2]
    assert castor.convert([[1.5], [2.5]], "f16").shape == (2, 1)
    assert castor.convert(3.5, "f32").shape == ()
    out = bytearray(3)
    assert castor.convert(np.float32([1, 2, 300]), out=out) is out
    assert out == b"\1\2\xff"

    class Lends:
        __array_interface__ = BASE.__array_interface__

    assert (castor.convert(Lends(), "i32") == BASE).all()


def test_buffers_that_are_written(tmp_path: Path) -> None:
    x = np.float32([1, -2, 300])
    for code, expected in (("h", [1, -2, 300]), ("B", [1, 0, 255]), ("d", [1, -2, 300])):
        out = array.array(code, [0] * 3)
        for _ in range(2):
            assert castor.convert(x, out=out) is out
            assert list(out) == expected
    path = tmp_path / "mapped"
    path.write_bytes(bytes(3))
    double = castor.compile("func @f(%x: u8[3]) -> u8[3] { %y = add %x, %x return %y }")
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        castor.convert(x, out=mapped)
        assert mapped[:] == b"\1\0\xff"
        assert castor.convert(mapped, "i16").tolist() == [1, 0, 255]
        assert double(mapped, out=mapped) is mapped and mapped[:] == b"\2\0\xfe"
    fields = (ctypes.c_float * 3)()
    castor.convert(x, out=fields)
    assert list(fields) == [1, -2, 300]
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for read_only in (mapped, b"123", memoryview(b"123")):
            with pytest.raises(ValueError, match="an output is read-only"):
                castor.convert(x, out=read_only)
    with pytest.raises(ValueError, match=r"out has shape \(2,\), expected \(3,\)"):
        castor.convert(x, out=array.array("h", [0, 0]))


class ByDlpack:
    """An array whose only protocol is DLPack's."""

    def __init__(self, data: np.ndarray, **arguments: Any) -> None:
        self.data = data
        self.arguments = arguments

    def __dlpack__(self, **arguments: Any) -> Any:
        if self.arguments.get("is_old") and arguments:
            raise TypeError("max_version")
        return self.data.__dlpack__(**arguments)


@pytest.mark.parametrize("is_old", [False, True])
def test_dlpack(is_old: bool) -> None:
    x = BASE.copy()
    assert (castor.convert(ByDlpack(x[:, ::2], is_old=is_old), "i16") == x[:, ::2]).all()
    out = np.empty(BASE.shape, np.float64)
    castor.convert(x, out=ByDlpack(out, is_old=is_old))
    assert (out == x).all()
    x.flags.writeable = False
    if not is_old:
        with pytest.raises(castor.Error, match="read only"):
            castor.convert(BASE, "f32", out=ByDlpack(x))


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((3, 4), (1, 0)),
        ((5, 2, 4), (0, 2, 0)),
        ((2, 3), (0, 0)),
        ((2, 2), (0, 3)),
        ((0, 4), (1, 0)),
    ],
)
def test_repeated_axes_by_dlpack(shape: Any, strides: Any) -> None:
    stored = np.float32([1, 2, 3, 4])
    x = np.lib.stride_tricks.as_strided(stored, shape, [4 * stride for stride in strides])
    double = castor.compile(
        f"func @f(%x: f32{list(shape)}) -> f32{list(shape)} {{ %y = add %x, %x return %y }}"
    )
    for is_old in (False, True):
        assert (castor.convert(ByDlpack(x, is_old=is_old), "i16") == x).all()
        assert (double(ByDlpack(x, is_old=is_old)) == 2 * x).all()
    if x.size:
        with pytest.raises(castor.Error, match="stride"):
            castor.convert(np.zeros(shape), out=ByDlpack(x))


class Bf16ByDlpack:
    """A tensor of bfloat16 as torch gives it: NumPy itself refuses that type."""

    def __init__(self, data: np.ndarray) -> None:
        from castor import _dlpack

        self.data = data
        self.shape = (ctypes.c_int64 * 1)(data.size)
        self.managed = _dlpack.Managed()
        tensor = self.managed.tensor
        tensor.data, tensor.device_type, tensor.rank = data.ctypes.data, 1, 1
        tensor.code, tensor.bits, tensor.lanes, tensor.shape = 4, 16, 1, self.shape

    def __dlpack__(self) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = (
            ctypes.py_object,
            [
                ctypes.c_void_p,
                ctypes.c_char_p,
                ctypes.c_void_p,
            ],
        )
        return new(ctypes.addressof(self.managed), b"dltensor", None)


def test_dlpack_of_types_that_numpy_lacks() -> None:
    x = np.arange(5).astype(ml_dtypes.bfloat16)
    assert castor.convert(Bf16ByDlpack(x.view(np.uint16)), "f32").tolist() == [0, 1, 2, 3, 4]
    stored = np.zeros(5, np.uint16)
    castor.convert(np.float32([1, 2, 3, 4, 5]), out=Bf16ByDlpack(stored))
    assert stored.view(ml_dtypes.bfloat16).tolist() == [1, 2, 3, 4, 5]


class TorchTensor:
    """What castor asks torch.Tensor for."""

    def __init__(self, data: np.ndarray, *, requires_grad: bool = False, is_neg: bool = False):
        self.data = data
        self.dtype, self.shape = str(data.dtype), data.shape
        self.requires_grad, self.is_cpu = requires_grad, True
        self.negative = is_neg
        self.capsules = 0

    def is_neg(self) -> bool:
        return self.negative

    def stride(self) -> Any:
        return tuple(step // self.data.itemsize for step in self.data.strides)

    def data_ptr(self) -> int:
        return self.data.ctypes.data

    def __dlpack__(self, **arguments: Any) -> Any:
        if self.requires_grad:
            raise BufferError("it requires gradient")
        self.capsules += 1
        return self.data.__dlpack__(**arguments)


TorchTensor.__module__, TorchTensor.__qualname__ = "torch", "Tensor"


class DerivedTensor(TorchTensor):
    """It may override what castor asks for."""


def test_tensors_of_torch() -> None:
    """A form that came by __dlpack__ needs no capsule from then on, but every check."""
    for turn in range(3):
        x = TorchTensor(np.random.default_rng(turn).uniform(-9, 9, (5, 7)).astype("f4")[:, ::2])
        assert (castor.convert(x, "i16") == x.data.astype(np.int16)).all()
        out = TorchTensor(np.zeros((5, 4)))
        assert castor.convert(x, out=out) is out
        assert (out.data == x.data).all()
        wide = np.zeros((5, 4))
        castor.convert(x, out=wide)
        assert (wide == x.data).all()
        assert (x.capsules, out.capsules) == ((3, 1) if turn == 0 else (0, 0))
    assert castor.convert(TorchTensor(np.float32([[3]])), "i16").tolist() == [[3]]
    for refused in ({"requires_grad": True}, {"is_neg": True}):
        with pytest.raises(BufferError, match="gradient|negative bit"):
            castor.convert(TorchTensor(x.data, **refused), "i16")
        with pytest.raises(BufferError, match="gradient|negative bit"):
            castor.convert(x, out=TorchTensor(np.zeros((5, 4)), **refused))
    derived = DerivedTensor(x.data)
    for _ in range(2):
        castor.convert(derived, "i16")
    assert derived.capsules == 2


def test_prepared_outputs_are_checked() -> None:
    """A call like one before fails as the first would."""
    x = np.arange(4, dtype=np.float32)
    for _ in range(2):
        out = np.zeros(4, np.uint8)
        castor.convert(x, out=out)
        assert out.tolist() == [0, 1, 2, 3]
        castor.convert(x, "u8", out=out, overflow="saturate")
        castor.convert(x, out=np.zeros(4, np.float16))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        castor.convert(x, out=out)
    with pytest.raises(TypeError, match="dtype is i8, but out has u8"):
        castor.convert(x, "i8", out=np.zeros(4, np.uint8))
    with pytest.raises(castor.Error, match="overlap"):
        castor.convert(x, out=x.view(np.float16)[1:5])
    swapped = np.arange(4, dtype=">f4")
    for _ in range(2):
        assert castor.convert(swapped, out=np.zeros(4)).tolist() == [0, 1, 2, 3]
        assert castor.convert(swapped[::-1], out=np.zeros(4)).tolist() == [3, 2, 1, 0]


def test_outputs_are_checked() -> None:
    x = np.ones(4, np.float32)
    out = np.zeros(4, np.uint8)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        castor.convert(x, out=out)
    with pytest.raises(ValueError, match=r"shape \(3,\), expected \(4,\)"):
        castor.convert(x, out=np.zeros(3, np.uint8))
    with pytest.raises(TypeError, match="dtype is i8, but out has u8"):
        castor.convert(x, "i8", out=np.zeros(4, np.uint8))
    with pytest.raises(TypeError, match="lends no memory"):
        castor.convert(x, out=[0, 0, 0, 0])
    y = np.ones(5, np.float32)
    with pytest.raises(castor.Error, match="overlap"):
        castor.convert(y[:4], out=y[1:])
    assert castor.convert(y, out=y) is y


NAMES = {
    "f32": ["float32", "<f4", np.float32, np.dtype("f4"), "torch.float", "torch.float32", "FLOAT"],
    "f64": [float, "float", "double", "torch.double", "DOUBLE"],
    "boolean": [bool, "bool", np.bool_, "torch.bool", "BOOL"],
    "i64": [int, "int64", "torch.long", "INT64"],
    "bf16": ["bfloat16", ml_dtypes.bfloat16, "torch.bfloat16", "BFLOAT16"],
    "f8e4m3": ["float8_e4m3fn", ml_dtypes.float8_e4m3fn, "torch.float8_e4m3fn", "FLOAT8E4M3FN"],
    "f8e5m2fnuz": ["float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, "FLOAT8E5M2FNUZ"],
    "f8e8m0": ["float8_e8m0fnu", "torch.float8_e8m0fnu", "FLOAT8E8M0"],
    "f4e2m1": ["float4_e2m1fn", ml_dtypes.float4_e2m1fn, "torch.float4_e2m1fn_x2", "FLOAT4E2M1"],
    "i4": ["int4", ml_dtypes.int4, "INT4"],
    "u2": ["uint2", ml_dtypes.uint2, "UINT2"],
}


def test_names() -> None:
    for name, others in NAMES.items():
        for other in others:
            assert castor.element_type(other).name == name, other
    assert len(castor.element_types()) == 33

    class TorchDtype:
        def __str__(self) -> str:
            return "torch.half"

    assert castor.element_type(TorchDtype()).name == "f16"
    for wrong in ("f33", "float8_e4m3", np.complex64, ml_dtypes.float8_e3m4, None, 1, "M8[s]"):
        with pytest.raises(TypeError, match="expected one of boolean"):
            castor.element_type(wrong)


def test_names_of_numpy_beside_those_of_castor() -> None:
    """Names as castor's count bits; NumPy's count bytes."""
    for name, ours, theirs in (
        ("i2", "i2", "i16"),
        ("u2", "u2", "u16"),
        ("i4", "i4", "i32"),
        ("u4", "u4", "u32"),
        ("i8", "i8", "i64"),
        ("u8", "u8", "u64"),
        ("u1", "u1", "u8"),
        ("i1", "i8", "i8"),
        ("f4", "f32", "f32"),
        ("f2", "f16", "f16"),
    ):
        assert castor.element_type(name).name == ours
        assert castor.element_type(np.dtype(name)).name == theirs
        assert castor.element_type("=" + name).name == theirs


def test_masked_arrays_are_refused() -> None:
    x = np.ones(5, np.float32)
    masked = np.ma.masked_array(x, x > 0)
    out = np.zeros(5, np.int8)
    double = castor.compile("func @f(%x: f32[?n]) -> f32[?n] { %y = add %x, %x return %y }")
    for _ in range(2):  # where calls of that form are prepared, too
        for call in (
            lambda x: castor.convert(x, "i8"),
            lambda x: castor.convert(x, out=out),
            lambda x: castor.convert(out, out=x),
            lambda x: double(x),
            lambda x: double(x, out=np.zeros(5, np.float32)),
            lambda x: double(np.zeros(5, np.float32), out=x),
            lambda x: castor.quantize(x, "i8", 0.5),
            lambda x: castor.Tensor(x, "f32", 5),
        ):
            call(x.copy())
            with pytest.raises(TypeError, match="a masked array, expected one without a mask"):
                call(masked)


def test_arrays_of_other_classes(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "mapped", np.float32, "w+", shape=(2, 3))
    double = castor.compile("func @f(%x: f32[2, 3]) -> f32[2, 3] { %y = add %x, %x return %y }")
    for turn in range(3):
        mapped[...] = turn
        assert castor.convert(mapped, "i8").tolist() == [[turn] * 3] * 2
        assert double(mapped).tolist() == [[2 * turn] * 3] * 2
        double(np.asarray(mapped), out=mapped)
        assert mapped.tolist() == [[2 * turn] * 3] * 2
