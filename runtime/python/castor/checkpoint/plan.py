# SPDX-License-Identifier: Apache-2.0
"""What becomes of each tensor, and where it is stored: known before any data are read."""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from castor.checkpoint.errors import CheckpointError
from castor.checkpoint.formats import cast
from castor.checkpoint.formats.registry import CASTS, FORMATS, Request
from castor.checkpoint.formats.stored import StoredWeight, find_stored
from castor.checkpoint.formats.transform import Transform, TwoPassTransform
from castor.checkpoint.fused import fused_weights
from castor.checkpoint.inputs import Inputs
from castor.checkpoint.safetensors import StoredTensor, TensorSpec, encode_header, laid_out
from castor.checkpoint.selection import Selection, is_embedding, is_linear, is_transposed
from castor.checkpoint.source import Source


class Job(NamedTuple):
    """A tensor that is copied, where `transform` is None, or one that is computed.

    `inputs` are the names of what is read, in the order of the transform's inputs.
    """

    name: str
    inputs: Tuple[str, ...]
    transform: Optional[Transform]
    specs: Tuple[TensorSpec, ...]


class ShardPlan(NamedTuple):
    """A file that is written: jobs, header, tensors at offsets in the file, and bytes."""

    name: str
    jobs: Tuple[Job, ...]
    header: bytes
    tensors: Dict[str, StoredTensor]
    nbytes: int


class Plan(NamedTuple):
    """All files; the reasons of tensors that are kept; whether quantized weights are decoded.

    `fused` has, by tensor with two passes, the jobs whose largest magnitude counts for it.
    """

    request: Request
    shards: Tuple[ShardPlan, ...]
    kept: Dict[str, str]
    decodes: bool
    fused: Mapping[str, Tuple[Job, ...]]

    @property
    def converted(self) -> List[Job]:
        """The jobs that are not copies."""
        return [job for shard in self.shards for job in shard.jobs if job.transform is not None]

    @property
    def embeddings(self) -> List[str]:
        """Lists the modules of converted weights that are embeddings."""
        names = [job.name for job in self.converted if is_embedding(job.name)]
        return sorted(name.rpartition(".")[0] for name in names)

    def kept_modules(self, source: Source) -> List[str]:
        """Modules whose linear weights stay floats; lm_head, which may share another's weight."""
        names = [name for name in self.kept if is_linear(source.spec(name))]
        modules = {name.rpartition(".")[0] for name in names} - {""}
        if not any(job.name == "lm_head.weight" for job in self.converted):
            modules.add("lm_head")
        return sorted(modules)


def make_plan(source: Source, request: Request, selection: Selection) -> Plan:
    """Decides about every tensor."""
    stored = find_stored(source.specs)
    if stored and request.to in FORMATS:
        first = next(iter(stored.values()))
        raise CheckpointError(
            f"{first.names[0]} is quantized already ({first.format}): --to bf16 dequantizes it"
        )
    if stored and (selection.include or selection.exclude):
        raise CheckpointError("--include and --exclude do not go with quantized checkpoints")
    kept: Dict[str, str] = {}
    companions = {name for weight in stored.values() for name in weight.names} - set(stored)
    model_type = (source.config or {}).get("model_type")
    shards = []
    for name, file in source.shards.items():
        jobs = []
        for tensor in file.tensors:
            if tensor in companions:
                continue
            if tensor in stored:
                jobs.append(_decoding(source, tensor, stored[tensor], CASTS[request.to]))
                continue
            spec = source.spec(tensor)
            reason = "not quantized" if stored else selection.reason_to_keep(request, spec)
            if reason is None and request.to in FORMATS and is_transposed(model_type, tensor):
                reason = "its rows are inputs"
            if reason is None:
                jobs.append(_encoding(spec, request))
            else:
                kept[tensor] = reason
                jobs.append(Job(tensor, (tensor,), None, (spec,)))
        shards.append(_shard(name, jobs, file.metadata))
    plan = Plan(request, tuple(shards), kept, bool(stored), _fused_jobs(shards))
    _check_names(plan)
    if not plan.converted:
        counts: Dict[str, int] = {}
        for reason in kept.values():
            counts[reason] = counts.get(reason, 0) + 1
        told = "; ".join(f"{count}: {reason}" for reason, count in sorted(counts.items()))
        raise CheckpointError(f"no tensor to convert to {request.to} ({told or 'no tensors'})")
    return plan


def _fused_jobs(shards: Sequence[ShardPlan]) -> Dict[str, Tuple[Job, ...]]:
    jobs = {
        job.name: job
        for shard in shards
        for job in shard.jobs
        if isinstance(job.transform, TwoPassTransform)
    }
    together = fused_weights(jobs)
    return {name: tuple(jobs[one] for one in ones) for name, ones in together.items()}


def inputs_of(source: Source, shard: ShardPlan, fused: Mapping[str, Tuple[Job, ...]]) -> Inputs:
    """The files that a file of the output depends on."""
    tensors = [name for job in shard.jobs for name in job.inputs]
    tensors += [one.name for job in shard.jobs for one in fused.get(job.name, ())]
    others = sorted({source.home[name] for name in tensors} - {shard.name})
    return Inputs(source.shards[shard.name], tuple(source.shards[name] for name in others))


def _encoding(spec: TensorSpec, request: Request) -> Job:
    if request.to in CASTS:
        transform = cast.transform(spec, spec.name, CASTS[request.to], request.rule)
    else:
        prefix = spec.name[: -len("weight")]
        transform = FORMATS[request.to].encoder(request, spec, prefix)
    return Job(spec.name, (spec.name,), transform, tuple(transform.specs))


def _decoding(source: Source, name: str, weight: StoredWeight, dtype: str) -> Job:
    transform = weight.decoder(dtype)
    for part in transform.inputs:
        if source.spec(part.spec.name) != part.spec:
            raise CheckpointError(
                f"{part.spec.name}: found {source.spec(part.spec.name)[1:]}, expected"
                f" {part.spec[1:]}"
            )
    shape = weight.prefix + "weight_shape"
    if shape in weight.names:
        data = source.shards[source.home[shape]].bytes_of(shape)
        told = tuple(int(extent) for extent in np.frombuffer(data.tobytes(), "<i8"))
        if told != weight.shape:
            raise CheckpointError(f"{shape} is {list(told)}, expected {list(weight.shape)}")
    inputs = tuple(part.spec.name for part in transform.inputs)
    return Job(name, inputs, transform, tuple(transform.specs))


def _shard(name: str, jobs: List[Job], metadata: Dict[str, str]) -> ShardPlan:
    placed = laid_out(spec for job in jobs for spec in job.specs)
    header = encode_header(placed, metadata)
    tensors = {
        tensor.spec.name: StoredTensor(tensor.spec, len(header) + tensor.offset)
        for tensor in placed
    }
    nbytes = len(header) + sum(tensor.spec.nbytes for tensor in placed)
    return ShardPlan(name, tuple(jobs), header, tensors, nbytes)


def _check_names(plan: Plan) -> None:
    seen = set()
    for shard in plan.shards:
        for job in shard.jobs:
            for spec in job.specs:
                if spec.name in seen:
                    raise CheckpointError(
                        f"the output would have two tensors {spec.name!r}, from {job.name!r} and"
                        " from another one"
                    )
                seen.add(spec.name)
