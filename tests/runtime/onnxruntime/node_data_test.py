# SPDX-License-Identifier: Apache-2.0
"""ONNX's node tests inside the real ONNX Runtime: node_data_test.py LIBRARY [FOLDER...].

Each model runs in a session with the plugin, which is told to take all that castor can compute, on
the data that come with it. Results are those of the data, or of ONNX Runtime's CPU provider, bit
for bit. After sums of floats, which each side adds in an order of its own, they are near. FOLDERs
hold model.onnx and test_data_set_*; without any, Debian's libonnx-testdata is used, and the folder
of node tests beside the repository where there is one.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

from host import PROVIDER, ROOT, onnxruntime

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

DEBIAN = Path("/usr/share/libonnx-testdata/data/node")
BESIDE = ROOT.parent / "shared" / "data" / "onnx-node"
MIN_TAKEN = {DEBIAN: 427, BESIDE: 408}  # models of which castor takes nodes
# The host's Python interface has tensors of these.
NATIVE = {f"tensor({name})" for name in (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16",
    "float", "double")}
# Of these it takes the bits, and gives their address.
NARROW = {
    "tensor(bfloat16)": ml_dtypes.bfloat16,
    "tensor(float8e4m3fn)": ml_dtypes.float8_e4m3fn,
    "tensor(float8e4m3fnuz)": ml_dtypes.float8_e4m3fnuz,
    "tensor(float8e5m2)": ml_dtypes.float8_e5m2,
    "tensor(float8e5m2fnuz)": ml_dtypes.float8_e5m2fnuz,
    "tensor(float8e8m0)": ml_dtypes.float8_e8m0fnu,
    "tensor(int4)": ml_dtypes.int4,
    "tensor(uint4)": ml_dtypes.uint4,
    "tensor(float4e2m1)": ml_dtypes.float4_e2m1fn,
    "tensor(int2)": ml_dtypes.int2,
    "tensor(uint2)": ml_dtypes.uint2,
}
PER_BYTE = {"int4": 2, "uint4": 2, "float4_e2m1fn": 2, "int2": 4, "uint2": 4}


def session(model: Path, castor: bool):
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if castor:
        devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == PROVIDER]
        settings.add_provider_for_devices(devices, {"threads": "1", "min_gain": "0"})
    return onnxruntime.InferenceSession(str(model), settings, enable_fallback=0)


# The host inlines these functions into the bodies of loops, which then import no operator set for
# nodes that a provider compiled: no session is made.
HOST_FAILS = "test_sequence_map_"
SUMS = {"ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "Mean",
        "GlobalAveragePool"}


def has_known_tensors(made) -> bool:
    """The host takes the bits of 8-bit floats alone; it gives the address of any tensor."""
    given = {value.type for value in made.get_inputs()}
    return (all(kind in NATIVE or kind.startswith("tensor(float8") for kind in given)
            and all(value.type in NATIVE or value.type in NARROW
                    for value in made.get_outputs()))


def given(array: np.ndarray):
    """An input, of its bits where the host has no such arrays."""
    if f"{array.dtype}" in {np.dtype(each).name for each in NARROW.values()}:
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        bits = array.view(f"u{array.itemsize}")
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, kind)
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def taken_out(value, kind: str) -> np.ndarray:
    """An output, read at its address where the host makes no array of it."""
    if kind not in NARROW:
        return value.numpy()
    dtype, shape = np.dtype(NARROW[kind]), tuple(value.shape())
    count, per_byte = int(np.prod(shape)), PER_BYTE.get(dtype.name, 1)
    bytes_ = -(-count // per_byte) * dtype.itemsize
    data = np.frombuffer((ctypes.c_uint8 * bytes_).from_address(value.data_ptr()), np.uint8).copy()
    if per_byte > 1:
        bits = 8 // per_byte
        fields = [data >> bits * i & (1 << bits) - 1 for i in range(per_byte)]
        data = np.stack(fields, axis=-1).reshape(-1)[:count]
        if dtype.name.startswith("int"):
            data = (data ^ 1 << bits - 1).astype(np.int8) - (1 << bits - 1)
            return data.reshape(shape).astype(dtype)
    return data.view(dtype).reshape(shape)


def results(made, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    binding = made.io_binding()
    for name, array in feed.items():
        binding.bind_ortvalue_input(name, given(array))
    for output in made.get_outputs():
        binding.bind_output(output.name)
    made.run_with_iobinding(binding)
    return [taken_out(value, output.type)
            for value, output in zip(binding.get_outputs(), made.get_outputs(), strict=True)]


def taken_operators(made) -> set[str]:
    return {node.op_type for part in made.get_provider_graph_assignment_info()
            if part.ep_name == PROVIDER for node in part.get_nodes()}


def tensor(file: Path) -> np.ndarray:
    return numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether the bits are equal; any NaN is equal to any other."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if found.dtype.kind in "fV" and found.dtype.name not in PER_BYTE:
        is_nan = np.isnan(found)
        if not (is_nan == np.isnan(expected)).all():
            return False
        found, expected = np.where(is_nan, 0, found), np.where(is_nan, 0, expected)
    return found.tobytes() == expected.tobytes()


def near(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether floats differ by roundings alone."""
    tolerance = {"rtol": 1e-5, "atol": 1e-6, "equal_nan": True}
    return found.dtype.kind == "f" and np.allclose(found, expected, **tolerance)


