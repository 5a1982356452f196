# SPDX-License-Identifier: Apache-2.0
"""Converts a checkpoint: one file to one file, or a directory to a directory."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from castor.checkpoint.config import quantization_config, with_entry
from castor.checkpoint.errors import CheckpointError
from castor.checkpoint.formats.integer import GROUP
from castor.checkpoint.formats.registry import CASTS, FORMATS, Request, rules_of
from castor.checkpoint.inputs import Inputs
from castor.checkpoint.journal import FILE_JOURNAL_SUFFIX, JOURNAL_NAME, Done, Journal
from castor.checkpoint.json_files import encoded, read_object, write_file
from castor.checkpoint.plan import Plan, ShardPlan, inputs_of, make_plan
from castor.checkpoint.progress import Progress
from castor.checkpoint.report import TensorError
from castor.checkpoint.selection import Selection
from castor.checkpoint.source import CONFIG_NAME, USUAL_INDEX, Source
from castor.checkpoint.stream import ShardWriter, input_bytes
from castor.checkpoint.target import (
    UnfinishedFile,
    locked_directory,
    unfinished_file,
)

_OTHER_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".onnx", ".part", ".index.json")
"""Endings of files in a checkpoint's directory that are not copied."""


MAX_THREADS = 1024
"""Each thread has a buffer of some MiB, and more threads than cores gain nothing."""


class Result(NamedTuple):
    """What a conversion has done. `errors` are empty where none were asked for."""

    converted: int
    kept: Dict[str, str]
    bytes_read: int
    bytes_written: int
    resumed: List[str]
    errors: List[TensorError]
    notes: List[str]


class Options(NamedTuple):
    """How a checkpoint is converted; None stands for the format's default."""

    to: str
    rule: Optional[str] = None
    group: Optional[int] = None
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    threads: int = 1
    errors: bool = False
    overwrite: bool = False


def request_of(options: Options) -> Request:
    """The checked request."""
    if options.to not in FORMATS and options.to not in CASTS:
        known = ", ".join((*FORMATS, *CASTS))
        raise CheckpointError(f"--to {options.to}, expected one of {known}")
    rules = rules_of(options.to)
    rule = rules[0] if options.rule is None else options.rule
    if rule not in rules:
        raise CheckpointError(f"--rule {rule}, expected one of {', '.join(rules)} for {options.to}")
    if not 1 <= options.threads <= MAX_THREADS:
        raise CheckpointError(f"--threads {options.threads}, expected 1 to {MAX_THREADS}")
    if options.to != "int4-group":
        if options.group is not None:
            raise CheckpointError(f"--group-size {options.group}: {options.to} has no groups")
        return Request(options.to, rule, 0)
    group = GROUP if options.group is None else options.group
    if group <= 0 or group % 8:
        raise CheckpointError(
            f"--group-size {group}, expected a positive multiple of 8: eight codes share 32 bits"
        )
    return Request(options.to, rule, group)


def convert_checkpoint(source_path: Path, target: Path, options: Options) -> Result:
    """Reads `source_path`, a file or a directory with an index, and writes `target`, the like."""
    request = request_of(options)
    source = Source(source_path)
    plan = make_plan(source, request, Selection(tuple(options.include), tuple(options.exclude)))
    if options.errors and plan.decodes:
        raise CheckpointError("a report has errors of quantization; dequantizing has none")
    entry = None
    if request.to in FORMATS:
        entry = quantization_config(request, plan.kept_modules(source), plan.embeddings)
    config = _config(source, plan, entry)
    if source.is_directory:
        return _convert_directory(source, target, plan, config, options)
    return _convert_file(source, target, plan, config, options)


def _convert_file(
    source: Source, target: Path, plan: Plan, config: Optional[Dict[str, Any]], options: Options
) -> Result:
    (shard,) = plan.shards
    file = source.shards[shard.name]
    if target.is_dir():
        raise CheckpointError(f"{target} is a directory, expected the name of a file")
    if target.exists() and target.samefile(file.path):
        raise CheckpointError(f"{target} is the input")
    if os.path.lexists(target) and not options.overwrite:
        raise CheckpointError(f"{target} exists (--overwrite replaces it)")
    notes: List[str] = []
    config_path = target.parent / CONFIG_NAME
    if config is not None and config_path.exists():
        # Another model's config, or one that has more than ours, is not for us to replace.
        is_kept = (
            not options.overwrite
            or source.config is None
            or target.parent.resolve() == source.directory.resolve()
        )
        if is_kept and read_object(config_path) != config:
            notes.append(
                f"{config_path} exists and is left as it is: loaders will not know of {options.to}"
            )
            config = None
    texts = _texts({CONFIG_NAME: config}, source)
    with unfinished_file(target) as unfinished:
        journal = Journal(
            target.with_name(target.name + FILE_JOURNAL_SUFFIX),
            _journal_options(plan, options),
            options.overwrite,
        )
        with Progress(_input_bytes(source, shard)) as progress:
            inputs = inputs_of(source, shard, plan.fused)
            errors = _write(
                source, plan, shard, inputs, unfinished, progress, options, journal, notes
            )
        for name, text in texts.items():
            write_file(target.parent / name, text)
        unfinished.publish()
        journal.close()
    return Result(len(plan.converted), plan.kept, file.size, shard.nbytes, [], errors, notes)


