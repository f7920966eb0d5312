"""What ``seqmem inspect`` prints of a memory."""

from collections.abc import Iterable
from collections.abc import Sequence
import math

from seqmem_ros.core.memory_filters import FilterMemory
from seqmem_ros.core.memory_linear import Mode
from seqmem_ros.core.memory_linear import OnePole
from seqmem_ros.core.memory_report import LayerMemory
from seqmem_ros.core.memory_report import MemoryReport
from seqmem_ros.core.memory_trace import mean_by_age
from seqmem_ros.core.memory_training import TrainingMemory

MOST_MODES = 6
MOST_AGES = 12
_AGES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


def memory_text(report: MemoryReport, source: str) -> str:
    """
    Say what a report says, most important first within each view.

    :param report: on the memory
    :param source: of the sequence, in words
    :returns: lines
    """
    parts = [
        _parameters(report),
        f'{"sequence":<13}{source}, {_length(report)} samples at {report.rate_hz:.4g} Hz',
    ]
    for layer in report.layers:
        parts += [_modes(layer, report), _units(layer, report)]
    if report.layers and report.filters:
        parts.append(_filters(report))
    if report.layers:
        parts.append(_influence(report))
    if report.reach_samples is not None:
        parts.append(_attention(report))
    parts += [_norms(report), _training(report.training)]
    return '\n\n'.join(parts)


def _length(report: MemoryReport) -> int:
    return max((len(each.norms) for each in report.traces), default=0)


def _parameters(report: MemoryReport) -> str:
    rows = [('parameters', 'layer', 'formula', 'sizes', 'by formula', 'in the file')]
    for count in report.counts:
        sizes = ', '.join(f'{letter} {value}' for letter, value in count.sizes.items())
        named = (count.path or '(itself)', count.kind, count.formula or '-', sizes or '-')
        rows.append((*named, str(count.count), str(count.held)))
    totals = (sum(c.count for c in report.counts), sum(c.held for c in report.counts))
    rows.append(('total', '', '', '', *map(str, totals)))
    return _aligned(rows, left=4)


def _modes(layer: LayerMemory, report: MemoryReport) -> str:
    linear = layer.linear
    where = 'at rest under the mean input' if report.at is None else f'at sample {report.at}'
    head = (
        f'{_titled(layer)} linearised {where}: spectral radius {linear.spectral_radius:.4f}, '
        f'largest singular value {linear.largest_singular_value:.4f}'
    )
    rows = [('eigenvalue', 'size', 'horizon', '', 'period', '')]
    # Of a conjugate pair one says all.
    shown = [mode for mode in linear.modes if mode.value.imag >= 0]
    for mode in shown[:MOST_MODES]:
        horizon = _both(mode.horizon_samples, report.rate_hz, 'endless')
        period = _both(mode.period_samples, report.rate_hz, 'none')
        rows.append((_complex(mode), f'{mode.radius:.4f}', *horizon, *period))
    rest = shown[MOST_MODES:]
    lines = [head, _aligned(rows, left=0)]
    if rest:
        shortest = rest[-1].horizon_samples
        lines.append(f'{len(rest)} more, of horizons down to {shortest:.2g} samples')
    return '\n'.join(lines)


def _units(layer: LayerMemory, report: MemoryReport) -> str:
    ordered = sorted(layer.units, key=lambda unit: -unit.horizon_samples)
    middle = len(ordered) // 2
    chosen = {
        'longest': ordered[0],
        'second': ordered[min(1, len(ordered) - 1)],
        'median': ordered[middle],
        'shortest': ordered[-1],
    }
    head = f'{_titled(layer)}, each of {len(ordered)} parts of its state as a one-pole filter'
    rows = [('part', 'pole', 'horizon', '', 'DC gain')]
    rows += [(name, *_pole_cells(unit, report.rate_hz)) for name, unit in chosen.items()]
    return f'{head}\n{_aligned(rows)}'


def _filters(report: MemoryReport) -> str:
    rows = [('filter', 'pole', 'horizon', '', 'DC gain')]
    for each in report.filters:
        rows.append((each.name, *_filter_cells(each, report.rate_hz)))
    return f'beside them, the classical filters at {report.rate_hz:.4g} Hz\n{_aligned(rows)}'


def _filter_cells(each: FilterMemory, rate_hz: float) -> tuple[str, ...]:
    if each.modes is not None:
        # Its slowest mode; a Kalman filter follows a constant velocity without error.
        slowest = each.modes.modes[0]
        return _complex(slowest), *_both(slowest.horizon_samples, rate_hz), '1'
    if math.isfinite(each.reach_samples):
        samples = f'{each.reach_samples:g} samples'
        return 'none', samples, f'{1000 * (each.reach_samples - 1) / rate_hz:.3g} ms', '1'
    return _pole_cells(each.one_pole, rate_hz)


