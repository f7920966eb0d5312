"""Work in processes side by side, which end when whoever started them does."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent.futures import as_completed
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
import multiprocessing
from multiprocessing.connection import wait
from multiprocessing.queues import SimpleQueue
import os
import threading
from typing import TypeVar

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.offline.held_stops import hear_termination
from seqmem_ros.offline.held_stops import stops_held

Task = TypeVar('Task')
Outcome = TypeVar('Outcome')


def side_by_side(
    run: Callable[[Task], Outcome],
    tasks: Sequence[Task],
    n_processes: int,
    on_done: Callable[[int], object] = lambda count: None,
    a_core_each: bool = False,
) -> Iterator[tuple[Task, Outcome | SeqmemError]]:
    """
    Do some tasks in processes.

    :param run: does one; a function of a module, as it goes to another process by its name
    :param tasks: what to do, in the order in which to begin
    :param n_processes: how many at once
    :param on_done: called with 1 after each
    :param a_core_each: keep each process to one core, where the system can: programs that share
        out small pieces to all cores then wait for nobody
    :returns: each task with its outcome, or with why there is none, in the order given
    """
    # Threads of jax do not survive a fork.
    context = multiprocessing.get_context('spawn')
    n_processes = min(n_processes, len(tasks))
    with stops_held():
        numbers = context.SimpleQueue()
        for number in range(n_processes if a_core_each else 0):
            numbers.put(number)
        pool = ProcessPoolExecutor(n_processes, context, _begin, (numbers,))
    with pool:
        try:
            with stops_held():
                futures = {pool.submit(run, task): task for task in tasks}
            for _ in as_completed(futures):
                on_done(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.kill()
            raise
    for future, task in futures.items():
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            error = SeqmemError(
                'a process was ended from outside before it was done, as for lack of memory: try '
                'fewer at once'
            )
        if error is not None and not isinstance(error, SeqmemError):
            raise error
        yield task, error or future.result()


def _begin(numbers: SimpleQueue) -> None:
    hear_termination()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if numbers.empty() or not hasattr(os, 'sched_setaffinity'):
        return
    cores = sorted(os.sched_getaffinity(0))
    core = cores[numbers.get() % len(cores)]
    # NumPy's threads are there already.
    for thread in os.listdir('/proc/self/task'):
        os.sched_setaffinity(int(thread), {core})


def _end_with_parent() -> None:
    """Nobody else ends this process if its owner is killed: it would wait for tasks for ever."""
    wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
