# SPDX-License-Identifier: Apache-2.0
"""What castor.function takes, and how the traced functions are called."""

from __future__ import annotations

import functools
from typing import Any

import castor
import numpy as np
import pytest
from castor import ops


def test_whatever_can_be_called_is_traced() -> None:
    class Scaled:
        def __init__(self, by: float) -> None:
            self.by = by

        def method(self, x: Any) -> Any:
            return x * self.by

        def __call__(self, x: Any) -> Any:
            return self.method(x)

        @castor.function
        def decorated(self, x: Any) -> Any:
            return x

    def größe(höhe, _, x1=None):
        return höhe * _ if x1 is None else höhe * _ + x1

    def product(a, /, b, *, c=1):
        return a * b * c

    x, w = np.float32([1, -2]), np.float32([3, 4])
    scaled = Scaled(2)
    for function, inputs, named, expected, name in (
        (lambda x: x + 1, [x], {}, x + 1, "@lambda(%x:"),
        (scaled.method, [x], {}, 2 * x, "@method(%x:"),
        (scaled, [], {"x": x}, 2 * x, "@Scaled(%x:"),
        (größe, [x, w], {}, x * w, "@gr$f6$$df$e(%h$f6$he: f32[?h$f6$he0], %_:"),
        (größe, [x], {"x1": w, "_": w}, x * w + w, "(%h$f6$he: f32[?h$f6$he0], %_: f32[?_0], %x1:"),
        (functools.partial(product, b=2), [x], {}, 2 * x, "@product(%a: f32[?a0])"),
        (functools.partial(product, 2, c=w), [x], {}, 2 * x * w, "@product(%b: f32[?b0])"),
        (product, [x, w], {}, x * w, "@product(%a: f32[?a0], %b: f32[?b0])"),
        (product, [x], {"c": w, "b": w}, x * w * w, "%b: f32[?b0], %c: f32[?c0])"),
    ):
        traced = castor.function(function)
        for _ in range(2):
            assert (traced(*inputs, **named) == expected).all()
            assert (traced.interpret(*inputs, **named) == expected).all()
        assert name in traced.ir and castor.compile(traced.ir).ir == traced.ir
        assert traced.specialized(*inputs, **named) is traced.specialized(*inputs, **named)
    traced = castor.function(product)
    for inputs, named, message in (
        ([x], {}, r"product\(a, b, c\): missing a required argument: 'b'"),
        ([x, w, w], {}, r"a, b, c\): too many positional arguments"),
        ([x, w], {"d": w}, r"a, b, c\): got an unexpected keyword argument 'd'"),
        ([x, w], {"b": w}, r"a, b, c\): multiple values for argument 'b'"),
    ):
        with pytest.raises(TypeError, match=message):
            traced(*inputs, **named)
    with pytest.raises(TypeError, match=r"decorated is a method.*castor.function\(object.decor"):
        scaled.decorated(x)


def test_defaults_beside_types() -> None:
    @castor.function("f32[?n]", "f32[]")
    def scaled(x, by, offset=1):
        return x * by + offset

    x = np.float32([1, 2])
    assert scaled(x, np.float32(3)).tolist() == scaled(by=np.float32(3), x=x).tolist() == [4, 7]
    with pytest.raises(TypeError, match="scaled has types for x, by, but was given x, by, offset"):
        scaled(x, np.float32(3), x)
    with pytest.raises(TypeError, match=r"x, by, offset\): missing a required argument: 'by'"):
        scaled(x)


def test_integers_in_traced_functions() -> None:
    reshaped = castor.function(lambda x: ops.reshape(x, (np.int64(3), np.uint8(2))))
    assert reshaped(np.arange(6)).tolist() == [[0, 1], [2, 3], [4, 5]]
    summed = castor.function(lambda x: ops.reduce_sum(x, axes=np.array([1])))
    assert summed(np.int32([[1, 2], [3, 4]])).tolist() == [3, 7]
    large = castor.function(lambda x: x + (2**64 - 1))
    assert large(np.uint64([0])).tolist() == [2**64 - 1]
    for number, dtype in ((-1, np.uint64), (2**63, np.int64), (2**64, np.uint64), (-1, np.uint8)):
        with pytest.raises(ValueError, match=f"has no {number}"):
            castor.function(lambda x: x + number)(np.ones(1, dtype))  # noqa: B023


