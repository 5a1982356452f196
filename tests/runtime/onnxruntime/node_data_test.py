# SPDX-License-Identifier: Apache-2.0
"""ONNX's node tests inside the real ONNX Runtime: node_data_test.py LIBRARY [FOLDER...].

Each model runs in a session with the plugin, which is told to take all that castor can compute, on
the data that come with it. Results are those of the data, or of ONNX Runtime's CPU provider, bit
for bit. After sums of floats, which each side adds in an order of its own, they are near. FOLDERs
hold model.onnx and test_data_set_*; without any, Debian's libonnx-testdata is used, and the folder
of node tests beside the repository where there is one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from host import PROVIDER, ROOT, onnxruntime

import numpy as np
import onnx
from onnx import numpy_helper

DEBIAN = Path("/usr/share/libonnx-testdata/data/node")
BESIDE = ROOT.parent / "shared" / "data" / "onnx-node"
MIN_TAKEN = {DEBIAN: 426, BESIDE: 315}  # models of which castor takes nodes
# The host's Python interface has tensors of these; the front end's tests have the other types.
NATIVE = {f"tensor({name})" for name in (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16",
    "float", "double")}


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


def has_native_tensors(made) -> bool:
    return all(value.type in NATIVE for value in (*made.get_inputs(), *made.get_outputs()))


def taken_operators(made) -> set[str]:
    return {node.op_type for part in made.get_provider_graph_assignment_info()
            if part.ep_name == PROVIDER for node in part.get_nodes()}


def tensor(file: Path) -> np.ndarray:
    return numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether the bits are equal; any NaN is equal to any other."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if found.dtype.kind == "f":
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
        found = made.run(None, feed)
        expected = [tensor(data / f"output_{i}.pb") for i in range(len(found))]
        if all(map(same, found, expected)):
            continue
        if has_sums and all(map(near, found, expected)):
            continue
        host = session(folder / "model.onnx", False).run(None, feed)
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
        if taken_operators(made) and has_native_tensors(made):
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
