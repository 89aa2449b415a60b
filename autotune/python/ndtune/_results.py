"""The answers as dataclasses. `raw` is the program's own object, with every key; the fields are those that one reads."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple, Type, TypeVar

from . import _html, _text
from ._errors import InternalError

if TYPE_CHECKING:
    import os
    from typing import Union

    Path = Union[str, "os.PathLike[str]"]

T = TypeVar("T")
Raw = Dict[str, Any]


def _fill(kind: Type[T], data: Mapping[str, Any], **given: Any) -> T:
    """The fields that are named as keys are; what is nested or new is `given`."""
    try:
        plain = {each.name: data[each.name] for each in fields(kind) if each.name not in given}  # type: ignore[arg-type]
    except KeyError as missing:
        raise InternalError(f"the program's answer has no {missing}: it is of another version than this module") from None
    return kind(**plain, **given)


@dataclass(frozen=True)
class Mesh:
    """Sizes of the axes; `str` leaves out those of 1, as `--mesh` takes them."""

    pp: int
    dp_replicate: int
    dp_shard: int
    cp: int
    sp: int
    tp: int
    ep: int
    world: int

    def __str__(self) -> str:
        named = [(each.name, getattr(self, each.name)) for each in fields(self) if each.name != "world"]
        return ",".join(f"{name}={size}" for name, size in named if size != 1) or "dp_shard=1"


@dataclass(frozen=True)
class Choices:
    """What a plan chooses beside the mesh; those of rarer interest are in `raw`."""

    seq: int
    micro_batch: int
    grad_accum: int
    global_batch: int
    tokens_per_step: int
    zero: int
    recompute: str
    reshard: str
    precision: str
    attention: str
    fused: str
    optimizer: str
    finetune: str
    raw: Raw = field(repr=False, compare=False)


@dataclass(frozen=True)
class Memory:
    """Bytes of one accelerator, of the stage that needs most. The parts sum to peak_bytes."""

    peak_bytes: int
    reserved_bytes: int
    limit_bytes: int
    host_bytes: int
    parameters: int
    gradients: int
    optimizer: int
    activations: int
    logits: int
    gathered_parameters: int
    communication: int
    runtime: int


@dataclass(frozen=True)
class Time:
    """Seconds of a step; they sum to it."""

    compute_s: float
    exposed_communication_s: Dict[str, float]
    optimizer_s: float
    bubble_s: float
    overhead_s: float


@dataclass(frozen=True)
class Cost:
    usd_per_hour: Optional[float]
    usd_per_billion_tokens: Optional[float]


# Keys of a plan that are options of another name, and what no option says.
_OPTION_NAMES = {"loss_form": "loss", "order": "rank_order"}
_NO_OPTIONS = frozenset({"global_batch", "tokens_per_step"})
_ZERO_IS_AN_ANSWER = frozenset({"zero", "tp_overlap", "ep_overlap"})
# Choices that a shape without the axis does not have, though its plan says a value.
_OF_AN_AXIS = {"pp_schedule": "pp", "pp_split": "pp", "pp_first": "pp", "pp_last": "pp", "virtual_stages": "pp",
               "pp_group": "pp", "pp_rounds": "pp", "p2p_overlap": "pp",
               "dispatcher": "ep", "ep_overlap": "ep", "imbalance": "ep", "capacity": "ep"}


def _options_of(mesh: Mesh, choices: Raw) -> Dict[str, Any]:
    """The options that ask for exactly this plan again."""
    options: Dict[str, Any] = {"mesh": str(mesh)}
    for name, value in choices.items():
        unsaid = value is None or (not value and name not in _ZERO_IS_AN_ANSWER)
        if unsaid or name in _NO_OPTIONS:
            continue
        if name in _OF_AN_AXIS and getattr(mesh, _OF_AN_AXIS[name]) == 1:
            continue
        if name == "lora_targets" and choices.get("finetune") == "full":
            continue
        options[_OPTION_NAMES.get(name, name)] = value
    return options


# What a question says of the world around a plan, and stays as it is when one plan of the answer is asked about.
_SURROUNDINGS = ("model", "cluster", "target", "set", "gpus_per_node", "memory_limit", "db", "no_cache")


@dataclass(frozen=True)
class Prediction:
    """One shape with its choices: what a step takes of time and memory, with an interval of 80 %."""

    mesh: Mesh
    plan: Choices
    target: str
    target_version: str
    evidence: str
    legal: bool
    feasible: bool
    reasons: List[str]
    warnings: List[str]
    step_time_s: float
    step_time_low_s: float
    step_time_high_s: float
    tokens_per_s: float
    tokens_per_s_per_gpu: float
    mfu: float
    hfu: float
    memory: Memory
    time: Time
    cost: Cost
    raw: Raw = field(repr=False, compare=False)
    asked: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def read(cls, data: Raw, asked: Mapping[str, Any]) -> Prediction:
        return _fill(cls, data, mesh=_fill(Mesh, data["mesh"]), plan=_fill(Choices, data["plan"], raw=data["plan"]),
                     memory=_fill(Memory, data["memory"]), time=_fill(Time, data["time"]),
                     cost=_fill(Cost, data["cost"]), raw=data, asked=asked)

    def options(self) -> Dict[str, Any]:
        """Keywords that ask `predict` or `export` for exactly this plan."""
        around = {name: self.asked[name] for name in _SURROUNDINGS if self.asked.get(name) is not None}
        return {**around, **_options_of(self.mesh, self.plan.raw)}

    def export(self, as_: Optional[str] = None, *, path: Optional[Path] = None) -> str:
        """This plan as a framework's config file (`ndtune export --as`); without a word, the target's usual one."""
        from ._commands import export

        return export(as_, path=path, **self.options())

    def __str__(self) -> str:
        return _text.prediction(self)

    def _repr_html_(self) -> str:
        return _html.prediction(self)


@dataclass(frozen=True)
class Rejected:
    """A shape that does not run, and why."""

    mesh: Mesh
    reason: str
    raw: Raw = field(repr=False, compare=False)


@dataclass(frozen=True)
class Plan:
    """The shapes of a world: `entries` ranked, the best first; `rejected` with their reasons."""

    entries: Tuple[Prediction, ...]
    rejected: Tuple[Rejected, ...]
    assumptions: Tuple[str, ...]
    best_reason: Optional[str]
    global_batch: Optional[int]
    raw: Raw = field(repr=False, compare=False)
    asked: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def read(cls, data: Raw, asked: Mapping[str, Any]) -> Plan:
        if data.get("schema") != "ndtune.plan/1":
            raise InternalError(f"the program answered {data.get('schema')}, and a plan is of one world")
        rejected = tuple(Rejected(_fill(Mesh, each["mesh"]), each["reason"], each) for each in data["rejected"])
        return cls(tuple(Prediction.read(each, asked) for each in data["entries"]), rejected,
                   tuple(data["request"]["assumptions"]), data.get("best_reason"), data.get("global_batch"), data, asked)

    @property
    def best(self) -> Prediction:
        if not self.entries:
            raise InternalError("no shape runs: there is no best")
        return self.entries[0]

    def export(self, as_: Optional[str] = None, *, path: Optional[Path] = None) -> str:
        """The best plan as a framework's config file."""
        return self.best.export(as_, path=path)

    def check(self, path: Path, *, tolerance: Optional[float] = None, **options: Any) -> Check:
        """A config file beside the best of this world with the file's own batch; `options` say what it does not hold."""
        from ._commands import check

        around = {name: self.asked.get(name) for name in (*_SURROUNDINGS, "world", "nodes", "seq")}
        return check(path, tolerance=tolerance, **{**around, **options})

    def __str__(self) -> str:
        return _text.plan(self)

    def _repr_html_(self) -> str:
        return _html.plan(self)


@dataclass(frozen=True)
class Note:
    """What is to be said of a config, at its key and line where it is about one."""

    level: str
    sentence: str
    key: Optional[str]
    line: Optional[int]
    end_line: Optional[int]


@dataclass(frozen=True)
class Check:
    """The verdict on a config file. `slower` is how much slower than the best: 0.1 is 10 %."""

    file: str
    passed: bool
    runs: bool
    fits: bool
    near_best: bool
    slower: Optional[float]
    tolerance: float
    verdict: str
    notes: Tuple[Note, ...]
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, data: Raw) -> Check:
        return _fill(cls, data, notes=tuple(_fill(Note, each) for each in data["notes"]), raw=data)

    def __str__(self) -> str:
        return _text.check(self)

    def _repr_html_(self) -> str:
        return _html.check(self)


@dataclass(frozen=True)
class Run:
    """What the ranks of this machine did."""

    mesh: Mesh
    loss: List[float]
    grad_norm: List[float]
    step_time_s: List[float]
    peak_bytes: int
    planned_peak_bytes: int
    state: str
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, data: Raw) -> Run:
        return _fill(cls, data, mesh=_fill(Mesh, data["mesh"]), raw=data)
