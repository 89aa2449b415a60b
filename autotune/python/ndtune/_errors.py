"""What goes wrong, in the program's own sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._results import Plan


class NdtuneError(Exception):
    """A command failed: `sentence` says what, `hint` what to do, `exit_code` is the program's."""

    exit_code: int = 4

    def __init__(self, sentence: str, hint: Optional[str] = None, exit_code: Optional[int] = None) -> None:
        super().__init__(sentence if hint is None else f"{sentence} ({hint})")
        self.sentence = sentence
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code


class UsageError(NdtuneError, ValueError):
    """The question cannot be asked so: an unknown model, an illegal plan, an option that does not exist."""

    exit_code = 1


class NothingFeasible(NdtuneError):
    """No shape runs. `plan` is the answer all the same: every shape with its reason, and what would cure it."""

    exit_code = 2
    plan: Optional[Plan] = None


class EnvironmentProblem(NdtuneError):
    """The machine lacks something: the program, a library, a worker, MPI."""

    exit_code = 3


class InternalError(NdtuneError):
    """The program broke, or answered what this module does not know."""

    exit_code = 4


def of_exit_code(exit_code: int, sentence: str, hint: Optional[str]) -> NdtuneError:
    kinds = {1: UsageError, 2: NothingFeasible, 3: EnvironmentProblem}
    return kinds.get(exit_code, InternalError)(sentence, hint, exit_code)
