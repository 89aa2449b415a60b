"""Finds the program, writes keywords as its options, runs it, and turns its complaints into exceptions."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ._errors import EnvironmentProblem, InternalError, of_exit_code

_FLAGS = frozenset({"no_cache"})  # options without a value


def program() -> str:
    """The path of the program: $NDTUNE, the one bundled with this module, or the first of $PATH."""
    named = os.environ.get("NDTUNE")
    if named:
        return named
    bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "ndtune")
    found = bundled if os.access(bundled, os.X_OK) else shutil.which("ndtune")
    if not found:
        raise EnvironmentProblem("the program ndtune is neither bundled with this module nor in PATH",
                                 "build the wheel, or name the program in the environment variable NDTUNE")
    return found


def _word(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return ",".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(str(item) for item in value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def arguments(options: Mapping[str, Any]) -> List[str]:
    """Keywords as the program's options: `global_batch=8` is `--global-batch 8`; None is not said."""
    words: List[str] = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or (name in _FLAGS and not value):
            continue
        if name in _FLAGS:
            words.append(option)
        elif name == "set":
            items = value.items() if isinstance(value, Mapping) else [str(value).split("=", 1)]
            for key, item in items:
                words += [option, f"{key}={item}"]
        else:
            words += [option, _word(name, value)]
    return words


@dataclass(frozen=True)
class Answer:
    exit_code: int
    stdout: str
    sentence: str
    hint: Optional[str]

    def error(self) -> Exception:
        return of_exit_code(self.exit_code, self.sentence, self.hint)

    def document(self) -> Dict[str, Any]:
        try:
            read = json.loads(self.stdout)
        except ValueError as error:
            raise InternalError(f"the program did not answer in JSON: {error}") from None
        if not isinstance(read, dict):
            raise InternalError("the program did not answer with an object")
        return read


def _complaint(stderr: str) -> Tuple[str, Optional[str]]:
    """The sentence: the last "ndtune: error:" line (those before it echo the command line), and the hint after it."""
    errors = re.findall(r"^ndtune: error: (.*)$", stderr, re.MULTILINE)
    hints = re.findall(r"^hint: (.*)$", stderr, re.MULTILINE)
    last = stderr.strip().splitlines()[-1:] or ["the program failed and did not say why"]
    return (errors[-1] if errors else last[0]), (hints[-1] if hints else None)


def _run(command: Sequence[str]) -> Answer:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", errors="replace", env={**os.environ, "NO_COLOR": "1"})
    except OSError as error:
        raise EnvironmentProblem(f"{command[0]} cannot be started: {error.strerror}") from None
    missing = re.search(r"error while loading shared libraries: ([^:]+)", done.stderr)
    if missing:
        raise EnvironmentProblem(f"{command[0]} needs {missing.group(1)}, which this machine does not have",
                                 "the packages that it needs are listed in the README of this package")
    sentence, hint = _complaint(done.stderr)
    return Answer(done.returncode if 0 <= done.returncode <= 4 else 4, done.stdout, sentence, hint)


def ask(command: str, words: Sequence[str], options: Mapping[str, Any]) -> Answer:
    """Runs a command; `model` may be a dict as in config.json, or what has `to_dict`, such as transformers' configs."""
    model = options.get("model")
    if model is not None and hasattr(model, "to_dict"):
        model = model.to_dict()
    if not isinstance(model, Mapping):
        return _run([program(), command, *words, *arguments(options)])
    with tempfile.TemporaryDirectory(prefix="ndtune-") as folder:
        path = os.path.join(folder, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(model, file)
        return _run([program(), command, *words, *arguments({**options, "model": path})])
