# SPDX-License-Identifier: Apache-2.0
"""The plugin inside the real ONNX Runtime, of its Python wheel: plugin_test.py LIBRARY [-v].

Which nodes castor takes, and that results are those of ONNX Runtime's CPU provider, bit for bit;
sessions by the thousand, runs from several threads, registering again.
"""

from __future__ import annotations

import gc
import resource
import sys
import threading
import unittest
from pathlib import Path

from host import PROVIDER, onnxruntime

import numpy as np

import host_mistakes
import models

LIBRARY = ""


def devices() -> list:
    return [device for device in onnxruntime.get_ep_devices() if device.ep_name == PROVIDER]


def cpu_flags() -> set[str]:
    return set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())


def multiplies_i16(isa: str = "") -> bool:
    """Whether kernels of a tier, or of the best one, widen bytes, for lack of VNNI."""
    return isa in ("avx2", "avx512") or not cpu_flags() & {"avx512_vnni", "avx_vnni"}


def options_of_castor(options: dict[str, str]) -> dict[str, str]:
    """The options; where products gain less than elsewhere, so that the same ones are taken."""
    defaults = {"threads": "1"}
    if multiplies_i16(options.get("isa", "")):
        defaults["min_gain"] = "0.55"
    return defaults | options


def session(model: bytes, castor: bool = True, level: int = 99,
            config: dict[str, str] | None = None, **options: str):
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    settings.intra_op_num_threads = 1
    levels = onnxruntime.GraphOptimizationLevel
    settings.graph_optimization_level = {0: levels.ORT_DISABLE_ALL, 1: levels.ORT_ENABLE_BASIC,
                                         2: levels.ORT_ENABLE_EXTENDED,
                                         99: levels.ORT_ENABLE_ALL}[level]
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    for name, value in (config or {}).items():
        settings.add_session_config_entry(name, value)
    if castor:
        settings.add_provider_for_devices(devices(), options_of_castor(options))
    # An error of the provider is an error of the session, instead of one without castor.
    return onnxruntime.InferenceSession(model, settings, enable_fallback=0)


def taken(made) -> list[str]:
    """The operators that castor has, sorted."""
    return sorted(node.op_type for part in made.get_provider_graph_assignment_info()
                  if part.ep_name == PROVIDER for node in part.get_nodes())


def groups(made) -> int:
    return sum(part.ep_name == PROVIDER for part in made.get_provider_graph_assignment_info())


