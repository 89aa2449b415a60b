"""How answers look in a notebook: small tables, every word escaped, no script."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Iterable, List, Sequence

if TYPE_CHECKING:
    from ._results import Check, Plan, Prediction

_SHOWN = 12  # as many shapes as the program's own table


def _row(cells: Iterable[Any], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag} style='text-align:left'>{cell}</{tag}>" for cell in cells) + "</tr>"


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Cells are HTML: what comes from outside is escaped by the caller."""
    return "<table>" + _row(map(escape, head), "th") + "".join(_row(each) for each in rows) + "</table>"


def _seconds(value: float) -> str:
    """Three digits, as the program's tables have them; the limits are where rounding would add one."""
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        of_unit = value / scale
        if of_unit >= 0.9995:
            break
    decimals = 2 if of_unit < 9.995 else 1 if of_unit < 99.95 else 0
    return f"{of_unit:.{decimals}f} {unit}"


def _gib(value: float) -> str:
    return f"{value / 2**30:.1f} GiB"


def _title(one: Prediction) -> str:
    model, cluster = one.raw["model"], one.raw["cluster"]
    return (f"<b>{escape(str(model['name']))}</b> on {one.mesh.world} x {escape(str(cluster['accelerator']))} "
            f"({escape(str(cluster['name']))}), for {escape(one.target)} {escape(one.target_version)}")


def _cells(one: Prediction) -> List[str]:
    used = one.memory.reserved_bytes / one.memory.limit_bytes
    bar = (f"<div style='width:8em;background:#8883'><div style='width:{min(used, 1) * 100:.0f}%;"
           f"background:#4c78a8;height:.5em'></div></div>")
    return [escape(str(one.mesh)), f"{one.plan.micro_batch}x{one.plan.grad_accum}", escape(one.plan.recompute),
            f"{_seconds(one.step_time_s)} ({_seconds(one.step_time_low_s)} .. {_seconds(one.step_time_high_s)})",
            f"{one.tokens_per_s:,.0f}", f"{one.mfu * 100:.1f} %",
            f"{_gib(one.memory.reserved_bytes)} ({used * 100:.0f} %){bar}"]


_COLUMNS = ("mesh", "batch", "recomputed", "step (80 % interval)", "tokens/s", "MFU", "memory")


def plan(answer: Plan) -> str:
    if not answer.entries:
        reasons = [[escape(str(each.mesh)), escape(each.reason)] for each in answer.rejected[:_SHOWN]]
        return "<p><b>No shape runs.</b></p>" + _table(("mesh", "why not"), reasons)
    rest = len(answer.entries) - _SHOWN
    more = f"<p>and {rest} more; {len(answer.rejected)} rejected</p>" if rest > 0 else ""
    why = f"<p>Best: {escape(answer.best_reason)}</p>" if answer.best_reason else ""
    return f"<p>{_title(answer.best)}</p>" + _table(_COLUMNS, map(_cells, answer.entries[:_SHOWN])) + more + why


def prediction(one: Prediction) -> str:
    parts = [("compute", one.time.compute_s)]
    parts += [(f"exposed {axis}", value) for axis, value in one.time.exposed_communication_s.items() if value > 0]
    parts += [("optimizer", one.time.optimizer_s), ("bubble", one.time.bubble_s), ("overhead", one.time.overhead_s)]
    times = [[escape(name), _seconds(value), f"{value / one.step_time_s * 100:.1f} %"] for name, value in parts if value > 0]
    said = "".join(f"<p>{escape(word)}</p>" for word in (*one.reasons, *one.warnings))
    return f"<p>{_title(one)}</p>" + _table(_COLUMNS, [_cells(one)]) + _table(("of a step", "", ""), times) + said


def check(verdict: Check) -> str:
    word = "passed" if verdict.passed else "failed"
    rows = [[escape(each.level), "" if each.line is None else str(each.line), escape(each.key or ""), escape(each.sentence)]
            for each in verdict.notes]
    return (f"<p><b>{word}</b>: {escape(verdict.file)} {escape(verdict.verdict)}</p>"
            + _table(("", "line", "key", "what"), rows))
