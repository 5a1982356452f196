# SPDX-License-Identifier: Apache-2.0
"""No source of runtime/ and no installed header reaches Xbyak through its includes: the runtime knows
kernels by their specs, and emitters have headers of their own. Prints the chain of includes where one
does. The includes are followed in the text: files of the house only, in every branch of #if.
Usage: runtime_includes_test.py ROOT"""
import collections
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def includes_of(path):
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


def find(root, includer, name):
    """The file of the house that is included; None for all others."""
    for folder in (root, root / "runtime/include", includer.parent):
        if (folder / name).is_file():
            return (folder / name).resolve()
    return None


def chain_to_xbyak(root, source):
    """The shortest chain of includes from a file to Xbyak; None where there is none."""
    includer_of = {source: None}
    queue = collections.deque([source])
    while queue:
        path = queue.popleft()
        for name in includes_of(path):
            if "xbyak" in name.lower():
                chain = [name]
                while path is not None:
                    chain.append(str(path.relative_to(root)))
                    path = includer_of[path]
                return chain[::-1]
            found = find(root, path, name)
            if found is not None and found not in includer_of:
                includer_of[found] = path
                queue.append(found)
    return None


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    sources = sorted((root / "runtime").rglob("*.cpp"))
    headers = sorted((root / "runtime/include").rglob("*.h*"))
    if len(sources) < 50 or len(headers) < 10:
        sys.exit(f"found {len(sources)} sources and {len(headers)} headers: these are not castor's")
    emitter = root / "jit/conv/dense/tile_emitter.cpp"
    if chain_to_xbyak(root, emitter) is None:
        sys.exit(f"{emitter} is an emitter, and yet no chain is found from it: this test is blind")
    chains = [chain for path in sources + headers if (chain := chain_to_xbyak(root, path))]
    for chain in chains:
        print("\n  includes ".join(chain))
    print(f"{len(chains)} of {len(sources)} sources and {len(headers)} installed headers see Xbyak")
    sys.exit(1 if chains else 0)


main()
