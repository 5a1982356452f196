# SPDX-License-Identifier: Apache-2.0
"""Functions from text and traced ones."""

from __future__ import annotations

from typing import Any

import castor
import numpy as np
import pytest
from castor import _check, ops

NORMALIZE = """
func @normalize(%x: u8[?n, 3], %mean: f32[3], %scale: f32[3]) -> (f16[?n, 3], f32[?n, 3]) {
  %f = convert %x : f32
  %d = sub %f, %mean
  %y = mul %d, %scale
  %h = convert %y : f16
  return %h, %y
}
func @other(%x: f32[]) -> f32[] { %y = neg %x return %y }
"""


def test_text() -> None:
    f = castor.compile(NORMALIZE, "normalize")
    assert (f.name, f.input_names, f.output_names) == (
        "normalize",
        ["x", "mean", "scale"],
        ["h", "y"],
    )
    x = np.arange(30, dtype=np.uint8).reshape(10, 3)
    mean, scale = np.float32([1, 2, 3]), np.float32([0.5, 1, 2])
    for n in (10, 10, 1, 0, 7):
        h, y = f(x[:n], mean, scale)
        expected = (x[:n].astype(np.float32) - mean) * scale
        assert (y == expected).all() and (h == expected.astype(np.float16)).all()
    h, y = f(x[::2], mean[::-1], scale)
    assert (y == (x[::2].astype(np.float32) - mean[::-1]) * scale).all()
    outs = (np.zeros((10, 6), np.float16)[:, ::2], np.zeros((10, 3), np.float32))
    assert f(x, mean, scale, out=outs, threads=2)[1] is outs[1]
    assert (outs[1] == (x.astype(np.float32) - mean) * scale).all()
    found = f.interpret(x, mean, scale)
    assert (found[1] == outs[1]).all() and (found[0] == outs[0]).all()
    assert castor.compile(NORMALIZE, "other")(np.float32(3)) == -3


def test_threads() -> None:
    f = castor.compile("func @f(%x: f32[?n]) -> f32[?n] { %y = add %x, %x return %y }")
    x = np.arange(1 << 21, dtype=np.float32)
    for threads in (None, 0, 1, 2, 4):
        assert (f(x, threads=threads) == 2 * x).all()
        assert (castor.convert(x, "f64", threads=threads) == x).all()
    with pytest.raises(castor.Error, match="-1 threads"):
        f(x, threads=-1)


def test_constants() -> None:
    text = """func @f(%x: f32[2]) -> f32[2] {
      %w = constant @w : f32[2]
      %q = constant @q : i4[2]
      %c = convert %q : f32
      %y = mul %x, %w
      %z = add %y, %c
      return %z
    }"""
    constants = {
        "w": np.float32([1, 9, 2, 9])[::2],
        "q": castor.convert(np.int8([3, -4]), "i4"),
    }
    f = castor.compile(text, constants=constants)
    constants["w"][...] = 0  # the function has a copy
    assert f(np.float32([10, 20])).tolist() == [13, 36]
    with pytest.raises(castor.Error, match="@w"):
        castor.compile(text)


def test_constants_are_of_their_types() -> None:
    class Lent:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

    text = """func @f(%x: f32[2, 3]) -> f32[2, 3] {{
      %w = constant @w : {type}
      %c = convert %w : f32
      %y = add %x, %c
      return %y
    }}"""
    x = np.zeros((2, 3), np.float32)
    table = np.arange(12, dtype=np.float32).reshape(2, 6)
    for given in (table[:, ::2], Lent(table[:, ::2]), Lent(table[:, ::2].T.copy().T)):
        f = castor.compile(text.format(type="f32[2, 3]"), constants={"w": given})
        assert f(x).tolist() == [[0, 2, 4], [6, 8, 10]]
    f = castor.compile(text.format(type="f32[1, 3]"), constants={"w": Lent(table[:1, 3:])})
    assert f(x).tolist() == [[3, 4, 5]] * 2
    for declared, given, found in (
        ("f32[2, 3]", np.zeros((2, 3), np.int32), r"i32\[2, 3\]"),
        ("f32[2, 3]", np.zeros((3, 2), np.float32), r"f32\[3, 2\]"),
        ("f32[1, 3]", np.zeros(3, np.float32), r"f32\[3\]"),
        ("f32[]", np.zeros(1, np.float32), r"f32\[1\]"),
        ("u4[2, 3]", np.zeros(3, np.uint8), r"u8\[3\]"),
        ("i4[2, 3]", castor.convert(x, "u4"), r"u4\[2, 3\]"),
    ):
        expected = declared.replace("[", r"\[").replace("]", r"\]")
        with pytest.raises(castor.Error, match=f"constant @w: found {found}, expected {expected}"):
            castor.compile(text.format(type=declared), constants={"w": given})
    with pytest.raises(castor.Error, match=r"constant @w: found 16 bytes, expected 8 for f32\[2\]"):
        castor.compile(text.format(type="f32[2]"), constants={"w": np.zeros(2)})


