"""
The loop of a training that may be interrupted at any time and goes on as if it had not been.

What is learned and how far are kept in one object that is replaced as a whole, so that a signal
never finds them apart. An epoch depends on its number alone.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from itertools import count
from itertools import islice
from pathlib import Path
from typing import Any
from typing import NamedTuple

import jax
import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.offline.checkpoint import load_checkpoint
from seqmem_ros.offline.checkpoint import Place
from seqmem_ros.offline.checkpoint import save_checkpoint
from seqmem_ros.offline.stateful import Learned
from seqmem_ros.offline.training import MOST_BAD_STEPS

CHECKS = 20
CHECKPOINT_EVERY = 100

Progress = Callable[[int, float], None]


@dataclass(frozen=True)
class Plan:
    """
    A training.

    :param step: function of (learned, *batch) giving what is learned thereafter, and the loss
    :param epoch: batches of the pass with this number, the same whenever it is asked for
    :param n_steps: how many steps
    :param check: loss on what is held out; None for no such thing
    :param options: what a checkpoint must agree on, plain JSON
    """

    step: Callable[..., tuple[Learned, Any]]
    epoch: Callable[[int], Iterator[tuple]]
    n_steps: int
    check: Callable[[Learned], float] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class History:
    """
    How a training went.

    :ivar losses: before each step, shape (steps,)
    :ivar checks: steps and losses on what is held out
    """

    losses: np.ndarray
    checks: list[tuple[int, float]]


class _Now(NamedTuple):
    learned: Learned
    place: Place


def learn(
    plan: Plan,
    learned: Learned,
    path: str | Path | None = None,
    resume: bool = False,
    progress: Progress = lambda step, loss: None,
) -> tuple[Learned, History]:
    """
    Train to the end, or until something interrupts; then the checkpoint holds all there is.

    :param plan: what to do
    :param learned: to begin with
    :param path: of the checkpoint; None writes none
    :param resume: go on from the checkpoint
    :param progress: called after each step with its number and its loss
    :returns: what was learned and how
    :raises SeqmemError: if the loss is not finite any more, or there is nothing to resume
    """
    losses = np.full(plan.n_steps, np.nan)
    checks: list[tuple[int, float]] = []
    now = _Now(learned, Place())
    if resume and path is not None:
        state, place, before, checks = load_checkpoint(path, learned, plan.options)
        losses[: place.step] = before
        now = _Now(state, place)
    try:
        for epoch in count(now.place.epoch):
            for batch in islice(plan.epoch(epoch), now.place.chunk, None):
                if now.place.step == plan.n_steps:
                    return now.learned, History(losses, checks)
                _check(plan, now, checks)
                learned, loss = plan.step(now.learned, *batch)
                step, _, chunk = now.place
                losses[step] = loss
                now = _Now(jax.block_until_ready(learned), Place(step + 1, epoch, chunk + 1))
                _expect_finite(losses[: step + 1])
                progress(step + 1, float(loss))
                if path is not None and (step + 1) % CHECKPOINT_EVERY == 0:
                    _save(path, plan, now, losses, checks)
            now = _Now(now.learned, Place(now.place.step, epoch + 1, 0))
    finally:
        # Also where a signal raised something: what is done is not lost.
        if path is not None:
            _save(path, plan, now, losses, checks)
    raise AssertionError('an endless count has ended')


def _check(plan: Plan, now: _Now, checks: list[tuple[int, float]]) -> None:
    every = max(1, plan.n_steps // CHECKS)
    step = now.place.step
    if plan.check is not None and step % every == 0 and (not checks or checks[-1][0] < step):
        checks.append((step, plan.check(now.learned)))


def _expect_finite(losses: np.ndarray) -> None:
    last = losses[-MOST_BAD_STEPS - 1 :]
    if len(last) > MOST_BAD_STEPS and not np.isfinite(last).any():
        raise SeqmemError(f'training diverged at step {len(losses)}: try a lower --learning-rate')


def _save(
    path: str | Path, plan: Plan, now: _Now, losses: np.ndarray, checks: list[tuple[int, float]]
) -> None:
    step = now.place.step
    done = [check for check in checks if check[0] <= step]
    save_checkpoint(path, now.learned, now.place, losses[:step], plan.options, done)
