# SPDX-License-Identifier: Apache-2.0
"""The results file of a machine, bench/results/<cpu>.md, for tools/bench-report."""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = "<!-- tools/bench-report keeps everything from here on. -->"
ORDINARY_REMARKS = f"\n{KEPT}\n\n## Remarks\n"


def size_text(size):
    """A size in bytes with the largest unit that keeps it whole."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size % unit == 0 and size >= unit:
            return f"{size // unit} {name}"
    return f"{size} bytes"


def data_caches(context):
    """(level, size in bytes) of the data and unified caches, from the core outward."""
    caches = context.get("caches", [])
    return sorted((each["level"], each["size"]) for each in caches if each["type"] in ("Data", "Unified"))


def caches_text(context):
    return ", ".join(f"L{level} {size_text(size)}" for level, size in data_caches(context)) or "unknown"


def file_name(context):
    """The processor's name and its outermost cache: virtual machines often hide the model."""
    cpu = re.sub(r"\((r|tm)\)|\bcpu\b|@.*", " ", context["castor_cpu"].lower())
    words = re.findall(r"[a-z0-9]+", cpu)
    for level, size in data_caches(context)[-1:]:
        words += [f"l{level}", size_text(size).lower().replace(" ", "").removesuffix("ib")]
    return "-".join(words) + ".md"


def tree_commit():
    """The commit that the working tree is at, and whether files of it are changed."""
    def git(*words):
        return subprocess.run(["git", "-C", str(ROOT), *words], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=True).stdout.strip()
    try:
        commit = git("rev-parse", "--short", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + (" with local changes" if changed else "")


def in_code(text):
    """Code in a cell of a table."""
    return "`" + text.replace("|", "\\|") + "`"


def facts(context, commit, command):
    """The rows of the table at the top."""
    return {"CPU": context["castor_cpu"], "caches": caches_text(context),
            "clock": f"{context['castor_clock_ghz']} GHz, measured",
            "core": f"{context['castor_core']}, port model: {context['castor_port_model']}",
            "tier": context["castor_tier"], "castor": f"{context['castor_version']}, commit {commit}",
            "date": context["date"][:10], "command": in_code(command)}


def machine_rows(text):
    """The rows that say which machine a file is of."""
    rows = dict(re.findall(r"^\| (CPU|caches) \| (.*) \|$", text, re.M))
    return rows.get("CPU"), rows.get("caches")


def kept_part(path, machine):
    """What a later run keeps of the file, which must be of the same machine."""
    if not path.exists():
        return ORDINARY_REMARKS
    text = path.read_text(encoding="utf-8")
    if machine_rows(text) != machine:
        raise ValueError(f"{path} holds figures of another machine: {machine_rows(text)}, this one is "
                         f"{machine}; give another --name")
    if KEPT not in text:
        raise ValueError(f"{path} has no line '{KEPT}', so that nothing of it could be kept")
    return "\n" + text[text.index(KEPT):]


def results_text(context, commit, command, sections, kept):
    lines = [f"# {context['castor_cpu']}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in facts(context, commit, command).items()]
    lines += ["", "Written by `tools/bench-report` from one run; [bench/README.md](../README.md) defines the "
              "measures.", "Figures marked `!` are below what is asked, or slow."]
    for heading, parts in sections:
        lines += ["", f"## {heading}"]
        for part in parts:
            lines += ["", "```text", part.rstrip("\n"), "```"]
    return "\n".join(lines) + "\n" + kept


def write_results(folder, name, context, commit, command, sections):
    """Writes the file, whose path is returned, whole or not at all."""
    path = pathlib.Path(folder) / (name or file_name(context))
    text = results_text(context, commit, command, sections,
                        kept_part(path, (context["castor_cpu"], caches_text(context))))
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
    return path
