"""How answers print: the program's own short table, without what only `raw` has."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Sequence

from ._html import _SHOWN, _gib, _seconds

if TYPE_CHECKING:
    from ._results import Check, Plan, Prediction

_COLUMNS = ("", "mesh", "batch", "recomputed", "step", "tokens/s", "memory")


def _aligned(rows: Sequence[Sequence[str]]) -> List[str]:
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, wide)).rstrip() for row in rows]


def _title(one: Prediction) -> str:
    model, cluster = one.raw["model"], one.raw["cluster"]
    return (f"{model['name']} on {one.mesh.world} x {cluster['accelerator']} ({cluster['name']}), "
            f"for {one.target} {one.target_version}")


def _cells(number: str, one: Prediction) -> Sequence[str]:
    used = one.memory.reserved_bytes / one.memory.limit_bytes
    return (number, str(one.mesh), f"{one.plan.micro_batch}x{one.plan.grad_accum}", one.plan.recompute,
            _seconds(one.step_time_s), f"{one.tokens_per_s:,.0f}",
            f"{_gib(one.memory.reserved_bytes)} ({used * 100:.0f} %)")


def plan(answer: Plan) -> str:
    if not answer.entries:
        return "\n".join(["no shape runs", *(f"  {each.mesh}: {each.reason}" for each in answer.rejected[:_SHOWN])])
    shown = answer.entries[:_SHOWN]
    table = _aligned([_COLUMNS, *(_cells(str(i + 1), each) for i, each in enumerate(shown))])
    rest = f"{len(answer.entries) - len(shown)} more, {len(answer.rejected)} rejected"
    return "\n".join([_title(answer.best), *table, rest, f"best: {answer.best_reason}"])


def prediction(one: Prediction) -> str:
    low, high = _seconds(one.step_time_low_s), _seconds(one.step_time_high_s)
    return "\n".join([_title(one), *_aligned([_COLUMNS[1:], _cells("", one)[1:]]),
                      f"80 % interval {low} .. {high}, MFU {one.mfu * 100:.1f} %", *one.reasons, *one.warnings])


def check(verdict: Check) -> str:
    said = [f"{each.level}: {f'line {each.line}, ' if each.line else ''}{f'{each.key}: ' if each.key else ''}{each.sentence}"
            for each in verdict.notes]
    return "\n".join([f"{'passed' if verdict.passed else 'failed'}: {verdict.file} {verdict.verdict}", *said])
