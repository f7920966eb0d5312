"""``seqmem evaluate``: score models and the classical filters on recorded bags."""

import argparse
import json
from pathlib import Path
import shlex
import sys
from typing import Any

from seqmem_ros.cli.evaluate_options import add_options
from seqmem_ros.cli.evaluate_options import EPILOG
from seqmem_ros.cli.evaluate_options import names_in
from seqmem_ros.cli.outputs import check_files
from seqmem_ros.cli.outputs import check_picture
from seqmem_ros.cli.outputs import keep_inputs
from seqmem_ros.cli.outputs import made_folder
from seqmem_ros.cli.stretch_options import selection_from
from seqmem_ros.core.errors import SeqmemError


def add_parser(subparsers: Any) -> None:
    """
    Add the subcommand.

    :param subparsers: of the parser of ``seqmem``
    """
    parser = subparsers.add_parser(
        'evaluate',
        help='score models and filters on recorded bags',
        description='Score models and the classical filters on the joint states of bags: '
        'rosbag2 (folder, .mcap, .db3) or ROS 1 (.bag), whole or damaged.',
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """
    Evaluate, print the tables, write what was asked for.

    :param args: parsed arguments
    :returns: exit code, 1 if a bag out of several could not be evaluated
    :raises SeqmemError: if something that was given is wrong
    """
    from seqmem_ros.offline.tables import summary

    _check_outputs(args)
    if not args.fast:
        from seqmem_ros.core.dispatch import compute_in_caller

        compute_in_caller()
    jobs = _jobs(args)
    reports, failed = _evaluated(args, jobs)
    if not reports:
        return 1
    overall = summary([report.estimators for report in reports]) if len(jobs) > 1 else ''
    if args.json == '-':
        print(json.dumps(_content(reports), indent=2))
    else:
        print('\n\n'.join([report.text for report in reports] + [overall] * bool(overall)))
    if args.json and args.json != '-':
        Path(args.json).write_text(json.dumps(_content(reports), indent=2) + '\n')
    if args.out:
        _write_out(args, reports, failed, overall)
    if args.write_bag and args.json != '-':
        print(f'\nestimates    {args.write_bag}')
    return 1 if failed else 0


def _evaluated(args: argparse.Namespace, jobs: list) -> tuple[list, dict[str, str]]:
    """Evaluate all bags; one that fails ends it only if it is alone."""
    from seqmem_ros.offline.batch import run_job
    from seqmem_ros.offline.side_by_side import side_by_side

    reports, failed = [], {}
    if args.jobs > 1 and len(jobs) > 1:
        with _bar(len(jobs), ' bags') as bar:
            done = list(side_by_side(run_job, jobs, args.jobs, bar.update))
    else:
        done = _one_by_one(jobs)
    for job, outcome in done:
        if not isinstance(outcome, SeqmemError):
            reports.append(outcome)
            continue
        if len(jobs) == 1:
            raise outcome
        failed[job.name] = str(outcome)
        print(f'seqmem: error: {" ".join(str(outcome).split())}', file=sys.stderr)
    return reports, failed


def _one_by_one(jobs: list) -> list:
    from seqmem_ros.offline.batch import run_job
    from seqmem_ros.offline.evaluate import count_messages

    done = []
    for job in jobs:
        try:
            total = count_messages(job.bag, job.setting.selection)
            with _bar(total, ' messages', job.name) as bar:
                done.append((job, run_job(job, bar.update)))
        except SeqmemError as error:
            done.append((job, error))
    return done


def _jobs(args: argparse.Namespace) -> list:
    from seqmem_ros.offline.batch import Job
    from seqmem_ros.offline.batch import names_of

    recipes = tuple(recipes_from(args.model, args.weights, args.filters, args.memory))
    setting = _setting(args)
    jobs = []
    for name, bag in zip(names_of(args.bag), args.bag):
        bag_out = args.write_bag
        if bag_out and len(args.bag) > 1:
            bag_out = str(Path(bag_out) / name)
        jobs.append(
            Job(
                name, bag, recipes, setting, args.per_joint, bool(args.out), args.plot or '',
                bag_out or '',
            )
        )  # fmt: skip
    return jobs


def _setting(args: argparse.Namespace) -> Any:
    from seqmem_ros.core.options import StreamOptions
    from seqmem_ros.offline.degrade import AS_RECORDED
    from seqmem_ros.offline.degrade import Degradation
    from seqmem_ros.offline.evaluate import Setting

    degradation = Degradation(args.bits, args.noise, args.drop, args.jitter, args.seed)
    options = StreamOptions(
        joints=args.joints,
        max_gap_s=args.max_gap,
        zero_stamp=args.zero_stamp,
        assume_joint_order=args.assume_joint_order,
        continuous_joints=args.continuous_joints,
    )
    return Setting(
        AS_RECORDED if args.no_degrade else degradation,
        options,
        selection_from(args),
        args.reference_window,
        args.labels,
        args.fast,
    )


def recipes_from(
    models: list[str] | None, weights: list[str], filters: str, memory: str
) -> list[tuple[str, str, str, str]]:
    """
    Say what is to be scored, and find out that all of it can be loaded.

    :param models: names of shipped models; None: ``gru``, or none beside ``weights``
    :param weights: paths of weights files
    :param filters: names with commas between, or ``none``
    :param memory: of the models
    :returns: for each a name of its own, and the arguments of ``load_estimator``, filters first
    :raises SeqmemError: if a name is unknown, a file cannot be used, or nothing is left
    """
    from seqmem_ros.core.estimators import FILTERS
    from seqmem_ros.core.estimators import load_estimator

    recipes: dict[str, tuple[str, str, str]] = {}
    for name in () if filters == 'none' else names_in(filters):
        if name not in FILTERS:
            raise SeqmemError(
                f"--filters: expected names out of {', '.join(FILTERS)}, or none, got '{name}'"
            )
        recipes[name] = (name, '', 'persistent')
    if models is None:
        models = [] if weights else ['gru']
    for name in models:
        if name != 'none':
            recipes[name] = (name, '', memory)
    for path in weights:
        taken = Path(path).stem in recipes
        recipes[str(path) if taken else Path(path).stem] = ('auto', str(path), memory)
    if not recipes:
        raise SeqmemError('nothing to score: expected a --model, --weights or --filters')
    for recipe in recipes.values():
        load_estimator(*recipe)
    return [(name, *recipe) for name, recipe in recipes.items()]


def _content(reports: list) -> Any:
    if len(reports) == 1:
        return reports[0].content
    return {report.name: report.content for report in reports}


def _write_out(
    args: argparse.Namespace, reports: list, failed: dict[str, str], overall: str
) -> None:
    from seqmem_ros.offline.batch_report import write_files
    from seqmem_ros.offline.report_html import make_page

    out = Path(args.out)
    written = write_files(out, reports, failed)
    page = out / 'report.html'
    command = shlex.join(['seqmem', *sys.argv[1:]]) if sys.argv[1:] else 'seqmem evaluate'
    page.write_text(make_page(reports, overall, command, failed), encoding='utf-8')
    if args.json != '-':
        print('\nwritten      ' + '\n             '.join(str(path) for path in (page, *written)))


def _check_outputs(args: argparse.Namespace) -> None:
    """Find out before the work, not after it, that its result cannot be written."""
    inputs = [*args.bag, *args.weights, args.labels]
    check_picture('--plot', args.plot)
    check_files({'--json': args.json, '--plot': args.plot}, inputs)
    keep_inputs({'--out': args.out}, inputs)
    if args.plot and len(args.bag) > 1:
        raise SeqmemError('--plot: expected one bag, got several: use --out')
    half_width_s = args.reference_window
    if half_width_s is not None and not 0 < half_width_s < float('inf'):
        raise SeqmemError(
            f'--reference-window: expected a number of seconds above 0, got {half_width_s}'
        )
    if args.jobs < 1:
        raise SeqmemError(f'--jobs: expected a number from 1 up, got {args.jobs}')
    if args.write_bag and Path(args.write_bag).exists():
        raise SeqmemError(
            f'--write-bag: {args.write_bag} exists already: give a new name or remove it first'
        )
    if args.out:
        out = made_folder('--out', args.out).resolve()
    if args.write_bag:
        bag_out = Path(args.write_bag).resolve()
        if args.out and bag_out in (out, *out.parents):
            raise SeqmemError(
                f'--write-bag: expected a folder without that of --out, got {bag_out}'
            )
        made_folder('--write-bag', args.write_bag)
        if len(args.bag) == 1:
            # The folder itself is to be the bag, and is made with it.
            Path(args.write_bag).rmdir()


def _bar(total: int, unit: str, title: str | None = None) -> Any:
    """Show a bar with the time left where somebody watches and has waited for two seconds."""
    from tqdm import tqdm

    return tqdm(total=total, unit=unit, desc=title, delay=2.0, leave=False, disable=None)