def _convert_directory(
    source: Source, target: Path, plan: Plan, config: Optional[Dict[str, Any]], options: Options
) -> Result:
    if target.resolve() == source.directory.resolve():
        raise CheckpointError(f"{target} is the input's directory")
    index = None if source.index is None else _index(source.index, plan)
    texts = _texts({source.index_name: index, CONFIG_NAME: config}, source)
    others = _others(source)
    target.mkdir(parents=True, exist_ok=True)
    with locked_directory(target):
        _check_free(target, source, plan, others, options)
        journal = Journal(target / JOURNAL_NAME, _journal_options(plan, options), options.overwrite)
        journal.write()
        result = _write_shards(source, target, plan, options, journal)
        for name, text in texts.items():
            write_file(target / name, text)
        _copy_others(others, target)
        journal.close()
    return result


def _write_shards(
    source: Source, target: Path, plan: Plan, options: Options, journal: Journal
) -> Result:
    """Writes all files with tensors that no interrupted conversion has finished."""
    resumed: List[str] = []
    errors: List[TensorError] = []
    notes: List[str] = []
    with Progress(sum(_input_bytes(source, shard) for shard in plan.shards)) as progress:
        for shard in plan.shards:
            inputs = inputs_of(source, shard, plan.fused)
            found = journal.finished(shard.name, inputs)
            if found is not None:
                resumed.append(shard.name)
                progress.skip(_input_bytes(source, shard))
            else:
                with unfinished_file(target / shard.name) as unfinished:
                    found = _write(
                        source, plan, shard, inputs, unfinished, progress, options, journal, notes
                    )
                    journal.enter(shard.name, inputs, shard.nbytes, found)
                    unfinished.publish()
            errors += found
    read = sum(file.size for file in source.shards.values())
    written = sum(shard.nbytes for shard in plan.shards)
    return Result(len(plan.converted), plan.kept, read, written, resumed, errors, notes)


def _input_bytes(source: Source, shard: ShardPlan) -> int:
    return sum(input_bytes(source, job) for job in shard.jobs)


def _write(
    source: Source,
    plan: Plan,
    shard: ShardPlan,
    inputs: Inputs,
    file: UnfinishedFile,
    progress: Progress,
    options: Options,
    journal: Journal,
    notes: List[str],
) -> List[TensorError]:
    """Brings a file to the disk, from where an interrupted conversion was on."""
    done = journal.begun(shard, inputs, file.descriptor)
    if done:
        file.keeps = True
        notes.append(f"{len(done)} tensors of {file.path.name} were finished before")
    else:
        journal.forget_begun()
        file.clear()

    def save(finished: Done) -> None:
        os.fsync(file.descriptor)
        journal.begin(shard, inputs, file.descriptor, finished)
        file.keeps = True

    writer = ShardWriter(
        source,
        shard,
        file.descriptor,
        options.threads,
        progress,
        options.errors,
        done,
        plan.fused,
        save,
    )
    try:
        errors = writer.write()
        os.fsync(file.descriptor)
        return errors
    except BaseException:
        with suppress(OSError):  # the first failure counts
            writer.save()
        raise


def _journal_options(plan: Plan, options: Options) -> Dict[str, Any]:
    """What the contents of files, and the journal, depend on."""
    return {
        **plan.request._asdict(),
        "include": list(options.include),
        "exclude": list(options.exclude),
        "errors": options.errors,
    }


def _check_free(
    target: Path, source: Source, plan: Plan, others: List[Path], options: Options
) -> None:
    """Without a journal nothing that would be written may be there."""
    if options.overwrite or (target / JOURNAL_NAME).exists():
        return
    names = [shard.name for shard in plan.shards]
    names += [source.index_name or USUAL_INDEX, CONFIG_NAME, *(path.name for path in others)]
    found = [name for name in names if os.path.lexists(target / name)]
    if found:
        more = f" and {len(found) - 10} more" if len(found) > 10 else ""
        raise CheckpointError(
            f"in {target} there exists already: {', '.join(found[:10])}{more} (--overwrite replaces"
            " what is there)"
        )


def _texts(values: Dict[str, Optional[Dict[str, Any]]], source: Source) -> Dict[str, bytes]:
    """Makes the contents of these files early, so that none fails after the weights are written."""
    return {
        name: encoded(value, source.directory / name)
        for name, value in values.items()
        if value is not None
    }


def _config(
    source: Source, plan: Plan, entry: Optional[Dict[str, Any]]
) -> Optional[Dict[str, Any]]:
    """The output's config; None where neither the input nor the format has anything to say."""
    config = with_entry(source.config or {}, entry)
    if plan.request.to in CASTS:
        names = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}
        for key in ("dtype", "torch_dtype"):
            if key in config:
                config[key] = names[plan.request.to]
    return config if config or source.config is not None else None


def _index(index: Dict[str, Any], plan: Plan) -> Dict[str, Any]:
    """The input's index with the files and the size of the output's tensors."""
    specs = {
        spec.name: (spec, shard.name)
        for shard in plan.shards
        for job in shard.jobs
        for spec in job.specs
    }
    metadata = index.get("metadata")
    total = sum(spec.nbytes for spec, _ in specs.values())
    return {
        **index,
        "metadata": {**(metadata if isinstance(metadata, dict) else {}), "total_size": total},
        "weight_map": {name: specs[name][1] for name in sorted(specs)},
    }


def _others(source: Source) -> List[Path]:
    """Tokenizers, templates and licences are copied: nothing in them depends on the format."""
    return [
        path
        for path in sorted(source.directory.iterdir())
        if path.is_file()
        and not path.name.startswith(".")
        and path.name != CONFIG_NAME
        and not path.name.endswith(_OTHER_WEIGHTS)
    ]


def _copy_others(others: List[Path], target: Path) -> None:
    for path in others:
        shutil.copyfile(path, target / path.name)