@pytest.mark.parametrize(
    ("element", "number", "becomes"),
    [
        ("f8e4m3", 1000, None),
        ("f8e4m3", 448, 448),
        ("f8e4m3", -460.0, -448),
        ("f8e4m3", 0.3, 0.3125),
        ("f8e4m3fnuz", 1000, None),
        ("f8e5m2", 1e6, None),
        ("f8e5m2", float("inf"), float("inf")),
        ("f8e4m3", float("inf"), None),
        ("f4e2m1", 100, None),
        ("f4e2m1", 6.5, 6),
        ("f4e2m1", 7, None),
        ("f4e2m1", float("nan"), None),
        ("f6e2m3", -8, None),
        ("f6e3m2", 29, 28),
        ("f6e3m2", 31, None),
        ("f16", 65520, None),
        ("f16", 65519, 65504),
        ("f32", 10**30, float(np.float32(1e30))),
        ("f32", 2**64 + 2**40 + 1, 2.0**64 + 2.0**41),
        ("f32", -(2**64 + 2**40), -(2.0**64)),
        ("f32", 10**39, None),
        ("f32", 3.4028235e38, float(np.float32(3.4028235e38))),
        ("f64", 2**64, 2.0**64),
        ("f64", 10**309, None),
        ("i64", 10**30, None),
    ],
)
def test_numbers_out_of_range(element: str, number: float, becomes: float | None) -> None:
    """A number becomes the nearest one of its type, or is refused: never unseen something else."""
    x = castor.convert(np.float32([0]), element)
    traced = castor.function(lambda x: x * 0 + number)
    if becomes is None:
        with pytest.raises(ValueError, match=f"{element} has no {number}"):
            traced(x)
    else:
        assert castor.convert(traced(x), "f64").tolist() == [becomes]


@pytest.mark.parametrize(
    ("element", "number", "has"),
    [("nf4", 1.5, False), ("nf4", -1, True), ("f8e8m0", 0, False), ("f8e8m0", 0.3, True)],
)
def test_numbers_of_types_that_do_not_compute(element: str, number: float, has: bool) -> None:
    x = castor.convert(np.float32([0.25]), element)
    traced = castor.function(lambda x: ops.select(np.array([False]), x, number))
    if has:
        assert castor.convert(traced(x), "f32").tolist() == [-1.0 if element == "nf4" else 0.25]
    else:
        with pytest.raises(ValueError, match=f"{element} has no {number}"):
            traced(x)


def test_operators_from_either_side() -> None:
    x = np.int32([2, 3, 5])
    for function in (
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a // b,
        lambda a, b: a % b,
        lambda a, b: a & b,
        lambda a, b: a | b,
        lambda a, b: a ^ b,
        lambda a, b: a << b,
        lambda a, b: a >> b,
    ):
        for number in (7, np.int32([9, 8, 7])):
            left = castor.function(lambda x, f=function, n=number: f(n, x))
            right = castor.function(lambda x, f=function, n=number: f(x, n))
            assert left(x).tolist() == function(np.asarray(number, np.int32), x).tolist()
            assert right(x).tolist() == function(x, np.asarray(number, np.int32)).tolist()
    row = np.uint8([[1, 2, 3]])
    product = castor.function(lambda x: row @ x)
    assert product(np.uint8([[1], [2], [3]])).tolist() == [[14]]


def test_traced_functions_are_inlined() -> None:
    @castor.function
    def halves(x, by=0.5):
        return x * by, x * (1 - by)

    @castor.function
    def sums(x, w):
        first, second = halves(x)
        third, _ = halves(x, by=w)
        constant, _ = halves(np.float32([2, 4]))
        return first + second + third + constant

    x, w = np.float32([1, 2]), np.float32([3, 4])
    assert (sums(x, w) == x + x * w + np.float32([1, 2])).all()
