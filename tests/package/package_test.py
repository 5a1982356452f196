#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs castor, uses what was installed, and makes the Debian package.

Usage: package_test.py BUILD_DIRECTORY SOURCE_DIRECTORY VERSION. Needs cmake, a C and a C++
compiler, pkg-config, binutils and dpkg-deb, and fails without them.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BUILD, SOURCE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
VERSION = sys.argv[3]
SOVERSION = ".".join(VERSION.split(".")[:2])
INSTALLED = [
    "bin/castor", "include/castor/castor.h", "include/castor/castor.hpp", "include/castor/mli.h", "include/castor/ir/text/text.hpp",
    "include/castor/jit/target.hpp", "{lib}/libcastor.a", "{lib}/libcastor.so",
    "{lib}/libcastor.so." + SOVERSION, "{lib}/libcastor_mli.a", "{lib}/libcastor_mli.so",
    "{lib}/libcastor_listing.so", "{lib}/libcastor_onnxruntime.so", "{lib}/libcastor_threads.so", "{lib}/pkgconfig/castor-listing.pc",
    "{lib}/cmake/castor/castorConfig.cmake", "{lib}/pkgconfig/castor.pc",
    "{lib}/pkgconfig/castor-mli.pc", "share/man/man1/castor.1",
    "share/bash-completion/completions/castor", "share/doc/castor/README.md",
    "share/doc/castor/ir/README.md", "share/doc/castor/bench/results/intel-xeon-emerald-rapids.md",
]
MAX_BYTES = 4_700_000
CPP_OUTPUT = f"castor {VERSION}: 2 4 6"
MLI_OUTPUT = "mli: 64 -32 16 127"
C_OUTPUT = f"castor {VERSION}: machine code"
COMPONENTS_OUTPUT = "listed, 2 tasks"


def check(condition, message):
    if not condition:
        sys.exit(f"package_test: {message}")


