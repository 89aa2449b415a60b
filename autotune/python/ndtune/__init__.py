"""Mesh shapes for distributed training, from Python: ndtune's answers as dataclasses.

>>> import ndtune
>>> answer = ndtune.plan(model="7b", world=32)
>>> print(answer.best.mesh)
dp_shard=32
>>> config = answer.export("accelerate")

Every option of the program is a keyword (`--global-batch 256` is `global_batch=256`); `ndtune help plan` lists them.
What goes wrong is an NdtuneError with the program's sentence.
"""

from ._errors import EnvironmentProblem, InternalError, NdtuneError, NothingFeasible, UsageError
from ._commands import check, export, plan, predict, run, version
from ._results import Check, Choices, Cost, Memory, Mesh, Note, Plan, Prediction, Rejected, Run, Time

__all__ = [
    "Check", "Choices", "Cost", "EnvironmentProblem", "InternalError", "Memory", "Mesh", "NdtuneError", "Note",
    "NothingFeasible", "Plan", "Prediction", "Rejected", "Run", "Time", "UsageError",
    "check", "export", "plan", "predict", "run", "version",
]
