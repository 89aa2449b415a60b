"""Builds the packages: scikit-build-core, and for a source distribution the CMake project beside the module.

The CMake project is two folders up, where a source distribution cannot reach. So while one is written, what the
programs are built of is copied into `tree`, and pyproject.toml looks for it there.
"""

import os
import shutil

from scikit_build_core import build as _core
from scikit_build_core.build import *  # noqa: F401,F403  (the hooks of PEP 517 that stay as they are)

_HERE = os.path.dirname(os.path.abspath(__file__))
_TREE = os.path.join(_HERE, "tree")
_PARTS = ("CMakeLists.txt", "LICENSE", ".ci", "sim", "autotune", "exec", "kernels", "cluster-profiles", "reports")


def _copy_tree() -> None:
    root = os.path.dirname(os.path.dirname(_HERE))
    not_sources = shutil.ignore_patterns("python", "__pycache__", "*.png", "*.o", "ndtune.db*")
    for part in _PARTS:
        source, copy = os.path.join(root, part), os.path.join(_TREE, part)
        if os.path.isdir(source):
            shutil.copytree(source, copy, ignore=not_sources)
        else:
            os.makedirs(_TREE, exist_ok=True)
            shutil.copy2(source, copy)


def build_sdist(sdist_directory, config_settings=None):
    if os.path.exists(_TREE):  # inside a source distribution already
        return _core.build_sdist(sdist_directory, config_settings)
    try:
        _copy_tree()
        return _core.build_sdist(sdist_directory, config_settings)
    finally:
        shutil.rmtree(_TREE, ignore_errors=True)