def test_stages() -> None:
    f = castor.compile("func @f(%x: f32[?n]) -> u8[?n] { %y = convert %x : u8 return %y }")
    assert f.ir.startswith("func @f(%x: f32[?n]) -> (u8[?n]) {")
    assert castor.compile(f.ir).ir == f.ir
    assert "loops    1" in f.nest
    assert "zmm" in f.asm(isa="avx512") and "zmm" not in f.asm(isa="avx2")
    assert "amx" in castor.info()["isas"] or "endbr64" in f.asm(isa="amx")
    assert "load source0:f32" in f.dump("lanes", isa="avx2")
    with pytest.raises(castor.Error, match="isa 'mmx', expected avx2"):
        f.asm("mmx")
    with pytest.raises(ValueError, match="stage 'x', expected ir"):
        f.dump("x")


def test_check() -> None:
    f = castor.compile(
        "func @f(%x: f32[?n], %q: u4[?n]) -> f16[?n] {"
        " %c = convert %q : f32 %m = mul %x, %c %y = convert %m : f16 return %y }"
    )
    assert f.check() == castor.info()["isas"]
    assert f.check(seed=7)
    x = np.linspace(-9, 9, 33, dtype=np.float32)
    assert f.check(x, castor.convert(np.arange(33) % 16, "u4"))
    from castor import _check

    with pytest.raises(castor.MismatchError, match="byte 1 of result 0 is 5 on avx2, 4 in the"):
        _check.compare("f", "avx2", np.uint8([3, 5]), np.uint8([3, 4]))


def test_errors() -> None:
    with pytest.raises(castor.errors.InvalidTextError) as raised:
        castor.compile("func @f(%x: f32[2])\n -> f33[2] { return %x }")
    error = raised.value
    assert (error.line, error.column, error.status) == (2, 5, "invalid_text")
    assert str(error).startswith("line 2, column 5: found 'f33'")
    assert isinstance(error, (ValueError, castor.Error))
    with pytest.raises(castor.errors.InvalidFunctionError, match="does not apply to f32 -> u8"):
        castor.convert(np.ones(3, np.float32), "u8", overflow="nan")
    with pytest.raises(castor.Error, match="rounding = near, expected toward_zero"):
        castor.convert(np.ones(3, np.float32), "u8", rounding="near")
    with pytest.raises(ValueError, match="not the name of an option"):
        castor.convert(np.ones(3, np.float32), "u8", rounding="up} : u8 //")
    f = castor.compile("func @f(%x: f32[?n], %y: f32[?n]) -> f32[?n] { %z = add %x, %y return %z }")
    x = np.ones(3, np.float32)
    with pytest.raises(castor.errors.InvalidArgumentError, match="i32; expected f32"):
        f(x, np.ones(3, np.int32))
    with pytest.raises(castor.Error, match="3"):
        f(x, np.ones(4, np.float32))
    with pytest.raises(TypeError, match=r"@f takes 2 inputs \(x, y\), not 1"):
        f(x)
    with pytest.raises(TypeError, match="1 results, not 2"):
        f(x, x, out=(x, x))
    with pytest.raises(castor.Error, match="overlap"):
        f(x[:2], x[:2], out=x[1:])