def run(*command, **options):
    """Everything that a command prints, which must succeed."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **options)
    check(done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout}")
    return done.stdout


def install(folder):
    """The installed tree, moved to another folder afterwards; and the name of its library folder."""
    first = folder / "first"
    run("cmake", "--install", BUILD, "--prefix", first)
    prefix = folder / "prefix"
    first.rename(prefix)
    lib = next(prefix.rglob("libcastor.so")).parent.relative_to(prefix)
    for name in INSTALLED:
        check((prefix / name.format(lib=lib)).exists(), f"{name} is not installed")
    return prefix, prefix / lib


def check_size(lib):
    """The library that programs load is small."""
    size, name = run(SOURCE / "tools/library-size", lib / "libcastor.so").split()
    check(name == "libcastor.so" and 0 < int(size) < MAX_BYTES,
          f"{name} has {size} bytes without symbol tables, expected less than {MAX_BYTES}")


def check_symbols(lib, prefix):
    """Shared libraries show their interface: all of it, and nothing else."""
    for library, allowed, header in (("libcastor.so", r"castor(_|::)|__jit_debug_", "c/*.h"),
                                     ("libcastor_mli.so", r"(castor_)?mli_", "mli.h"),
                                     ("libcastor_listing.so", r"castor(_|::).*(listing|dump)", "listing.h"),
                                     ("libcastor_threads.so", r"castor(_|::).*thread", "thread_pool.h"),
                                     ("libcastor_onnxruntime.so", r"(Create|Release)EpFactor", None)):
        listed = run("nm", "--dynamic", "--defined-only", "--demangle", lib / library)
        symbols = {line.split(" ", 2)[2] for line in listed.splitlines()}
        symbols = {re.sub(r"@.*", "", symbol) for symbol in symbols if " A " not in symbol}
        symbols = {symbol for symbol in symbols if not re.fullmatch(r"CASTOR_[A-Z_]*[0-9.]+", symbol)}
        strangers = [symbol for symbol in symbols
                     if not re.match(r"((vtable|typeinfo|typeinfo name) for )?" + allowed, symbol)]
        check(not strangers, f"{library} shows {strangers[:5]}")
        if header is None:  # loaded by its names, never included
            check(len(symbols) == 2, f"{library} shows {symbols}")
            continue
        files = sorted((prefix / "include/castor").glob(header))
        text = "".join(file.read_text() for file in files)
        declared = set(re.findall(r"CASTOR_API [\w *]*?\b(\w+)\(", text))
        check(declared and declared <= symbols, f"{library} lacks {declared - symbols}")


def check_entries(file):
    """The functions that a library exports, and main of the command, begin with endbr64."""
    table = run("nm", "--dynamic", "--defined-only", file) if ".so" in file.name else run("nm", file)
    code = run("objdump", "--disassemble", "--section=.text", "--no-show-raw-insn", file)
    entries = dict(re.findall(r"^[0-9a-f]+ <([^>]+)>:\n\s*[0-9a-f]+:\s+(\S+)", code, re.MULTILINE))
    found = re.findall(r" T ([^\s@]+)", table)
    names = [name for name in found if name in entries]
    ours = [name for name in names if re.search(r"castor|mli_|EpFactor|^main$", name)]
    check(ours, f"{file.name} has no function of castor's")
    for name in ours:
        check(entries[name] == "endbr64", f"{file.name}: {name} begins with {entries[name]}")


def check_hardening(prefix, lib):
    """Libraries and the command resolve all symbols at once, into tables that are read-only then,
    and have canaries in stack frames and no executable stack."""
    for file in [prefix / "bin/castor", *sorted(lib.glob("libcastor*.so"))]:
        dynamic = run("readelf", "--wide", "--dynamic", file)
        check(re.search(r"\(FLAGS(_1)?\).*NOW", dynamic), f"{file.name} binds lazily")
        segments = run("readelf", "--wide", "--segments", file)
        check("GNU_RELRO" in segments, f"{file.name} has no RELRO")
        check(re.search(r"GNU_STACK.* RW +0x", segments), f"{file.name} wants an executable stack")
        symbols = run("nm", "--dynamic", "--undefined-only", file)
        check("__stack_chk_fail" in symbols, f"{file.name} has no stack protection")
        check(not re.search(r"LOAD .* RWE ", segments), f"{file.name}: memory writable and executable")
        check_entries(file)


def check_cmake_consumer(prefix, folder):
    build = folder / "consumer"
    run("cmake", "-S", SOURCE / "tests/package", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", build, "--parallel", "2")
    for name, output in (("cpp_shared", CPP_OUTPUT), ("cpp_static", CPP_OUTPUT),
                         ("mli_shared", MLI_OUTPUT), ("mli_static", MLI_OUTPUT),
                         ("c_shared", C_OUTPUT), ("components", COMPONENTS_OUTPUT),
                         ("components_static", COMPONENTS_OUTPUT), ("plugin", "plugin loaded")):
        found = run(build / name).strip()
        check(found == output, f"{name} prints {found}, expected {output}")
    needed = run("readelf", "--dynamic", build / "cpp_shared")
    check(f"libcastor.so.{SOVERSION}" in needed, "cpp_shared does not need the shared library")


def check_unknown_component(prefix, folder):
    project = folder / "unknown"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(unknown LANGUAGES CXX)\n"
        "find_package(castor COMPONENTS core gpu)\n"
        "message(STATUS \"found: ${castor_FOUND}; ${castor_NOT_FOUND_MESSAGE}\")\n")
    printed = run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    check("castor has no component gpu" in printed, f"an unknown component is silent: {printed}")


def check_pkg_config_consumer(prefix, lib, folder):
    search = dict(os.environ, PKG_CONFIG_PATH=str(lib / "pkgconfig"), LD_LIBRARY_PATH=str(lib))
    for package, source, compiler, output in (
            ("castor", "consumer.cpp", ["c++", "-std=c++20"], CPP_OUTPUT),
            ("castor", "consumer.c", ["cc", "-std=c11"], C_OUTPUT),
            ("castor-mli", "consumer_mli.c", ["cc", "-std=c11"], MLI_OUTPUT),
            ("castor-listing castor-threads", "consumer_components.cpp", ["c++", "-std=c++20"],
             COMPONENTS_OUTPUT)):
        packages = package.split()
        check(set(run("pkg-config", "--modversion", *packages, env=search).split()) == {VERSION},
              f"pkg-config: another version of {package}")
        flags = run("pkg-config", "--cflags", "--libs", *packages, env=search).split()
        program = folder / source.replace(".", "_")
        run(*compiler, SOURCE / "tests/package" / source, "-o", program, *flags,
            f"-Wl,-rpath-link,{lib}")
        found = run(program, env=search).strip()
        check(found == output, f"{package} by pkg-config prints {found}, expected {output}")


def check_command(prefix):
    castor = prefix / "bin/castor"
    check(run(castor, "--version").strip() == VERSION, "castor --version")
    page = (prefix / "share/man/man1/castor.1").read_text()
    check(page.startswith(".TH CASTOR 1"), "the manual page does not begin with .TH")
    completion = prefix / "share/bash-completion/completions/castor"
    script = (f"source {completion}; COMP_WORDS=(castor run --isa avx512_vb); COMP_CWORD=3; _castor;"
              "echo ${COMPREPLY[@]}; COMP_WORDS=(castor con); COMP_CWORD=1; _castor; echo ${COMPREPLY[@]}")
    found = run("bash", "-c", script).split()
    check(found == ["avx512_vbmi", "convert"], f"completion gives {found}")


def check_debian_package(folder):
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder / "cpack")
    package, = (folder / "cpack").glob("castor_*.deb")
    depends = run("dpkg-deb", "--field", package, "Depends")
    for library in ("libc6", "libfmt", "libstdc++6"):
        check(library in depends, f"the package does not depend on {library}: {depends}")
    contents = run("dpkg-deb", "--contents", package)
    for name in INSTALLED:
        check("./usr/" + name.format(lib="lib") in contents, f"the package lacks {name}")
    run("dpkg", "--dry-run", "--force-not-root", "--install", package)  # names what is missing


with tempfile.TemporaryDirectory() as name:
    FOLDER = pathlib.Path(name)
    PREFIX, LIB = install(FOLDER)
    check_size(LIB)
    check_symbols(LIB, PREFIX)
    check_hardening(PREFIX, LIB)
    check_command(PREFIX)
    check_cmake_consumer(PREFIX, FOLDER)
    check_unknown_component(PREFIX, FOLDER)
    check_pkg_config_consumer(PREFIX, LIB, FOLDER)
    check_debian_package(FOLDER)
