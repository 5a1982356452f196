#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a few cells of castor-bench and tools/bench-report on them: usage bench_smoke.py BENCH REPORT.

Exit status 77 (skipped) where the machine runs no generated code. Figures are not judged.
"""
import json
import math
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

CONVERSIONS = [f"Convert/{source}/{destination}/{footprint}"
               for footprint in ("16KiB", "256KiB")
               for source in ("u8", "f32", "u3") for destination in ("u8", "f16", "nf4")]
LAYOUT = "Convert/u2.msb_first/u2/256KiB"
ELEMENTWISE = ["Elementwise/add_f32_row/16KiB", "Elementwise/image_normalize/256KiB",
               "Elementwise/dequantize_u4_f32/256KiB", "Elementwise/transposed_f32/512x512"]
CONVOLUTIONS = ["ConvInteger/mobilenet_7_1x1/u8i8", "ConvInteger/unusual_5d/i8u8/nhwc",
                "ConvInteger/mobilenet_7_1x1/u8i8/requantize", "ConvInteger/unusual_5d/u8i8/nhwc/dequantize",
                "MatMulInteger/8x768x768/i8u8", "MatMulInteger/1x768x768/u8i8/requantize",
                "MatMulInteger/64x768x768/u8i8/row_zero_points"]
SUB_BYTE_VIEWS = ["SubByteViews/f32/u4/every_second", "SubByteViews/u3/f32/rows_of_5"]
OTHERS = [LAYOUT, "ConvertSpecial/f32/f8e5m2", "Compile/f32_u8/hit/idle", "Compile/growth/inputs/1000",
          "Call/run_rank1_2_views", "Start/first_runtime",
          "CacheLookup/function"]
REDUCTIONS = ["Reduce/min_max_f32/256KiB", "Reduce/dynamic_quantize_bf16_i8_rows/256KiB"]
LOOK_UPS = ["LookUp/u8/u8/nchw", "LookUp/u8/f32/tensor/constant"]
FILTER = r"^(Convert/(u8|f32|u3)/(u8|f16|nf4)/(16|256)KiB|" + "|".join(OTHERS + LOOK_UPS + REDUCTIONS + ELEMENTWISE + SUB_BYTE_VIEWS + CONVOLUTIONS) + ")$"
SPECIALS = ("nan", "infinity", "subnormal", "subnormal_result", "mixed")


def check(condition, message):
    if not condition:
        sys.exit(f"bench_smoke: {message}")


def run(*command):
    """Exit status and everything printed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    return done.returncode, done.stdout


def check_figure(row, counter):
    value = row.get(counter)
    check(isinstance(value, (int, float)) and math.isfinite(value) and value > 0,
          f"{row['name']}: {counter} is {value}, expected a positive number")


def check_results(path):
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    check(data["context"].get("castor_tier") == "avx2", "the context does not name the tier")
    for key in ("castor_cpu", "castor_core", "castor_port_model", "castor_clock_ghz", "castor_version"):
        check(data["context"].get(key), f"the context has no {key}")
    rows = {row["name"]: row for row in data["benchmarks"]}
    one_core = len(os.sched_getaffinity(0)) == 1
    expected = set(CONVERSIONS + OTHERS + LOOK_UPS + REDUCTIONS + ELEMENTWISE + SUB_BYTE_VIEWS + CONVOLUTIONS)
    check(set(rows) == expected, f"found {sorted(rows)}, expected {sorted(expected)}")
    for name, row in rows.items():
        if row.get("error_occurred"):
            check(one_core and name.startswith(("Compile/", "CacheLookup/")), f"{name}: {row.get('error_message')}")
            continue
        check_figure(row, "real_time")
        if name.startswith("ConvertSpecial/"):
            for special in SPECIALS:
                check_figure(row, f"{special}_fraction")
        if name in SUB_BYTE_VIEWS:
            check_figure(row, "ns_per_element")
        if name in CONVERSIONS + ELEMENTWISE + REDUCTIONS:
            check_figure(row, "GBps")
            check_figure(row, "stream_fraction")
        if name in CONVOLUTIONS:
            check_figure(row, "GMACps")
            check_figure(row, "peak_fraction")
        if name.startswith("Compile/growth/"):
            check_figure(row, "ns_per_op")
            check_figure(row, "bind_ns_per_op")
        if name.endswith("/16KiB"):
            check("port_fraction" in row, f"{name} has no port_fraction")
        if "transposed" in name:
            check_figure(row, "untransposed_fraction")


def check_report(report, results, folder):
    table, heat_map = os.path.join(folder, "table.txt"), os.path.join(folder, "map.svg")
    for slow, marked in (("0", 0), ("1000", len(CONVERSIONS))):
        status, output = run(sys.executable, report, results, "--table", table, "--svg", heat_map,
                             "--slow", slow)
        check(status == 0, f"bench-report: exit status {status}: {output}")
        svg = xml.etree.ElementTree.parse(heat_map)
        slow_cells = [each for each in svg.iter() if each.get("class") == "slow"]
        # 16KiB has a second map, of port_fraction.
        check(len(slow_cells) == marked * 3 // 2,
              f"--slow {slow}: {len(slow_cells)} cells marked, expected {marked * 3 // 2}")
    with open(table, encoding="utf-8") as file:
        text = file.read()
    for part in ("stream_fraction, 16KiB: 9 pairs", "port_fraction, 16KiB: 9 pairs",
                 "stream_fraction, 256KiB: 9 pairs", "f32 -> u8", "sub-byte <-> 8-bit", *OTHERS,
                 "image_normalize", "transposed_f32/512x512", "u3 -> f32", "every_second",
                 "mobilenet_7_1x1", "unusual_5d", "u8/f32/tensor/constant"):
        check(part in text, f"the table has no '{part}':\n{text}")


