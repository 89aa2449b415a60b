"""The questions: each function is a command of the program."""

from __future__ import annotations

import os
import re
from typing import Any, Mapping, Optional, Union

from ._errors import NothingFeasible
from ._program import ask
from ._results import Check, Plan, Prediction, Run

Model = Union[str, "os.PathLike[str]", Mapping[str, Any], Any]
MeshLike = Union[str, Mapping[str, int]]
Path = Union[str, "os.PathLike[str]"]


def plan(model: Model, world: Optional[int] = None, *, cluster: Optional[Path] = None, target: Optional[str] = None,
         seq: Union[int, str, None] = None, global_batch: Optional[int] = None, set: Optional[Mapping[str, Any]] = None,
         **options: Any) -> Plan:
    """Which shape to run: every shape of `world` accelerators, ranked.

    `model` is a preset (`ndtune models`), the path of a config.json, its dict, or a config of transformers. Raises
    NothingFeasible where no shape runs.
    """
    asked = dict(model=model, world=world, cluster=cluster, target=target, seq=seq, global_batch=global_batch, set=set,
                 **options)
    answer = ask("plan", ["--format", "json"], asked)
    if answer.exit_code == 2 and answer.stdout.strip():
        error = answer.error()
        if isinstance(error, NothingFeasible):
            error.plan = Plan.read(answer.document(), asked)
        raise error
    if answer.exit_code != 0:
        raise answer.error()
    return Plan.read(answer.document(), asked)


def predict(model: Model, mesh: MeshLike, *, micro_batch: Optional[int] = None, grad_accum: Optional[int] = None,
            cluster: Optional[Path] = None, target: Optional[str] = None, seq: Union[int, str, None] = None,
            set: Optional[Mapping[str, Any]] = None, **options: Any) -> Prediction:
    """One shape in full. What does not fit is answered too: look at `feasible` and `reasons`."""
    asked = dict(model=model, mesh=mesh, micro_batch=micro_batch, grad_accum=grad_accum, cluster=cluster, target=target,
                 seq=seq, set=set, **options)
    answer = ask("predict", ["--format", "json"], asked)
    if answer.exit_code not in (0, 2) or not answer.stdout.strip():
        raise answer.error()
    return Prediction.read(answer.document(), asked)


def check(path: Path, *, model: Optional[Model] = None, tolerance: Optional[float] = None, **options: Any) -> Check:
    """Is this config right: does it run, fit, and come near the best with the same batch? See `passed` and `notes`."""
    asked = dict(model=model, tolerance=tolerance, **options)
    answer = ask("check", [os.fspath(path), "--format", "json"], asked)
    if answer.exit_code not in (0, 2) or not answer.stdout.strip():
        raise answer.error()
    return Check.read(answer.document())


def export(as_: Optional[str] = None, *, path: Optional[Path] = None, **options: Any) -> str:
    """The config file of a framework as text, written to `path` too where one is given."""
    answer = ask("export", [] if as_ is None else ["--as", as_], options)
    if answer.exit_code != 0:
        raise answer.error()
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(answer.stdout)
    return answer.stdout


def run(model: Model, mesh: MeshLike, *, steps: Optional[int] = None, **options: Any) -> Run:
    """Trains one shape for real on ranks of this machine: losses, gradient norms, times."""
    answer = ask("run", ["--format", "json"], dict(model=model, mesh=mesh, steps=steps, **options))
    if answer.exit_code != 0:
        raise answer.error()
    return Run.read(answer.document())


def version() -> str:
    """The version of the program."""
    answer = ask("--version", [], {})
    if answer.exit_code != 0:
        raise answer.error()
    found = re.search(r"\d+(\.\d+)+[^\s,]*", answer.stdout)
    return found.group(0) if found else answer.stdout.strip()
