#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An engine adds castor's folder to its own build: what CMake makes of it.

usage: subproject_test.py SOURCE
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ENGINE = """cmake_minimum_required(VERSION 3.25)
project(engine LANGUAGES CXX)
add_subdirectory({castor} castor)
add_executable(engine engine.cpp)
target_link_libraries(engine PRIVATE castor::castor)
"""


def check(condition, message):
    if not condition:
        sys.exit(f"subproject_test: {message}")


def main():
    source = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        engine = Path(folder)
        (engine / "CMakeLists.txt").write_text(ENGINE.format(castor=source))
        (engine / "engine.cpp").write_text("#include <castor/castor.hpp>\nint main() {}\n")
        build = engine / "build"
        configured = subprocess.run(
            ["cmake", "-S", engine, "-B", build, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"],
            capture_output=True, text=True, check=False)
        check(configured.returncode == 0, configured.stderr)
        commands = json.loads((build / "compile_commands.json").read_text())

    ours = [one for one in commands if Path(one["file"]).is_relative_to(source)]
    theirs = [one for one in commands if one["file"].endswith("engine.cpp")]
    check(len(theirs) == 1, f"the engine has {len(theirs)} sources, expected 1")
    for one in ours:
        check("-Werror" not in one["command"], f"{one['file']}: warnings would be errors")
    for flag in ("-Wall", "-fvisibility", "-fstack-protector"):
        check(flag not in theirs[0]["command"], f"the engine itself is compiled with {flag}")
    layers = {Path(one["file"]).relative_to(source).parts[0] for one in ours}
    check(layers == {"ir", "jit", "runtime"}, f"it builds {sorted(layers)}")


if __name__ == "__main__":
    main()
