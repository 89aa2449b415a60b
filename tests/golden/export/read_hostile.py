"""Reads exported files whose names are hostile with the parser of their format (read_hostile.py ENDING FOLDER).

NN_name is compared with 00_name, which has harmless names: the same structure, and the path of the model (NN_name.model)
where a format has it. Python is executed with stand-ins for the packages, scripts are run with stand-ins for the
launchers; neither may touch anything. Exit code 77: the parser is not installed.
"""

import ast
import importlib.abc
import importlib.machinery
import json
import os
import subprocess
import sys
import unittest.mock


def missing(what):
    print(what)
    sys.exit(77)


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    packages = ("accelerate", "megatron", "torch", "torchtitan", "transformers", "trl")

    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in self.packages:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = unittest.mock.MagicMock(name=spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


guarding = False


def guard(event, arguments):
    if guarding and event.split(".")[0] in ("os", "subprocess", "socket", "shutil") and event != "os.putenv":
        raise RuntimeError(f"{event} {arguments}")


def structure(node):
    """The syntax tree without its texts."""
    for child in ast.walk(node):
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            child.value = ""
    return ast.dump(node)


def read_python(text, model):
    global guarding
    tree = ast.parse(text)
    names = {"__name__": "exported"}
    guarding = True
    try:
        exec(compile(tree, "exported", "exec"), names)
    finally:
        guarding = False
    assert names.get("MODEL", model) == model, names["MODEL"]
    return structure(tree)


def shape(value, model):
    """Keys, numbers, and which text is the model's path."""
    if isinstance(value, dict):
        return {key: shape(below, model) for key, below in value.items() if key != "_comment"}
    if isinstance(value, list):
        return [shape(below, model) for below in value]
    return "the model" if value == model else type(value).__name__ if isinstance(value, str) else value


def read_yaml(text, model):
    return shape(yaml.safe_load(text), model)


def read_toml(text, model):
    return shape(tomllib.loads(text), model)


def read_json(text, model):
    return shape(json.loads(text), model)


STAND_IN = '#!/bin/sh\nprintf "%s\\n" "${0##*/}" "$@" >>"$CALLS"\n'


def read_script(path):
    """The files that are there after a run, among them what the launchers were called with."""
    syntax = subprocess.run(["bash", "-n", path], stderr=subprocess.PIPE, check=False)
    assert syntax.returncode == 0 and not syntax.stderr, syntax.stderr
    place = path + ".run"
    tools = os.path.join(place, "bin")
    os.makedirs(tools)
    for tool in ("torchrun", "srun", "scontrol", "accelerate"):
        with open(os.path.join(tools, tool), "w", encoding="utf-8") as file:
            file.write(STAND_IN)
        os.chmod(os.path.join(tools, tool), 0o755)
    calls = os.path.join(place, "calls")
    environment = {"PATH": tools + ":/usr/bin:/bin", "CALLS": calls, "DATA_PATH": "d", "TOKENIZER_MODEL": "t",
                   "SLURM_JOB_NODELIST": "n", "NODE_RANK": "0", "MASTER_ADDR": "n"}
    subprocess.run(["bash", path], cwd=place, env=environment, check=True, stdin=subprocess.DEVNULL)
    left = {}
    for name in set(os.listdir(place)) - {"bin"}:
        with open(os.path.join(place, name), encoding="utf-8", newline="\n") as file:
            left[name] = [line for line in file if not line.startswith("#")]
    return left


def read_file(ending, path, model):
    if ending in (".sh", ".sbatch"):
        return read_script(path)
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    return {".py": read_python, ".yaml": read_yaml, ".toml": read_toml, ".json": read_json}[ending](text, model)


def main(ending, folder):
    os.chdir(folder)
    harmless = {}
    bad = count = 0
    for name in sorted(name for name in os.listdir(folder) if name.endswith(ending)):
        with open(name + ".model", encoding="utf-8", newline="") as file:
            model = file.read()
        try:
            found = read_file(ending, os.path.join(folder, name), model)
        except Exception as error:  # whatever a parser says
            found = error
        if name.startswith("00_"):
            assert not isinstance(found, Exception), (name, found)
            harmless[name[2:]] = found
            continue
        count += 1
        if found != harmless[name[2:]]:
            bad += 1
            print(f"{name}: {found!r}\ninstead of {harmless[name[2:]]}")
    for at, _, names in os.walk(folder):
        if "PWNED" in names:
            bad += 1
            print(f"{at}: a name was executed")
    if not bad:
        print(f"{count} files read")
    return bad > 0


if sys.argv[1] == ".yaml":
    try:
        import yaml
    except ImportError:
        missing("there is no PyYAML")
if sys.argv[1] == ".toml":
    try:
        import tomllib
    except ImportError:
        missing("there is no tomllib: Python 3.11 has it")
sys.meta_path.insert(0, StandIns())
sys.addaudithook(guard)
sys.exit(main(*sys.argv[1:]))
