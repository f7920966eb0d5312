"""Several bags, one after the other or side by side in processes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seqmem_ros.core.dispatch import compute_in_caller
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
