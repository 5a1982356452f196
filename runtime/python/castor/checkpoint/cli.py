# SPDX-License-Identifier: Apache-2.0
"""The command castor-quantize."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, List, NoReturn, Optional

import castor
from castor.checkpoint.convert import MAX_THREADS, Options, Result, convert_checkpoint
from castor.checkpoint.errors import CheckpointError
from castor.checkpoint.formats.integer import GROUP
from castor.checkpoint.formats.registry import CASTS, FORMATS, rules_of
from castor.checkpoint.json_files import write_file
from castor.checkpoint.report import table


def _parser() -> argparse.ArgumentParser:
    rules = "; ".join(f"{to}: {', '.join(rules_of(to))}" for to in (*FORMATS, *CASTS))
    parser = argparse.ArgumentParser(
        prog="castor-quantize",
        description="Converts the linear weights of a safetensors checkpoint. One that is quantized"
        " is dequantized: --to bf16, f16 or f32.",
    )
    parser.add_argument("input", metavar="IN", type=Path, help="a file, a directory or an index")
    parser.add_argument(
        "output", metavar="OUT", type=Path, help="a file; a directory, if IN is one or an index"
    )
    parser.add_argument("--to", required=True, choices=[*FORMATS, *CASTS], help="the format")
    parser.add_argument("--rule", help=f"how scales are chosen, the default first ({rules})")
    parser.add_argument(
        "--group-size",
        type=int,
        help=f"columns with a common scale in int4-group, {GROUP} by default",
    )
    parser.add_argument(
        "--include",
        action="append",
        default=[],
        metavar="PATTERN",
        help="convert only tensors with names like this, embeddings, norms and lm_head too",
    )
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN", help="keep tensors like this"
    )
    parser.add_argument(
        "--threads",
        type=int,
        help=f"by default one for each core, {MAX_THREADS} at most",
    )
    parser.add_argument(
        "--report", action="store_true", help="print the error of each converted tensor"
    )
    parser.add_argument("--report-json", metavar="FILE", type=Path, help="write the errors as JSON")
    parser.add_argument("--overwrite", action="store_true", help="replace files, and begin again")
    return parser


def _write_report(path: Path, arguments: argparse.Namespace, result: Result) -> None:
    value = {
        "to": arguments.to,
        "tensors": [error.to_json() for error in result.errors],
        "kept": result.kept,
    }
    text = json.dumps(value, indent=2) + "\n"
    if path.is_symlink() or (path.exists() and not path.is_file()):
        path.write_text(text, encoding="utf-8")  # a pipe or a link stays what it is
    else:
        write_file(path, text.encode("utf-8"))


def _summary(result: Result, seconds: float) -> str:
    reasons: dict[str, int] = {}
    for reason in result.kept.values():
        reasons[reason] = reasons.get(reason, 0) + 1
    lines = [
        f"{result.converted} tensors converted, {len(result.kept)} kept; {result.bytes_read} bytes"
        f" read, {result.bytes_written} written in {seconds:.1f} s"
    ]
    lines += [f"  kept {count}: {reason}" for reason, count in sorted(reasons.items())]
    if result.resumed:
        lines.append(f"  finished before: {', '.join(result.resumed)}")
    bad = [error.name for error in result.errors if error.not_finite]
    if bad:
        lines.append(f"  with elements that are NaN or infinite: {', '.join(bad)}")
    return "\n".join([*lines, *(f"  note: {note}" for note in result.notes)])


class _Stopped(KeyboardInterrupt):
    """A signal asked the process to end; it is treated as an interruption by the user."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def _stopped_by(*numbers: int) -> Iterator[None]:
    """These signals interrupt the block, except those that are ignored, as nohup has them."""

    def stop(number: int, _: object) -> NoReturn:
        for one in found:
            signal.signal(one, signal.SIG_IGN)  # the next one would interrupt what saves
        raise _Stopped(number)

    in_main_thread = threading.current_thread() is threading.main_thread()  # as Python demands
    found = [one for one in numbers if in_main_thread and signal.getsignal(one) == signal.SIG_DFL]
    for one in found:
        signal.signal(one, stop)
    try:
        yield
    finally:
        for one in found:
            signal.signal(one, signal.SIG_DFL)


def main(words: Optional[List[str]] = None) -> int:
    """The exit status is 0, 1 where something does not fit, or 128 and the number of a signal."""
    arguments = _parser().parse_args(words)
    options = Options(
        arguments.to,
        arguments.rule,
        arguments.group_size,
        arguments.include,
        arguments.exclude,
        min(castor.info()["threads"], MAX_THREADS)
        if arguments.threads is None
        else arguments.threads,
        arguments.report or arguments.report_json is not None,
        arguments.overwrite,
    )
    began = time.monotonic()
    report: Optional[Path] = arguments.report_json
    status = 0
    try:
        if report is not None:
            folder = report.parent
            is_there = folder.is_dir() or folder.resolve() == arguments.output.resolve()
            if not is_there or report.is_dir():
                raise CheckpointError(f"{report}: expected the name of a file, in a folder")
        with _stopped_by(signal.SIGTERM, signal.SIGHUP):
            result = convert_checkpoint(arguments.input, arguments.output, options)
    except (CheckpointError, castor.Error, OSError) as failure:
        print(f"castor-quantize: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stopped:
        print("castor-quantize: interrupted", file=sys.stderr)
        return 128 + (stopped.number if isinstance(stopped, _Stopped) else signal.SIGINT)
    if report is not None:
        try:
            _write_report(report, arguments, result)
        except OSError as failure:  # the checkpoint is whole: what is known of it is printed
            print(f"castor-quantize: {failure}", file=sys.stderr)
            status = 1
    if arguments.report or status != 0:
        print(table(result.errors))
    print(_summary(result, time.monotonic() - began), file=sys.stderr)
    return status
