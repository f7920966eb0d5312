"""What the benchmarks share: fair turns, percentiles, the machine, results on disk."""

from collections.abc import Callable
from collections.abc import Mapping
import gc
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
import json
import os
from pathlib import Path
import platform
import time
import tracemalloc
from typing import Any

import numpy as np

# Small networks are done before a second thread has woken up, in every library.
ONE_THREAD = {
    'NPROC': '1',
    'OMP_NUM_THREADS': '1',
    'OPENBLAS_NUM_THREADS': '1',
    'MKL_NUM_THREADS': '1',
}
PACKAGES = ('jax', 'jaxlib', 'numpy', 'torch', 'onnxruntime', 'equinox', 'flax', 'rclpy')
PERCENTILES = {'p50': 50.0, 'p99': 99.0, 'p99.9': 99.9}


def settle() -> None:
    """Leave the garbage collector nothing to look at but what comes from now on."""
    gc.collect()
    gc.freeze()


def in_turns(
    contestants: Mapping[str, Callable[[], object]], n_rounds: int, n_calls: int, warm_up: int = 50
) -> dict[str, np.ndarray]:
    """
    Time calls, one contestant after the other in every round.

    What else the machine does then falls on all of them alike.

    :param contestants: functions to call, by name
    :param n_rounds: number of rounds
    :param n_calls: calls of each contestant in each round
    :param warm_up: calls before those that count, in each round
    :returns: ns, shape (n_rounds, n_calls), by name
    """
    times = {name: np.empty((n_rounds, n_calls), dtype=np.int64) for name in contestants}
    now = time.perf_counter_ns
    settle()
    for turn in range(n_rounds):
        for name, call in contestants.items():
            for _ in range(warm_up):
                call()
            row = times[name][turn]
            for index in range(n_calls):
                start = now()
                call()
                row[index] = now() - start
    gc.unfreeze()
    return times


def percentiles_us(times_ns: np.ndarray) -> dict[str, float]:
    """
    Summarise rounds: the median over the rounds of each percentile.

    :param times_ns: shape (n_rounds, n_calls)
    :returns: us, by name of the percentile
    """
    return {
        name: round(float(np.median(np.percentile(times_ns, q, axis=1))) / 1e3, 2)
        for name, q in PERCENTILES.items()
    }


def ratio(ours_ns: np.ndarray, peer_ns: np.ndarray, q: float = 50.0) -> float:
    """
    Compare two contestants: the median over the rounds of the ratio within a round.

    :param ours_ns: shape (n_rounds, n_calls)
    :param peer_ns: shape (n_rounds, n_calls)
    :param q: percentile to compare
    :returns: ours divided by the peer's, dimensionless
    """
    each = np.percentile(ours_ns, q, axis=1) / np.percentile(peer_ns, q, axis=1)
    return round(float(np.median(each)), 3)


def peak_bytes(call: Callable[[], object]) -> int:
    """
    Say how much one call allocates through Python and NumPy at once.

    :param call: function to call, warmed up
    :returns: bytes
    """
    tracemalloc.start()
    try:
        call()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def machine() -> dict[str, Any]:
    """
    Say what the figures were measured on.

    :returns: processor, cores, memory, system, load, versions
    """
    lines = _lines('/proc/cpuinfo')
    model = next((line.partition(':')[2].strip() for line in lines if 'model name' in line), '')
    memory = next((line.split()[1] for line in _lines('/proc/meminfo') if 'MemTotal' in line), 0)
    return {
        'processor': model or platform.processor() or platform.machine(),
        'cores': os.cpu_count(),
        'memory_gib': round(int(memory) / 2**20, 1),
        'system': f'{platform.system()} {platform.release().partition("-")[0]}',
        'python': platform.python_version(),
        'load_1min': round(os.getloadavg()[0], 2),
        'packages': {name: found for name in PACKAGES if (found := _version(name))},
    }


def write_result(folder: Path, name: str, result: Mapping[str, Any]) -> None:
    """
    Keep a result for the report.

    :param folder: where to, made if need be
    :param name: of the benchmark
    :param result: plain JSON
    """
    folder.mkdir(parents=True, exist_ok=True)
    content = {**result, 'machine': machine()}
    (folder / f'{name}.json').write_text(json.dumps(content, indent=1, sort_keys=True) + '\n')


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ''