def differences(folder: Path, made) -> list[str]:
    """What is wrong with the results of the folder's data."""
    has_sums = not SUMS.isdisjoint(taken_operators(made))
    wrong = []
    for data in sorted(folder.glob("test_data_set_*")):
        feed = {value.name: tensor(data / f"input_{i}.pb")
                for i, value in enumerate(made.get_inputs())}
        found = results(made, feed)
        expected = [tensor(data / f"output_{i}.pb") for i in range(len(found))]
        if all(map(same, found, expected)):
            continue
        if has_sums and all(map(near, found, expected)):
            continue
        host = results(session(folder / "model.onnx", False), feed)
        if not all(map(same, found, host)):
            wrong.append(f"{folder.name}/{data.name}: neither the data's bits nor the host's")
    return wrong


def run(folders: list[Path]) -> tuple[int, list[str]]:
    """In how many folders castor takes nodes, and what is wrong."""
    taken, wrong = 0, []
    for folder in folders:
        if folder.name.startswith(HOST_FAILS):
            continue
        try:
            made = session(folder / "model.onnx", True)
        except Exception:  # noqa: BLE001 - many kinds; the host must refuse the model by itself
            try:
                session(folder / "model.onnx", False)
            except Exception:  # noqa: BLE001
                continue
            wrong.append(f"{folder.name}: no session with the plugin")
            continue
        if taken_operators(made) and has_known_tensors(made):
            taken += 1
            wrong += differences(folder, made)
    return taken, wrong


def main() -> None:
    library, *given = sys.argv[1:]
    roots = [Path(each) for each in given] or [root for root in (DEBIAN, BESIDE) if root.exists()]
    if not roots:
        sys.exit("no node tests: libonnx-testdata has them")
    onnxruntime.set_default_logger_severity(4)
    onnxruntime.register_execution_provider_library("castor", library)
    is_wrong = False
    for root in roots:
        folders = sorted(file.parent for file in root.glob("**/model.onnx"))
        taken, wrong = run(folders)
        least = MIN_TAKEN.get(root, 0)
        print(f"{root.name}: castor takes nodes of {taken} of {len(folders)} models, expected at"
              f" least {least}", *wrong, sep="\n")
        is_wrong |= bool(wrong) or taken < least
    sys.exit(1 if is_wrong else 0)


if __name__ == "__main__":
    main()