def images(*shape: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def bytes_of(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, shape).astype(np.uint8)


POOL_OF_FLOATS = ["DequantizeLinear", "MaxPool", "QuantizeLinear"]
LAYER = ["Add", "Cast", "ConvInteger", "DynamicQuantizeLinear", "Mul", "Mul"]


class PluginTest(unittest.TestCase):
    def setUp(self) -> None:
        onnxruntime.register_execution_provider_library("castor", LIBRARY)

    def tearDown(self) -> None:
        gc.collect()  # sessions first: the library goes with its registration
        onnxruntime.unregister_execution_provider_library("castor")

    def same_bits(self, model: bytes, feed: dict, level: int = 99, **options: str) -> list[str]:
        """Runs with castor and without; gives the operators that castor has taken."""
        ours, theirs = session(model, level=level, **options), session(model, False, level)
        for found, wanted in zip(ours.run(None, feed), theirs.run(None, feed), strict=True):
            self.assertEqual(found.dtype, wanted.dtype)
            np.testing.assert_array_equal(found, wanted)
        return taken(ours)

    def test_is_a_device(self) -> None:
        self.assertEqual([device.ep_vendor for device in devices()], ["castor"])

    def test_takes_a_layer_at_every_level(self) -> None:
        for level in (0, 1, 2, 99):
            with self.subTest(level=level):
                names = self.same_bits(models.one_layer(), {"x": images(1, 8, 14, 14)}, level)
                self.assertEqual(names, sorted(LAYER + ["Relu"]))

    def test_a_layer_is_one_group(self) -> None:
        self.assertEqual(groups(session(models.one_layer())), 1)

    def test_takes_a_network_around_what_castor_lacks(self) -> None:
        names = self.same_bits(models.network("AveragePool"), {"x": images(2, 16, 28, 28)})
        self.assertEqual(names.count("ConvInteger"), 3)
        self.assertNotIn("AveragePool", names)

    def test_takes_a_network_as_one_group(self) -> None:
        model = models.network()
        names = self.same_bits(model, {"x": images(2, 16, 28, 28)})
        self.assertEqual(names, sorted(LAYER * 3 + ["Relu"] * 3 + ["MaxPool", "Add"]))
        self.assertEqual(groups(session(model)), 1)

    def test_other_domains_have_other_operators(self) -> None:
        """A function of the model that is called like ONNX's own operator, of one input."""
        for name in ("MatMulInteger", "QLinearConv", "MaxPool", "Erf", "Relu"):
            with self.subTest(name=name):
                model = models.function_beside_a_layer(name)
                self.assertEqual(self.same_bits(model, {"x": images(1, 8, 14, 14)}), sorted(LAYER))

    def test_a_model_with_functions_is_asked_for_twice(self) -> None:
        """Before and after they are inlined: the layer is the same one."""
        model = models.function_beside_a_layer("My", "Relu")
        for level in (0, 99):
            with self.subTest(level=level):
                names = self.same_bits(model, {"x": images(1, 8, 14, 14)}, level)
                self.assertEqual(names, sorted(LAYER + ["Relu"]))

    def test_paths_through_what_is_known(self) -> None:
        """ONNX Runtime runs what castor folds: a group has no path through it."""
        for kind in ("Size", "CastLike", "Shape"):
            for level in (0, 1, 99):
                with self.subTest(kind=kind, level=level):
                    model = models.path_through_a_constant(kind)
                    names = self.same_bits(model, {"x": images(1, 8, 14, 14)}, level)
                    self.assertEqual([name for name in names if name in LAYER], sorted(LAYER))

    def test_units_whose_inputs_others_read(self) -> None:
        """ONNX Runtime computes what stays beside a unit; the unit's nodes read that."""
        x = np.random.default_rng(1).integers(0, 256, (1, 16, 14, 14)).astype(np.uint8)
        for is_output in (False, True):
            for level in (0, 99):
                with self.subTest(is_output=is_output, level=level):
                    model = models.unit_beside_a_reader(is_output)
                    config = {"session.disable_quant_qdq": "1"}
                    ours = session(model, level=level, config=config, min_gain="0.1")
                    theirs = session(model, False, level, config)
                    for found, wanted in zip(ours.run(None, {"x": x}), theirs.run(None, {"x": x}),
                                             strict=True):
                        np.testing.assert_allclose(found, wanted, atol=1)

    def test_a_pow_that_castor_lacks_is_left(self) -> None:
        """It broadcasts to the exponent's rank; the layer is taken."""
        names = self.same_bits(models.pow_of_another_rank(), {"x": images(1, 8, 14, 14)})
        self.assertEqual([name for name in names if name in LAYER], sorted(LAYER))

    def test_branches_of_equal_names(self) -> None:
        """Those that compute the same are one group's; of others one is left."""
        for differ in (False, True):
            with self.subTest(differ=differ):
                model = models.branches_of_equal_names(differ)
                names = self.same_bits(model, {"x": images(1, 8, 14, 14)})
                self.assertEqual(names.count("ConvInteger"), 1 if differ else 2)

    def test_every_tier_gives_the_same_bits(self) -> None:
        flags = cpu_flags()
        tiers = ["avx2"] + ["avx512"] * ("avx512vl" in flags) + ["avx512_vnni"] * (
            "avx512_vnni" in flags)
        for tier in tiers:
            with self.subTest(tier=tier):
                self.same_bits(models.network(), {"x": images(1, 16, 28, 28)}, isa=tier)

    def test_batches_one_after_the_other(self) -> None:
        model = models.network()
        ours, theirs = session(model), session(model, False)
        for batch in (1, 3, 1, 2, 0, 5, *range(1, 24), 3):
            feed = {"x": images(batch, 16, 28, 28, seed=batch)}
            np.testing.assert_array_equal(ours.run(None, feed)[0], theirs.run(None, feed)[0])

    def test_extents_of_one_name_that_differ(self) -> None:
        """ONNX Runtime broadcasts them, though their names say that they are equal."""
        for same_names in (True, False):
            model = models.embedded(same_names)
            ours, theirs = session(model, min_gain="0.5"), session(model, False)
            self.assertIn("MatMulInteger", taken(ours))
            for batch, tokens, of_one in ((2, 5, False), (2, 5, True), (1, 7, False), (3, 1, True)):
                feed = {"x": images(batch, tokens, 32),
                        "position": images(1 if of_one else batch, tokens, 48, seed=7)}
                with self.subTest(same_names=same_names, batch=batch, of_one=of_one):
                    np.testing.assert_array_equal(ours.run(None, feed)[0],
                                                  theirs.run(None, feed)[0])

    def test_extents_whose_names_are_alike(self) -> None:
        for names in (("s0 + 1", "s0 - 1"), ("v0_2", "v0_3"), ("h", "h")):
            model = models.sides(*names)
            ours, theirs = session(model), session(model, False)
            self.assertIn("ConvInteger", taken(ours))
            for height, width in ((7, 5), (6, 6), (5, 9)):
                feed = {"x": images(2, 8, height, width)}
                with self.subTest(names=names, height=height, width=width):
                    np.testing.assert_array_equal(ours.run(None, feed)[0],
                                                  theirs.run(None, feed)[0])

    def test_quantized_units_of_old_opsets(self) -> None:
        """Conv and MatMul have versions before any that QLinearConv and QLinearMatMul have."""
        for op_type in ("Conv", "MatMul"):
            for opset in (10, 11, 12, 13, 21):
                with self.subTest(op_type=op_type, opset=opset):
                    names = taken(session(models.unit_of_opset(opset, op_type), min_gain="0.5"))
                    self.assertIn(op_type, names)

    def test_special_numbers(self) -> None:
        for special in (0.0, -0.0, 1e-40, 3e38):
            with self.subTest(special=special):
                x = images(1, 8, 14, 14)
                x[0, 3, 2, 1] = special
                if special == 0.0:
                    x[:] = 0
                self.same_bits(models.one_layer(), {"x": x})

    def test_outputs_inside_the_group(self) -> None:
        names = self.same_bits(models.outputs_inside(), {"x": images(1, 8, 14, 14)})
        self.assertIn("ConvInteger", names)

    def test_groups_stay_convex(self) -> None:
        names = self.same_bits(models.not_convex(), {"x": images(1, 8, 14, 14)})
        self.assertIn("ConvInteger", names)
        self.assertNotIn("Exp", names)

    def test_weights_from_outside(self) -> None:
        feed = {"x": images(1, 8, 14, 14),
                "constant_0": np.random.default_rng(1).integers(-63, 64, (8, 8, 3, 3))
                .astype(np.int8)}
        names = self.same_bits(models.constant_that_is_an_input(), feed)
        self.assertIn("ConvInteger", names)

    def test_bodies_of_control_flow(self) -> None:
        for scale in (0.01, 10):
            self.same_bits(models.body_of_if(), {"x": images(1, 8, 14, 14) * np.float32(scale)})

    def test_unknown_ranks_are_left(self) -> None:
        names = self.same_bits(models.unknown_rank(), {"x": images(1, 8, 14, 14)})
        self.assertNotIn("ConvInteger", names)

    def test_nothing_to_claim(self) -> None:
        names = self.same_bits(models.nothing_to_claim(), {"x": images(1, 8, 14, 14)})
        self.assertEqual(names, [])

    def test_quantized_units_are_within_one_step(self) -> None:
        for depthwise in (False, True):
            with self.subTest(depthwise=depthwise):
                model = models.unit_of_floats(depthwise)
                feed = {"x": images(2, 16, 14, 14)}
                ours = session(model, min_gain="0")
                self.assertIn("Conv", taken(ours))
                wanted = session(model, False, 0).run(None, feed)[0]
                found = ours.run(None, feed)[0]
                self.assertLessEqual(np.abs(found - wanted).max(), 0.03 * 1.001)

    def test_products_are_taken_where_castor_is_faster(self) -> None:
        for kind, columns, is_taken in ((np.uint8, 256, True), (np.uint8, 16, False),
                                        (np.int8, 256, False)):
            with self.subTest(kind=kind, columns=columns):
                model, feed = models.product(kind, 256, columns), {"x": images(5, 256)}
                names = taken(session(model))
                self.assertEqual(names.count("MatMulInteger"), int(is_taken))
                wanted = session(model, False, 0).run(None, feed)[0]  # without fusions
                np.testing.assert_array_equal(
                    session(model, min_gain="0").run(None, feed)[0], wanted)
        names = self.same_bits(models.quantized_product(), {"x": images(5, 64)})
        self.assertIn("QLinearMatMul", names)

    def test_quantized_pools_are_in_the_group_of_their_convolutions(self) -> None:
        for form, names_of_pool in (("codes", ["MaxPool"]), ("floats", POOL_OF_FLOATS)):
            with self.subTest(form=form):
                model = models.pool_after_convolution(form)
                names = self.same_bits(model, {"x": bytes_of(1, 16, 28, 28)})
                self.assertEqual(names, sorted(names_of_pool + ["QLinearConv"] * 2))
                self.assertEqual(groups(session(model)), 1)

    def test_convolutions_before_quantized_pools_that_are_left_are_left(self) -> None:
        for form in ("codes", "floats"):
            with self.subTest(form=form):
                names = self.same_bits(models.pool_after_convolution(form, indices=True),
                                       {"x": bytes_of(1, 16, 28, 28)})
                self.assertEqual(names, ["QLinearConv"])

    def test_pools_of_codes(self) -> None:
        rows = [([13], {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}),
                ([13], {"kernel_shape": [4], "auto_pad": "SAME_LOWER", "strides": [3]}),
                ([14, 15], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
                ([14, 15], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
                ([14, 15], {"kernel_shape": [3, 2], "strides": [4, 2], "ceil_mode": 1,
                            "auto_pad": "VALID"}),
                ([14, 15], {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1,
                            "auto_pad": "SAME_UPPER"}),
                ([14, 15], {"kernel_shape": [3, 2], "dilations": [2, 3], "ceil_mode": 1,
                            "strides": [2, 3]}),
                ([7, 8, 9], {"kernel_shape": [2, 3, 2], "pads": [0, 1, 1, 1, 0, 0],
                             "strides": [1, 2, 3]})]
        for extents, attributes in rows:
            for kind in (np.uint8, np.int8):
                with self.subTest(extents=extents, kind=kind, **attributes):
                    model = models.pool_of_codes(extents, kind, **attributes)
                    names = self.same_bits(model, {"x": bytes_of(1, 3, *extents).view(kind)})
                    self.assertEqual(names, ["MaxPool", "QLinearConv"])

    def test_last_windows_that_would_begin_in_padding(self) -> None:
        """Up to opset 21, ONNX's shape inference counts them: castor refuses the model."""
        for opset, wanted in ((17, []), (22, ["MaxPool", "QLinearConv"])):
            with self.subTest(opset=opset):
                model = models.pool_of_codes([14, 15], opset=opset, kernel_shape=[2, 2],
                                             strides=[3, 3], pads=[0, 0, 1, 1], ceil_mode=1)
                names = self.same_bits(model, {"x": bytes_of(1, 3, 14, 15)})
                self.assertEqual(names, wanted)

    def test_pools_of_floats_after_layers(self) -> None:
        for attributes in ({"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4},
                           {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}):
            with self.subTest(**attributes):
                names = self.same_bits(models.pool_of_a_layer([15, 17], **attributes),
                                       {"x": images(2, 4, 15, 17)})
                self.assertEqual(names, sorted(LAYER + ["MaxPool"]))

    def test_pools_without_integer_products_are_left(self) -> None:
        names = self.same_bits(models.pools_of_floats(), {"x": images(1, 8, 14, 14)})
        self.assertEqual(names, [])

    def test_quantized_convolutions_are_left_without_vnni(self) -> None:
        options = {"isa": "avx2", "min_gain": "1"}
        for channels in (3, 5):
            self.assertEqual(taken(session(models.stem(channels, 7), **options)), [])
        self.assertIn("ConvInteger", taken(session(models.one_layer(), **options)))

    @unittest.skipIf(multiplies_i16(), "the CPU has no VNNI, without which they gain nothing")
    def test_stems_gain_more_than_other_dense_convolutions(self) -> None:
        isa = "avx512_vnni" if "avx512_vnni" in cpu_flags() else "avx2_vnni"
        for channels, kernel, is_taken in ((3, 7, True), (4, 2, True), (4, 1, False),
                                           (5, 7, False)):
            for min_gain, takes_all in (("1", True), ("2.5", False)):
                with self.subTest(channels=channels, kernel=kernel, min_gain=min_gain):
                    names = self.same_bits(models.stem(channels, kernel),
                                           {"x": bytes_of(1, channels, 32, 32)}, isa=isa,
                                           min_gain=min_gain)
                    wanted = ["MaxPool", "QLinearConv"] if is_taken or takes_all else []
                    self.assertEqual(names, wanted)

    def test_units_that_castor_lacks_are_left_whole(self) -> None:
        names = self.same_bits(models.unit_that_castor_lacks(), {"x": images(1, 8, 14, 14)})
        self.assertEqual(names, sorted(LAYER + ["QuantizeLinear"]))

    def test_a_group_that_gains_too_little_is_left(self) -> None:
        self.assertEqual(taken(session(models.one_layer(), min_gain="1000")), [])

    def test_threads_give_the_same_bits(self) -> None:
        model, feed = models.network(), {"x": images(4, 16, 28, 28)}
        wanted = session(model, False).run(None, feed)[0]
        for threads in ("2", "3", "16"):
            settings = onnxruntime.SessionOptions()
            settings.intra_op_num_threads = 2
            settings.add_provider_for_devices(devices(), {"threads": threads})
            made = onnxruntime.InferenceSession(model, settings)
            np.testing.assert_array_equal(made.run(None, feed)[0], wanted)
            del made, settings

    def test_ten_thousand_runs_from_four_threads(self) -> None:
        made = session(models.one_layer("n"))
        feeds = [{"x": images(n, 8, 14, 14, seed=n)} for n in (1, 2, 3, 4)]
        wanted = [made.run(None, feed)[0] for feed in feeds]
        failures: list[str] = []

        def work(first: int) -> None:
            for i in range(2500):
                k = (first + i) % 4
                if not np.array_equal(made.run(None, feeds[k])[0], wanted[k]):
                    failures.append(f"run {i} of thread {first}")

        threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_a_thousand_sessions_do_not_grow(self) -> None:
        model, feed = models.one_layer(), {"x": images(1, 8, 14, 14)}

        def make(count: int) -> int:
            for _ in range(count):
                session(model).run(None, feed)
            gc.collect()
            return resident_bytes()

        make(200)
        before = make(300)
        self.assertLess(make(500) - before, 8 << 20)

    def test_registers_again(self) -> None:
        feed = {"x": images(1, 8, 14, 14)}
        wanted = session(models.one_layer()).run(None, feed)[0]
        for _ in range(20):
            self.tearDown()
            self.setUp()
            np.testing.assert_array_equal(session(models.one_layer()).run(None, feed)[0], wanted)

    def test_is_right_where_the_host_is_wrong(self) -> None:
        for mistake in host_mistakes.mistakes():
            if mistake.castor_takes:
                with self.subTest(what=mistake.what):
                    self.assertEqual(host_mistakes.outcome(mistake, devices()[0]), "right")

    def test_wrong_options_are_refused(self) -> None:
        rows = [("isa", "mmx", "a tier that `castor info` lists"), ("threads", "0", "1 to 256"),
                ("threads", "two", "1 to 256"), ("min_gain", "-1", "a number of at least 0"),
                ("explain", "yes", "0 or 1")]
        for key, value, expected in rows:
            with self.subTest(key=key, value=value):
                with self.assertRaises(Exception) as raised:
                    session(models.one_layer(), **{key: value})
                self.assertIn(f"the option {key} is '{value}', expected {expected}",
                              str(raised.exception))


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    LIBRARY = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
