"""What ``seqmem train`` does: study, learn, score, and write one file with its own card."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from seqmem_ros import __version__
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.weights import file_digest
from seqmem_ros.core.weights import save_model
from seqmem_ros.offline.fit_simulated import fit_simulated
from seqmem_ros.offline.fit_simulated import score_simulated
from seqmem_ros.offline.resumable import History
from seqmem_ros.offline.resumable import Progress
from seqmem_ros.offline.train import TrainingOptions
from seqmem_ros.offline.train_arguments import bag_setting
from seqmem_ros.offline.train_arguments import BATCH_OF_SIMULATION
from seqmem_ros.offline.train_arguments import check_simulation
from seqmem_ros.offline.train_arguments import Job
from seqmem_ros.offline.train_arguments import options_of
from seqmem_ros.offline.train_arguments import start_of
from seqmem_ros.offline.train_arguments import window_options
from seqmem_ros.offline.train_arguments import window_setting
from seqmem_ros.offline.train_bags import BagSetting
from seqmem_ros.offline.train_bags import study
from seqmem_ros.offline.train_bags import train_on_bags
from seqmem_ros.offline.train_report import score_lines
from seqmem_ros.offline.train_windows import train_on_windows
from seqmem_ros.offline.windows_file import read_windows

Bar = Callable[[int, str], AbstractContextManager[Progress]]
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Trained:
    """
    What came out.

    :ivar model: as written, with its card
    :ivar history: of the last part of the training
    :ivar simulated: of the part on simulation before it, if there was one
    :ivar path: of the weights file
    """

    model: SequenceModel
    history: History
    simulated: History | None
    path: Path

    @property
    def title(self) -> str:
        """Name it in a picture."""
        return f'{self.path.name}: {self.model.kind}, {self.model.spec.task}'

    def to_json(self) -> dict[str, Any]:
        """
        Lay it out as plain JSON.

        :returns: file, digest, card and histories
        """
        histories = {'history': self.history}
        if self.simulated is not None:
            histories['simulated'] = self.simulated
        return {
            'weights': str(self.path),
            'digest': file_digest(self.path),
            **self.model.spec.card,
            **{name: _history_json(history) for name, history in histories.items()},
        }


def run_job(job: Job, bar: Bar, say: Say) -> Trained:
    """
    Train.

    :param job: what is asked for
    :param bar: makes what shows the progress, from the number of steps and a word
    :param say: called with each line for people
    :returns: what came out; the weights file is written
    :raises SeqmemError: if something that was asked for cannot be
    """
    start = start_of(job)
    options = options_of(job, start)
    setting = bag_setting(job, start, options)
    check_simulation(job, setting, options, start)
    studied = None
    if job.bags:
        spec = start.spec if start else None
        studied = study(job.bags, options, setting, spec)
        _say_all(say, studied.findings)
    simulated, findings = None, {}
    if job.simulate:
        model, simulated = _simulated(job, options, start, bar)
        start, history = model, simulated
        findings = {'simulation': f'{job.simulate} steps on simulated joints'}
        scores = {} if job.bags else score_simulated(model, options.n_samples)
    checkpoint = f'{job.out}.checkpoint'
    resume = job.resume and (Path(checkpoint).is_file() or not job.simulate)
    if studied is not None:
        with bar(job.steps, 'bags') as progress:
            model, history, scores = train_on_bags(
                studied, options, setting, start, checkpoint, resume, progress, job.asked
            )
        findings = {**studied.findings, **findings}
    elif job.windows:
        windows, chosen = read_windows(job.windows), window_setting(job)
        options = window_options(job, options, windows.x.shape[1])
        with bar(job.steps, 'windows') as progress:
            model, history, scores, findings = train_on_windows(
                windows, options, chosen, start, checkpoint, resume, progress, job.asked
            )
        _say_all(say, findings)
    card = _card(job, options, setting, findings, scores)
    model = SequenceModel(replace(model.spec, card=card), model.network)
    save_model(job.out, model)
    for path in (checkpoint, f'{job.out}.simulated.checkpoint'):
        Path(path).unlink(missing_ok=True)
    _say_all(say, score_lines(model.spec, scores))
    size_kb = Path(job.out).stat().st_size / 1000
    _say_all(say, {'written': f'{job.out}, {size_kb:.0f} kB, digest {file_digest(job.out)}'})
    return Trained(model, history, simulated, Path(job.out))


def _simulated(
    job: Job, options: TrainingOptions, start: SequenceModel | None, bar: Bar
) -> tuple[SequenceModel, History]:
    checkpoint = f'{job.out}.simulated.checkpoint'
    batch = BATCH_OF_SIMULATION if job.batch is None else job.batch
    options = replace(options, n_steps=job.simulate, batch_size=batch)
    with bar(job.simulate, 'simulation') as progress:
        return fit_simulated(options, start, checkpoint, job.resume, progress, job.asked)


def _card(
    job: Job,
    options: TrainingOptions,
    setting: BagSetting,
    findings: dict[str, str],
    scores: dict[str, Any],
) -> dict[str, Any]:
    training = {**asdict(options), 'simulated_steps': job.simulate, 'start_from': job.start_from}
    if job.start_from:
        for name in ('hidden_size', 'n_layers', 'attention_window'):
            training.pop(name)
    if job.bags:
        training |= {
            'target': setting.target if options.task == 'velocity' else None,
            'degradation': str(setting.degradation),
            'chunk': setting.chunk,
        }
    versions = {name: version(name) for name in ('jax', 'numpy', 'optax')}
    training |= {**findings, 'seqmem_ros': __version__, **versions}
    return {
        'training': {name: value for name, value in training.items() if value is not None},
        'scores': scores,
    }


def _say_all(say: Say, lines: dict[str, str]) -> None:
    for name, text in lines.items():
        first, *rest = text.split('\n')
        say('\n'.join([f'{name:<13}{first}', *(f'{"":<13}{line}' for line in rest)]))


def _history_json(history: History) -> dict[str, Any]:
    return {
        'loss': [float(f'{loss:.6g}') if np.isfinite(loss) else None for loss in history.losses],
        'held_out': [[step, float(f'{loss:.6g}')] for step, loss in history.checks],
    }
