"""What this machine is, for the head of the results, and what it lacks, in words."""

import functools
import os
import platform
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The toolkit's programs (nvcc, compute-sanitizer) are not always on the path.
os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/local/cuda/bin"


def words_of(command):
    """First line of what a command prints; "" where there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return lines[0] if done.returncode == 0 and lines else ""


@functools.cache
def commit():
    """Of what runs: NDTUNE_COMMIT, else of the pack that is unpacked, whatever the tree beside it is, else of the tree."""
    pack = os.path.join(ROOT, ".gpu", "pack.tar.gz")
    if os.environ.get("NDTUNE_COMMIT"):
        return os.environ["NDTUNE_COMMIT"]
    if os.path.exists(pack):
        with open(os.path.join(ROOT, ".gpu", "commit")) as file:
            return file.read().strip()
    return words_of(["git", "-C", ROOT, "rev-parse", "--short=10", "HEAD"]) or "unknown"


@functools.cache
def gpu():
    return words_of(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])


@functools.cache
def package(name):
    return words_of(["python3", "-c", f"import importlib.metadata as m; print(m.version('{name}'))"])


def no_gpu(context):
    del context
    if gpu():
        return None
    why = "nvidia-smi sees none" if shutil.which("nvidia-smi") else "nvidia-smi is not installed"
    return f"no NVIDIA GPU on this machine ({why})"


def no_tool(name):
    def lacks(context):
        del context
        return None if shutil.which(name) else f"{name} is not installed"

    return lacks


def no_package(name):
    def lacks(context):
        del context
        return None if package(name) else f"python3 has no {name}"

    return lacks


LIBRARIES = "NCCL and cuDNN of PyTorch"


def describe(known):
    """What an earlier call has found out of PyTorch on such a machine stays true: to import it takes long."""
    model = words_of(["sh", "-c", "grep -m1 'model name' /proc/cpuinfo | cut -d: -f2"])
    nvcc = words_of(["sh", "-c", "nvcc --version | grep -o 'release.*'"])
    same = known.get("GPU, driver, memory") == gpu()
    libraries = known.get(LIBRARIES) if same else words_of(
        ["python3", "-c", "import torch; print(torch.cuda.nccl.version(), torch.backends.cudnn.version())"]
    )
    found = {
        "GPU, driver, memory": gpu() or "none",
        "CPU": f"{os.cpu_count()} cores, {model}",
        "system": f"{platform.system()} {platform.release()}",
        "nvcc": nvcc or "none",
        LIBRARIES: libraries or "none",
        "commit": commit(),
    }
    for name in ("torch", "transformers", "accelerate"):
        found[name] = package(name) or "none"
    return found