def _influence(report: MemoryReport) -> str:
    length = len(report.layers[0].influence) - 1
    ages = [age for age in _AGES if age < length][:MOST_AGES]
    rows = [('age in samples', *map(str, ages))]
    rows.append(('age in ms', *(f'{1000 * age / report.rate_hz:.4g}' for age in ages)))
    for layer in report.layers:
        values = [layer.influence[-1 - age] for age in ages]
        rows.append((f'influence, {_titled(layer)}', *map(_small, values)))
    for layer in report.layers:
        if layer.gradient is not None:
            values = [layer.gradient[-1 - age] for age in ages]
            rows.append((f'gradient, {_titled(layer)}', *map(_small, values)))
    outputs = 'output' if report.n_last == 1 else f'{report.n_last} outputs'
    head = (
        'influence |ds_T/ds_k|_F / sqrt(S) of the state k samples ago on the last one, and the '
        f'gradient\n|dL/ds_k| of a loss on the last {outputs}'
    )
    return f'{head}\n{_aligned(rows)}'


def _attention(report: MemoryReport) -> str:
    reach = report.reach_samples
    head = 'attention reaches back to the start'
    if math.isfinite(reach):
        ms = 1000 * (reach - 1) / report.rate_hz
        head = f'attention reaches back over {reach:g} samples, {ms:.4g} ms'
    head += '; mean weight by age, over all heads'
    rows = []
    for each in report.traces:
        ages = None if each.attention is None else mean_by_age(each.attention)
        if ages is not None:
            shown = [age for age in range(len(ages)) if age < MOST_AGES]
            rows.append((f'{each.path or "(itself)"} ({each.kind})', shown, ages))
    if not rows:
        return head
    longest = max((shown for _, shown, _ in rows), key=len)
    cells = [('age in samples', *map(str, longest))]
    cells += [(name, *(_small(ages[age]) for age in shown)) for name, shown, ages in rows]
    width = max(map(len, cells))
    return f'{head}\n{_aligned([row + ("",) * (width - len(row)) for row in cells])}'


def _norms(report: MemoryReport) -> str:
    rows = [('|h_t|', 'mean', 'least', 'most', 'last')]
    for each in report.traces:
        if len(each.norms):
            values = (each.norms.mean(), each.norms.min(), each.norms.max(), each.norms[-1])
            rows.append((f'{each.path or "(itself)"} ({each.kind})', *map(_small, values)))
    head = 'size of the output of each layer with memory along the sequence'
    blocks = any(each.kind == 'TransformerBlock' for each in report.traces)
    head += '; of a block, of what its attention adds' if blocks else ''
    return f'{head}\n{_aligned(rows)}'


def _training(training: TrainingMemory) -> str:
    sizes = training.sizes
    hidden = 'as it is' if sizes.hidden is None else f'{sizes.hidden}'
    window = f'{sizes.window or sizes.n_samples}'
    lines = [
        f'memory of training, B = {sizes.batch}, T = {sizes.n_samples}, H {hidden}, K = {window}',
        f'  activations, by formula    {_bytes(training.activations)}',
        f'  kept by JAX, before fusion {_bytes(training.kept)}',
        f'  weights                    {_bytes(training.weights)}, with gradient and Adam '
        f'{_bytes(4 * training.weights)}',
    ]
    return '\n'.join(lines)


def _titled(layer: LayerMemory) -> str:
    return f'{layer.path or "(itself)"} ({layer.kind})'


def _pole_cells(pole: OnePole, rate_hz: float) -> tuple[str, ...]:
    return f'{pole.pole:.4f}', *_both(pole.horizon_samples, rate_hz), _number(pole.dc_gain)


def _complex(mode: Mode) -> str:
    imaginary = mode.value.imag
    return f'{mode.value.real:.4f}' + (f' +- {imaginary:.4f}i' if imaginary else '')


def _both(samples: float, rate_hz: float, infinite: str = 'endless') -> tuple[str, str]:
    if math.isinf(samples):
        return infinite, ''
    return f'{samples:.4g} samples', f'{1000 * samples / rate_hz:.4g} ms'


def _number(value: float) -> str:
    return f'{value:.3g}' if math.isfinite(value) else 'unbounded'


def _small(value: float) -> str:
    return f'{float(value):.3g}'


def _bytes(count: int) -> str:
    for unit, size in (('GB', 1e9), ('MB', 1e6), ('kB', 1e3)):
        if count >= size:
            return f'{count / size:.3g} {unit}'
    return f'{count} B'


def _aligned(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return '\n'.join(_line(row, widths, left) for row in rows)


def _line(row: Iterable[str], widths: Sequence[int], left: int) -> str:
    cells = [
        cell.ljust(width) if index < left else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(row, widths))
    ]
    return '  '.join(cells).rstrip()
