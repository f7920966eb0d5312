"""Several bags, one after the other or side by side in processes."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent.futures import as_completed
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
import multiprocessing
from pathlib import Path
import signal
import threading

from seqmem_ros.core.dispatch import compute_in_caller
from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.offline.batch_report import BagReport
from seqmem_ros.offline.batch_report import make_report
from seqmem_ros.offline.estimate_bag import write_estimates
from seqmem_ros.offline.evaluate import evaluate_bag
from seqmem_ros.offline.evaluate import Setting
from seqmem_ros.offline.replay import OnProgress

# What an estimator is loaded from: its name, then the arguments of load_estimator.
Recipe = tuple[str, str, str, str]


@dataclass(frozen=True)
class Job:
    """
    One bag to evaluate; small, as it goes to another process.

    :param name: of the bag in tables
    :param bag: its path
    :param recipes: what to score
    :param setting: how
    :param per_joint: add a table of joints
    :param pictures: draw all pictures
    :param plot: file of the one figure for a hurry, or empty
    :param bag_out: folder of the bag of estimates, or empty
    """

    name: str
    bag: str
    recipes: tuple[Recipe, ...]
    setting: Setting
    per_joint: bool = False
    pictures: bool = False
    plot: str = ''
    bag_out: str = ''


def load(recipes: Sequence[Recipe]) -> dict[str, Estimator]:
    """
    Load estimators.

    :param recipes: name, model, weights and memory of each
    :returns: estimators by name
    :raises SeqmemError: if one cannot be loaded
    """
    return {
        name: load_estimator(model, weights, memory) for name, model, weights, memory in recipes
    }


def run_job(job: Job, on_progress: OnProgress | None = None) -> BagReport:
    """
    Evaluate one bag and write what belongs to it alone.

    :param job: what to do
    :param on_progress: told of messages that are done
    :returns: what is needed of it from then on
    :raises SeqmemError: if the bag cannot be evaluated
    """
    if not job.setting.fast:
        # Steps that take some 10 us each; of use where this is a process of its own.
        compute_in_caller()
    result = evaluate_bag(job.bag, load(job.recipes), job.setting, on_progress)
    pictures = []
    if job.pictures:
        from seqmem_ros.offline.figures import make_pictures

        pictures = make_pictures(result)
    if job.plot:
        from seqmem_ros.offline.plots import plot_result

        plot_result(result, job.plot)
    if job.bag_out:
        write_estimates(job.bag_out, result, job.setting)
    return make_report(job.name, result, job.per_joint, pictures)


def run_jobs(
    jobs: Sequence[Job], n_processes: int, on_done: Callable[[int], object]
) -> Iterator[tuple[Job, BagReport | SeqmemError]]:
    """
    Evaluate several bags in processes.

    :param jobs: what to do
    :param n_processes: how many at once
    :param on_done: called with 1 after each
    :returns: each job with its report, or with why there is none, in the order given
    """
    # Threads of jax do not survive a fork.
    context = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(min(n_processes, len(jobs)), mp_context=context) as pool:
        with _deaf_to_interrupts():
            futures = {pool.submit(run_job, job): job for job in jobs}
        try:
            for _ in as_completed(futures):
                on_done(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise
    for future, job in futures.items():
        error = future.exception()
        if error is not None and not isinstance(error, SeqmemError):
            raise error
        yield job, error or future.result()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let processes that start here ignore an interrupt: whoever started them ends them."""
    if threading.current_thread() is not threading.main_thread():
        # Only there may Python set a handler.
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def names_of(bags: Sequence[str]) -> list[str]:
    """
    Name bags as short as can be, each unlike the others.

    :param bags: paths
    :returns: file names without suffix, numbered where they come again
    """
    names: list[str] = []
    for bag in bags:
        path = Path(bag)
        stem = path.resolve().name if path.is_dir() else path.stem
        name, number = stem, 1
        while name in names:
            number += 1
            name = f'{stem}_{number}'
        names.append(name)
    return names
