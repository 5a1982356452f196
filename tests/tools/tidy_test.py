#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/tidy in a small repository of its own: what it looks at, and what it finds.

usage: tidy_test.py SOURCE
"""
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CLEAN = "int twice(int x) { return 2 * x; }\n"
MOVED = """#include <string>
#include <utility>
std::string pair_of(std::string x) {
  std::string y = std::move(x);
  return y + x;
}
"""
USER = '#include "ir/mistake.hpp"\n' + CLEAN


def check(condition, message):
    if not condition:
        sys.exit(f"tidy_test: {message}")


class Repository:
    """A repository with a compile database as CMake writes it, precompiled header included."""

    def __init__(self, root, source):
        self.root = root
        for name in ("tools/tidy", ".clang-tidy"):
            (root / name).parent.mkdir(exist_ok=True)
            shutil.copy(source / name, root / name)
        self.write("build/common.hpp", "#include <vector>\n")
        subprocess.run(["g++", "-std=c++20", "-x", "c++-header", "build/common.hpp", "-o",
                        "build/cmake_pch.hxx.gch"], cwd=root, check=True)
        self.write("build/cmake_pch.hxx", '#include "common.hpp"\n')
        self.write(".gitignore", "/build/\n")
        self.git("init", "--quiet")

    def git(self, *arguments):
        identity = ("-c", "user.name=castor", "-c", "user.email=castor@localhost")
        subprocess.run(["git", *identity, *arguments], cwd=self.root, check=True)

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a state")

    def tidy(self, *arguments):
        """Exit status and output of tools/tidy."""
        sources = [path for path in self.root.rglob("*.cpp")]
        flags = f"-Winvalid-pch -include {self.root}/build/cmake_pch.hxx"
        self.write("build/compile_commands.json", json.dumps([
            {"directory": str(self.root / "build"), "file": str(path),
             "command": f"g++ -std=c++20 -I{self.root} {flags} -o x.o -c {path}"} for path in sources]))
        done = subprocess.run(["tools/tidy", "--build", "build", *arguments], cwd=self.root,
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def expect_pass(result, counted, what):
    check(result[0] == 0 and counted in result[1], f"{what}: expected {counted}, found {result}")


def expect_finding(result, finding, what):
    check(result[0] == 1 and finding in result[1], f"{what}: expected {finding}, found {result}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(Path(folder).resolve(), Path(sys.argv[1]).resolve())
        repository.write("ir/old.cpp", MOVED)
        repository.commit()
        repository.write("ir/new.cpp", CLEAN)
        expect_pass(repository.tidy("HEAD"), "1 of 1 sources", "a clean source that is not committed")
        expect_finding(repository.tidy("all"), "bugprone-use-after-move", "all sources")
        expect_finding(repository.tidy(), "ir/old.cpp", "without a commit to compare with")
        repository.commit()
        expect_pass(repository.tidy(), "1 of 1 sources", "the last commit")

        repository.write("ir/old.cpp", MOVED + "\n")
        expect_finding(repository.tidy("HEAD"), "bugprone-use-after-move", "a source that changed")
        repository.write("ir/old.cpp", CLEAN)
        repository.write("ir/mistake.hpp", "#pragma once\n#include <vector>\n")
        repository.write("ir/user.cpp", USER)
        repository.commit()
        expect_pass(repository.tidy("HEAD"), "0 of 0 sources", "nothing changed")
        repository.write("ir/mistake.hpp", "#pragma once\ninline std::vector<int> none() { return {}; }\n")
        expect_finding(repository.tidy("HEAD"), "ir/mistake.hpp", "an include that a header lacks")
        status, output = repository.tidy("no-such-commit")
        check(status == 1 and "no commit no-such-commit" in output, f"an unknown commit: {output}")


if __name__ == "__main__":
    main()