def test_traced() -> None:
    calls = []

    @castor.function
    def scaled(x, w):
        """Its text."""
        calls.append(1)
        return ops.clamp(x * w + 1, 0, 6).astype("i8", rounding="nearest_even")

    x, w = np.float32([[1, -2], [3, 4]]), np.float32([1, 2])
    for given in (x, x[:1], x.T, np.vstack([x, x])):
        expected = np.round(np.clip(given * w + 1, 0, 6)).astype(np.int8)
        assert (scaled(given, w) == expected).all()
        assert (scaled.interpret(given, w) == expected).all()
    assert len(calls) == 1
    scaled(x.astype(np.float64), w.astype(np.float64))
    assert len(calls) == 2 and "f64" in scaled.ir
    assert scaled.__doc__ == "Its text."
    assert "source0" in scaled.nest and "ret" in scaled.asm()
    assert scaled.check() == scaled.check(x, w) == castor.info()["isas"]


def test_traced_with_types() -> None:
    @castor.function("bf16[?n, 64]")
    def to_mx(x):
        return ops.quantize_mx(x, format="mxfp4", scale_rule="ceil_power")

    assert "quantize_mx %x {format = mxfp4, scale_rule = ceil_power}" in to_mx.ir
    y, scale = to_mx(castor.convert(np.ones((3, 64), np.float32), "bf16"))
    assert (y.shape, scale.shape) == ((3, 64), (3, 2))


