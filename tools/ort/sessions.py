# SPDX-License-Identifier: Apache-2.0
"""Sessions of stock ONNX Runtime, with its CPU provider alone or with castor's plugin before it."""
import collections
import pathlib

import numpy as np
import onnxruntime

LIBRARY_NAME = "castor"
PROVIDER = "CastorExecutionProvider"
ONLY_ERRORS = 3  # also no warning that nodes are left to the CPU provider


def castor_device(plugin: pathlib.Path) -> onnxruntime.OrtEpDevice:
    """Registers the plugin, by an absolute path: ONNX Runtime takes others from its own folder."""
    onnxruntime.register_execution_provider_library(LIBRARY_NAME, str(plugin.resolve()))
    for device in onnxruntime.get_ep_devices():
        if device.ep_name == PROVIDER:
            return device
    raise RuntimeError(f"{plugin} is registered, but offers no device of {PROVIDER}")


def create(model: bytes, threads: int, device: onnxruntime.OrtEpDevice | None = None,
           is_fused: bool = True) -> onnxruntime.InferenceSession:
    """With ONNX Runtime's defaults, or, not fused, without what changes the rounding of floats."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = ONLY_ERRORS
    if not is_fused:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    if device is None:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    options.add_provider_for_devices([device], {"threads": str(threads)})
    return onnxruntime.InferenceSession(model, options)


def assigned(
        session: onnxruntime.InferenceSession) -> tuple[collections.Counter, collections.Counter]:
    """Nodes by operator: those that castor takes, and those that are left to others."""
    taken: collections.Counter = collections.Counter()
    left: collections.Counter = collections.Counter()
    for subgraph in session.get_provider_graph_assignment_info():
        into = taken if subgraph.ep_name == PROVIDER else left
        into.update(node.op_type for node in subgraph.get_nodes())
    return taken, left


def results(session: onnxruntime.InferenceSession,
            inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))