def check_machine_file(report, results, folder):
    """A file for each machine; a later run keeps remarks, and no other machine's file is replaced."""
    machines = os.path.join(folder, "machines")
    os.mkdir(machines)
    words = (sys.executable, report, results, "--results", machines)
    check(run(*words)[0] == 2, "--results takes files without a --command")
    words += ("--command", "castor-bench --benchmark_filter=a|b", "--commit", "0123abc")
    status, output = run(*words)
    check(status == 0, f"--results: exit status {status}: {output}")
    name, = os.listdir(machines)
    path = os.path.join(machines, name)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(results, encoding="utf-8") as file:
        context = json.load(file)["context"]
    for part in (f"| CPU | {context['castor_cpu']} |", "| caches | ", f", port model: {context['castor_port_model']} |",
                 "| tier | avx2 |",
                 "commit 0123abc |", f"| date | {context['date'][:10]} |",
                 "`castor-bench --benchmark_filter=a\\|b`", "## Conversions", "mobilenet_7_1x1"):
        check(part in text, f"{name} has no '{part}':\n{text}")
    with open(path, "a", encoding="utf-8") as file:
        file.write("The fan was loud.\n")
    status, output = run(*words, "--commit", "4567def")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    check(status == 0 and "4567def" in text and "0123abc" not in text, f"a second run: {output}")
    check(text.count("The fan was loud.") == 1, f"a second run does not keep remarks:\n{text}")
    other = text.replace(f"| CPU | {context['castor_cpu']} |", "| CPU | Another |")
    with open(path, "w", encoding="utf-8") as file:
        file.write(other)
    status, output = run(*words)
    check(status == 1 and "another machine" in output, f"a file of another machine: {output}")
    with open(path, encoding="utf-8") as file:
        check(file.read() == other, "a file of another machine was replaced")
    check(run(*words, "--name", "mine.md")[0] == 0, "--name is refused")
    check(sorted(os.listdir(machines)) == sorted([name, "mine.md"]), "--name writes no file")


def check_running_report(bench, report, folder):
    table = os.path.join(folder, "run.txt")
    status, output = run(sys.executable, report, "--run", bench, "--filter", LAYOUT, "--table",
                         table)
    check(status == 0, f"bench-report --run: exit status {status}: {output}")
    with open(table, encoding="utf-8") as file:
        check(LAYOUT in file.read(), f"bench-report --run shows no {LAYOUT}")


def check_compare(bench, compare):
    """A program beside itself: the same names, ratios around 1."""
    chosen = "^Convert/(u8|f32)/f16/16KiB$"
    status, output = run(sys.executable, compare, bench, bench, chosen, "--rounds", "2",
                         "--option=--castor_isa=avx2", "--option=--benchmark_min_time=0.002")
    check(status == 0, f"bench-compare: exit status {status}: {output}")
    for name in ("Convert/u8/f16/16KiB", "Convert/f32/f16/16KiB"):
        check(name in output, f"bench-compare leaves out {name}: {output}")
    mean = float(output.split("geometric mean ")[1].split(",")[0])
    check(0.2 < mean < 5, f"bench-compare: a program is {mean} times as fast as itself")
    status, output = run(sys.executable, compare, bench, bench, "^nothing$")
    check(status == 1 and "nothing" in output, f"bench-compare without a match: {status}: {output}")


def main():
    bench, report = sys.argv[1:]
    compare = os.path.join(os.path.dirname(report), "bench-compare")
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        if "avx2" not in file.read():
            sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, "results.json")
        status, output = run(bench, "--castor_isa=avx2", f"--benchmark_filter={FILTER}",
                             "--benchmark_min_time=0.002", f"--benchmark_out={results}",
                             "--benchmark_out_format=json")
        check(status == 0, f"castor-bench: exit status {status}: {output}")
        check_results(results)
        check_report(report, results, folder)
        check_machine_file(report, results, folder)
        check_running_report(bench, report, folder)
        check_compare(bench, compare)
        with open(results, "w", encoding="utf-8") as file:
            file.write("{}")
        check(run(sys.executable, report, results)[0] == 1, "bench-report accepts an empty object")
    status, output = run(bench, "--castor_isa=avx3")
    check(status == 2 and "avx3" in output, f"--castor_isa=avx3: exit status {status}: {output}")
    status, output = run(bench, "--castor_stores=often")
    check(status == 2 and "often" in output, f"--castor_stores=often: exit status {status}: {output}")
    status, output = run(bench, "--benchmark_filter=Convert/f32/u7")
    check(status == 2 and "u7" in output, f"a filter without match: exit status {status}: {output}")


if __name__ == "__main__":
    main()
