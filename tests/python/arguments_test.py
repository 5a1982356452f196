# SPDX-License-Identifier: Apache-2.0
"""Arguments of wrong types and values."""

from __future__ import annotations

import castor
import numpy as np
import pytest


def test_wrong_arguments() -> None:
    """Each is told by what was found and what was expected, in an exception of a usual class."""
    x = np.ones((2, 3), np.float32)
    f = castor.compile("func @f(%x: f32[?n, ?m]) -> f32[?n, ?m] { %y = neg %x return %y }")
    for call in (lambda **given: castor.convert(x, "f16", **given), lambda **given: f(x, **given)):
        assert call(threads=np.int64(2)).shape == x.shape
        for threads, kind, message in (
            (2.5, TypeError, "threads is 2.5; expected 1 to 256, or 0 for one a core"),
            (2.0, TypeError, "threads is 2.0; expected"),
            ("2", TypeError, "threads is '2'; expected"),
            ([2], TypeError, r"threads is \[2\]; expected"),
            (2**40, ValueError, "a thread pool of 1099511627776 threads; expected 1 to 256, or 0"),
            (2**31, ValueError, "a thread pool of 2147483648 threads; expected 1 to 256, or 0"),
            (257, ValueError, "a thread pool of 257 threads; expected 1 to 256, or 0"),
            (-1, ValueError, "a thread pool of -1 threads; expected 1 to 256, or 0"),
        ):
            with pytest.raises(kind, match=message):
                call(threads=threads)
    for given in (x, x.tolist(), castor.convert(x, "i4")):
        for options, kind, message in (
            ({"overflow": 5}, TypeError, "overflow is 5, expected the name of an option"),
            ({"nan": ["zero"]}, TypeError, r"nan is \['zero'\], expected the name of an option"),
            ({"rounding": ""}, ValueError, "rounding '' is not the name of an option"),
            ({"dtype": ["u8"]}, TypeError, r"no element type \['u8'\]: expected one of boolean"),
            ({"dtype": "f4,("}, TypeError, r"no element type 'f4,\(': expected one of boolean"),
            ({"dtype": {}}, TypeError, "no element type {}: expected one of boolean"),
        ):
            with pytest.raises(kind, match=message):
                castor.convert(given, **{"dtype": "u8", **options})
    for arguments, message in (
        ([b"func"], "text is bytes, expected str"),
        (["", 3], "name is int, expected str"),
    ):
        with pytest.raises(TypeError, match=message):
            castor.compile(*arguments)
    for constants in ([x], {1: x}):
        with pytest.raises(TypeError, match="expected a mapping from names to arrays"):
            castor.compile("", constants=constants)
    for options, kind, message in (
        ({"zero_point": 2**70}, ValueError, f"i8 has no zero point {2**70}"),
        ({"zero_point": 2.5}, ValueError, "i8 has no zero point 2.5"),
        ({"axis": 2**64}, ValueError, f"axis is {2**64}, expected an integer of 64 bits"),
        ({"axis": {}}, castor.Error, "quantize_linear"),
        ({"axis": object}, TypeError, "axis is <class 'object'>, expected a number, a name or"),
        ({"axes": [0.5], "block": [1]}, TypeError, r"axes is \[0.5\], expected a number, a name"),
    ):
        with pytest.raises(kind, match=message):
            castor.quantize(x, "i8", 0.5, **options)
    with pytest.raises(ValueError, match=r"format \['mxfp4'\], expected mxfp8_e4m3"):
        castor.quantize_mx(x, ["mxfp4"])
