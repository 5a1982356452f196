# SPDX-License-Identifier: Apache-2.0
"""Tests tools/terms and, with it, the sources: how often each word that the glossary replaces is
used equals the number in tests/package/terms_ceiling.txt. Usage: terms_test.py FOLDER_OF_CASTOR"""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile

# Path, text, and the words that count there, once for each use.
SAMPLES = [
    ("ir/a.cpp", "// What lies behind\n// it.\nint behind_end = 0;\n", ["behind", "behind", "lies"]),
    ("ir/a.cpp", "int a;  // comes in\n        // front of it\n", ["in front of"]),
    ("ir/a.cpp", 'fail("no place for x");\n', ["place"]),
    ("ir/a.cpp", "// Computed in place; half of the last place; it takes place.\nbool in_place;\n", []),
    ("ir/a.cpp", "int most_taps, leastSum; int at_most_four; bool most;\n", ["most_, least_"] * 2),
    ("ir/a.cpp", "int most_taps; most_taps = 3; // `most_taps` again\n", ["most_, least_"]),
    ("ir/most_taps.hpp", "#include <vector>\n", ["most_, least_"]),
    ("ir/a.cpp", '#include "jit/emit/memory_ports.hpp"\n', ["port"]),
    ("ir/a.cpp", "int port_costs = load_port;  // load ports are execution ports\n", []),
    ("ir/a.cpp", "int x;  ///< of the last one\nint y;  ///< the tile of it\n", ["Of ..."]),
    ("ir/a.cpp", "/// Of a pixel for a vector.\nint x;\n", ["Of ..."]),
    ("ir/a.cpp", "// As many elements as there are. Twice as many.\n", []),
    ("ir/a.cpp", "// A tensor of as many elements.\n", ["so many"]),
    ("ir/a.cpp", "// Nests share code, one half each.\n", []),
    ("ir/a.cpp", "// Each task does its share of the rows.\n", ["share"]),
    ("ir/a.cpp", "// A piece of code.\n// A piece of the tensor.\n", ["piece"]),
    ("ir/a.cpp", "char c = '\"'; int planes = 1'000;  // planes\n", []),
    ("jit/conv/a.cpp", "int planes;  // nchw4c planes, and other planes\n", ["planes", "planes"]),
    ("tools/a.py", '"""Walks\n    over it."""\nwalks = "#"  # walks\n', ["walk"] * 3),
    ("tools/README.md", "It is `most_taps` at\nthe most.\n", ["at the most", "most_, least_"]),
]


def load(root):
    sys.path.insert(0, os.path.join(root, "tools"))
    loader = importlib.machinery.SourceFileLoader("terms", os.path.join(root, "tools/terms"))
    spec = importlib.util.spec_from_loader("terms", loader)
    terms = importlib.util.module_from_spec(spec)
    sys.modules["terms"] = terms
    loader.exec_module(terms)
    return terms


def expect(condition, message):
    if not condition:
        sys.exit(message)


def check_samples(terms):
    for path, text, wanted in SAMPLES:
        found = sorted(word for word, _, _ in terms.uses_in(path, text))
        expect(found == sorted(wanted), f"{path}, {text!r}: found {found}, expected {sorted(wanted)}")
    lines = [line for word, line, _ in terms.uses_in("a.cpp", "int a;\n// x\n// behind\n")]
    expect(lines == [3], f"line of a use in a comment's second line: found {lines}, expected [3]")


def check_ceiling(terms):
    """A count above its ceiling fails, one below it too; --lower mends only the second."""
    script = os.path.join(terms.ROOT, "tools/terms")
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "tests/package"))
        source = os.path.join(root, "a.cpp")

        def run(*options):
            command = [sys.executable, "-B", script, "--root", root, *options]
            return subprocess.run(command, capture_output=True, text=True, check=False)

        def write(uses):
            with open(source, "w", encoding="utf-8") as file:
                file.write("// behind\nint x;\n" * uses)

        write(2)
        expect(run("--lower").returncode == 0 and run("--check").returncode == 0, "no ceiling made")
        write(3)
        for _ in range(2):
            above = run("--check")
            expect(above.returncode == 1 and "behind: 3 uses, expected at most 2" in above.stderr,
                   f"a count above its ceiling: {above.stderr}")
            run("--lower")
        write(1)
        below = run("--check")
        expect(below.returncode == 1 and "behind: 1 uses, the ceiling is 2" in below.stderr,
               f"a count below its ceiling: {below.stderr}")
        run("--lower")
        expect(run("--check").returncode == 0, "the lower count was not written")
        listed = run("--list", "behind").stdout
        expect(listed == "a.cpp:1: behind\n", f"--list: found {listed!r}")
        unknown = run("--list", "ahead")
        expect(unknown.returncode == 1 and "found word 'ahead'" in unknown.stderr, unknown.stderr)


def main():
    terms = load(sys.argv[1])
    check_samples(terms)
    check_ceiling(terms)
    counts = {word: len(uses) for word, uses in terms.search(terms.ROOT).items()}
    messages = terms.check(os.path.join(terms.ROOT, terms.CEILING), counts)
    sys.exit("\n".join(messages) if messages else 0)


main()