def test_operators() -> None:
    @castor.function
    def every(a, b):
        sums = (a + b, a - b, 2 - a, 2 * a, a // b, a % b, a & b, a | b, a ^ b, a << 1, a >> 1)
        return (*sums, -a, abs(a), ~a, a < b, a <= b, a > b, a >= b, a == b, a != b)

    a, b = np.int32([7, -7, 3]), np.int32([2, 3, 3])
    expected = (a + b, a - b, 2 - a, 2 * a, a // b, a % b, a & b, a | b, a ^ b, a << 1, a >> 1)
    expected += (-a, abs(a), ~a, a < b, a <= b, a > b, a >= b, a == b, a != b)
    for found, wanted in zip(every(a, b), expected):
        assert found.dtype == wanted.dtype and (found == wanted).all()

    @castor.function
    def others(x, codes):
        table = np.arange(256, dtype=np.float32)
        y = ops.look_up(codes, table) / x
        chosen = ops.select(ops.is_nan(y), x, y)
        return chosen, ops.reduce_sum(chosen, axes=[0]), 1 / x, np.float32([3, 4]) * x

    x, codes = np.float32([2, 4]), np.uint8([6, 12])
    chosen, total, inverse, scaled = others(x, codes)
    assert (chosen.tolist(), total, inverse.tolist()) == ([3, 3], 6, [0.5, 0.25])
    assert scaled.tolist() == [6, 16]

    @castor.function
    def product(a, b):
        return a @ b

    a, b = np.uint8([[1, 2], [3, 4]]), np.int8([[1, -1], [2, -2]])
    assert (product(a, b) == a.astype(np.int32) @ b.astype(np.int32)).all()


def test_mistakes_in_traced_functions() -> None:
    x = np.int32([1, 2])
    doubled = castor.function(lambda x: x + x)
    typed = castor.function("i32[?n]")(lambda x: x + x)
    doubled_text = castor.compile("func @f(%x: i32[2]) -> i32[2] { %y = add %x, %x return %y }")
    for body, kind, message in (
        (lambda x: x + 0.5, ValueError, "i32 has no 0.5"),
        (lambda x: x + 2**40, ValueError, "i32 has no"),
        (lambda x: 3, TypeError, "returns int"),
        (lambda x: x if x else x, TypeError, "is not known"),
        (lambda x: ops.logical_and(x, x), castor.Error, "logical_and: operand 0 is i32"),
        (lambda x: ops.clamp(ops.sqrt(x)), castor.Error, "sqrt"),
        (lambda x, y: x, TypeError, r"<lambda>\(x, y\): missing"),
        (lambda *x: x, TypeError, r"takes \*x; a traced function has one parameter"),
        (lambda x, **more: x, TypeError, r"takes \*\*more; a traced"),
        (lambda x: x + 2**70, ValueError, "i32 has no 1180591620717411303424"),
        (lambda x: doubled_text(x), TypeError, "has no data: castor.ops"),
        (lambda x: castor.convert(x, "f32"), TypeError, "has no data: castor.ops"),
        (lambda x: np.asarray(x), TypeError, "has no data: castor.ops"),
        (lambda x: doubled(x, threads=2), TypeError, "neither out nor threads"),
        (lambda x: typed(x), TypeError, "no types in its decorator"),
    ):
        with pytest.raises(kind, match=message):
            castor.function(body)(x)
    with pytest.raises(TypeError, match="no operand is a value"):
        ops.add(1, 2)
    with pytest.raises(TypeError, match="has not been traced"):
        castor.function(lambda x: x).ir
    with pytest.raises(ValueError, match=r"expected one such as 'f32\[\?n, 4\]'"):
        castor.function("f32")(lambda x: x)
    for types, kind, message in (
        (
            ["f32[?n, m]"],
            ValueError,
            r"extent 'm' in type 'f32\[\?n, m\]' of an input, expected one",
        ),
        ([5], TypeError, "castor.function of 5, expected a function, or types of inputs"),
        (["f32[]", "f32[]"], TypeError, r"<lambda>\(x\): too many"),
    ):
        with pytest.raises(kind, match=message):
            castor.function(*types)(lambda x: x)


def test_every_op_has_a_function() -> None:
    """Whatever `castor` knows can be traced: ir/README.md lists the ops."""
    from pathlib import Path

    table = (Path(__file__).resolve().parents[2] / "ir" / "op.cpp").read_text(encoding="utf-8")
    import re

    names = re.findall(r'\{OpKind::\w+, "(\w+)"', table)
    assert len(names) > 60
    special = {"constant": "add", "not": "logical_not", "requantize": None}
    for name in names:
        name = special.get(name, name)
        assert name is None or hasattr(ops, name), name


def test_prepared_outputs() -> None:
    """Calls of a form that was seen before compute, and fail, as the first one does."""
    f = castor.compile(
        "func @f(%x: f32[?n], %y: i4[?n]) -> (f32[?n], f32[?n]) {"
        " %z = convert %y : f32 %s = add %x, %z %d = sub %x, %z return %s, %d }"
    )
    for size in (4, 6, 4, 6):
        x = np.arange(size, dtype=np.float32)
        y = castor.convert(np.arange(size) % 5, "i4")
        outs = [np.zeros(size, np.float32), np.zeros(2 * size, np.float32)[::2]]
        assert f(x, y, out=outs)[1] is outs[1]
        assert outs[0].tolist() == [one + one % 5 for one in range(size)]
        assert outs[1].tolist() == [one - one % 5 for one in range(size)]
    outs[1].flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        f(x, y, out=outs)
    with pytest.raises(TypeError, match="takes 2 inputs"):
        f(x, out=outs)
    with pytest.raises(TypeError, match="has 2 results, not 1"):
        f(x, y, out=[outs[0]])
    with pytest.raises(castor.Error, match="overlap"):
        f(x, y, out=[outs[0], outs[0]])


@pytest.mark.parametrize(
    "signature, body",
    [
        (
            "(%x: i4[?m, ?k], %s: f16[?, ?k]) -> f16[?m, ?k]",
            "dequantize_linear %x, %s {axis = 0, block_size = 32} : f16",
        ),
        (
            "(%x: u8[?a, ?b, ?c], %s: f32[?, ?b, ?]) -> f32[?a, ?b, ?c]",
            "dequantize_linear %x, %s {axes = [0, 2], block = [3, 5]} : f32",
        ),
        (
            "(%x: f4e2m1[?n, ?k], %s: f8e8m0[?n, ?]) -> bf16[?n, ?k]",
            "dequantize_mx %x, %s {format = mxfp4} : bf16",
        ),
    ],
)
def test_check_finds_numbers_of_blocks(signature: str, body: str) -> None:
    f = castor.compile(f"func @f{signature} {{ %y = {body} return %y }}")
    declared = [[(dim.extent, dim.name) for dim in f._dims(index)] for index in range(2)]
    shapes = _check.fitting_shapes(declared, 64, _check.block_extents(f.ir), f._takes)
    assert shapes is not None and set(shapes[0]) == {64} and shapes[1] != shapes[0]
    assert f.check() == castor.info()["isas"]


def test_check_without_shapes_that_fit() -> None:
    text = "func @f(%x: f32[?n], %y: f32[?n, 1000]) -> f32[?n, 1000] { %z = add %x, %y return %z }"
    with pytest.raises(ValueError, match="takes no inputs of small extents"):
        castor.compile(text.replace("1000] { ", "1000] { %w = reshape %x : [7] ")).check()
