"""One figure of all views on a memory that are better seen than read."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
import numpy as np

from seqmem_ros.core.memory_report import LayerMemory
from seqmem_ros.core.memory_report import MemoryReport
from seqmem_ros.core.memory_trace import by_age
from seqmem_ros.core.memory_trace import LayerTrace
from seqmem_ros.offline.inspect_sequence import InspectSequence

# Colours and strokes that people with any kind of colour vision can tell apart (Okabe and Ito,
# "Color Universal Design", 2008); layers beyond the fourth begin again.
STROKES = (('#0072B2', '-'), ('#D55E00', '--'), ('#009E73', '-.'), ('#CC79A7', ':'))
BLACK, GREY = '#000000', '#999999'
# Its lightness alone tells the values apart.
COLOUR_MAP = 'cividis'

# An attention that reaches further is drawn sample against sample.
MOST_AGES = 40
SMALLEST_SHARE = 1e-7
MARKED_HORIZONS = (1, 3, 10)

Draw = Callable[[Axes], None]


def plot_memory(
    report: MemoryReport, sequence: InspectSequence, title: str, path: str | Path
) -> None:
    """
    Draw modes, influence, gradient, attention and states.

    :param report: on the memory
    :param sequence: along which it was made
    :param title: of the figure
    :param path: where to write; the suffix says the format
    """
    panels: list[Draw] = []
    if report.layers:
        panels.append(partial(_draw_modes, report=report))
        panels.append(partial(_draw_influence, report=report))
        if any(layer.gradient is not None for layer in report.layers):
            panels.append(partial(_draw_gradient, report=report))
    attentive = [each for each in report.traces if each.attention is not None]
    panels += [partial(_draw_attention, trace=each, sequence=sequence) for each in attentive]
    panels.append(partial(_draw_norms, report=report, sequence=sequence))
    columns = 2 if report.layers else 1
    rows = -(-len(panels) // columns)
    width = 11.0 if columns == 2 else 8.5
    figure = Figure(figsize=(width, 3.6 * rows + 0.6), layout='constrained')
    for index, draw in enumerate(panels):
        axes = figure.add_subplot(rows, columns, index + 1)
        draw(axes)
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=110)


def _draw_modes(axes: Axes, report: MemoryReport) -> None:
    turn = np.exp(1j * np.linspace(0, 2 * np.pi, 361))
    axes.plot(turn.real, turn.imag, color=BLACK, lw=1.0)
    for horizon in MARKED_HORIZONS:
        radius = np.exp(-1 / horizon)
        axes.plot(radius * turn.real, radius * turn.imag, color=GREY, lw=0.6, ls=':')
        axes.annotate(
            f'{horizon}', (0, radius), color='0.35', fontsize=7, ha='center', va='center',
            bbox={'boxstyle': 'square,pad=0.1', 'fc': 'white', 'ec': 'none'},
        )  # fmt: skip
    for index, layer in enumerate(report.layers):
        values = np.array([mode.value for mode in layer.linear.modes])
        axes.scatter(
            values.real, values.imag, s=24, marker='os^D'[index % 4], label=_titled(layer),
            facecolors='none', edgecolors=_stroke(index)['color'], linewidths=1.2,
        )  # fmt: skip
    largest = max(layer.linear.spectral_radius for layer in report.layers)
    axes.set_xlim(-1.08 * max(1, largest), 1.08 * max(1, largest))
    axes.set_ylim(-1.08 * max(1, largest), 1.08 * max(1, largest))
    axes.set_aspect('equal')
    where = 'at rest' if report.at is None else f'at sample {report.at}'
    axes.set_title(
        f'eigenvalues of the cell {where}\ncircles: horizon in samples; black: for ever',
        fontsize=9,
    )
    axes.set_xlabel('real part')
    axes.set_ylabel('imaginary part')
    _finish(axes, False)
    if len(report.layers) > 1:
        axes.legend(fontsize=8, frameon=False, loc='center left', bbox_to_anchor=(1.0, 0.5))


def _draw_influence(axes: Axes, report: MemoryReport) -> None:
    series = {index: layer.influence for index, layer in enumerate(report.layers)}
    _draw_ages(axes, report, series)
    axes.axhline(1 / np.e, color=GREY, lw=0.8, ls=':')
    axes.annotate(
        '1/e', (1, 1 / np.e), xycoords=('axes fraction', 'data'), fontsize=8, color='0.35',
        xytext=(-2, 2), textcoords='offset points', ha='right',
    )  # fmt: skip
    axes.set_title('influence of the state k samples ago on the last one', fontsize=9)
    axes.set_ylabel(r'$\|\partial s_T / \partial s_{T-k}\|_F / \sqrt{S}$')
    _finish_ages(axes, report)


def _draw_gradient(axes: Axes, report: MemoryReport) -> None:
    layers = enumerate(report.layers)
    series = {index: layer.gradient for index, layer in layers if layer.gradient is not None}
    _draw_ages(axes, report, series)
    outputs = 'output' if report.n_last == 1 else f'{report.n_last} outputs'
    axes.set_title(f'gradient of a loss on the last {outputs}', fontsize=9)
    axes.set_ylabel(r'$\|\partial L / \partial s_{T-k}\|$')
    _finish_ages(axes, report)


def _draw_attention(axes: Axes, trace: LayerTrace, sequence: InspectSequence) -> None:
    ages = by_age(trace.attention)
    period_s = 1 / sequence.rate_hz
    end_s = len(ages) * period_s
    causal = not np.any(np.triu(trace.attention, 1))
    if causal and ages.shape[1] <= MOST_AGES:
        begun = np.arange(len(ages))[:, None] >= np.arange(ages.shape[1])
        values, label = np.where(begun, ages, np.nan), 'age / samples'
        extent = (0, end_s, -0.5, ages.shape[1] - 0.5)
    else:
        values, label = trace.attention, 'time of the sample attended to / s'
        extent = (0, end_s, 0, end_s)
    # The first samples have nothing but themselves to attend to: not a scale for the rest.
    largest = np.nanmax(values[min(ages.shape[1], len(values)) - 1 :])
    picture = axes.imshow(
        values.T, origin='lower', aspect='auto', extent=extent, cmap=COLOUR_MAP, vmin=0,
        vmax=largest, interpolation='nearest',
    )  # fmt: skip
    if ages.shape[1] <= 10 and causal:
        axes.set_yticks(range(ages.shape[1]))
    axes.figure.colorbar(picture, ax=axes, label='weight, mean over heads', pad=0.01, extend='max')
    axes.set_title(f'attention of {trace.path or "the layer"} ({trace.kind})', fontsize=9)
    axes.set_xlabel('time / s')
    axes.set_ylabel(label)


def _draw_norms(axes: Axes, report: MemoryReport, sequence: InspectSequence) -> None:
    for index, trace in enumerate(report.traces):
        if len(trace.norms):
            # Even times, as in the panel of the attention.
            time_s = (np.arange(len(trace.norms)) + 0.5) / sequence.rate_hz
            label = f'{trace.path or "the layer"} ({trace.kind})'
            axes.plot(time_s, trace.norms, label=label, **_stroke(index))
            axes.set_xlim(0, len(trace.norms) / sequence.rate_hz)
    blocks = any(each.kind == 'TransformerBlock' for each in report.traces)
    axes.set_title(
        'size of the outputs of each layer with memory'
        + ('; of a block, of what its attention adds' if blocks else ''),
        fontsize=9,
    )
    axes.set_xlabel('time / s')
    axes.set_ylabel(r'$\|h_t\|$')
    _finish(axes, len(report.traces) > 1)


def _draw_ages(axes: Axes, report: MemoryReport, series: dict[int, np.ndarray]) -> None:
    largest = max(values.max() for values in series.values()) or 1.0
    lowest = largest
    for index, values in series.items():
        # Below that float32 has nothing to say; a logarithm leaves NaN out.
        shown = np.where(values > largest * SMALLEST_SHARE, values, np.nan)[::-1]
        label = _titled(report.layers[index])
        axes.semilogy(np.arange(len(shown)), shown, label=label, **_stroke(index))
        lowest = min(lowest, np.nanmin(shown, initial=lowest))
    axes.set_ylim(lowest / 2, largest * 2)


def _finish_ages(axes: Axes, report: MemoryReport) -> None:
    axes.set_xlabel('age k / samples')
    axes.margins(x=0.01)
    to_ms = 1000 / report.rate_hz
    above = axes.secondary_xaxis('top', functions=(lambda k: k * to_ms, lambda ms: ms / to_ms))
    above.set_xlabel(f'age / ms at {report.rate_hz:.4g} Hz', fontsize=8)
    above.tick_params(labelsize=8)
    axes.spines['right'].set_visible(False)
    _finish(axes, len(report.layers) > 1)


def _finish(axes: Axes, legend: bool) -> None:
    axes.grid(True, color='0.9', lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8)
    if legend:
        axes.legend(fontsize=8, frameon=False)


def _stroke(index: int) -> dict[str, str]:
    color, style = STROKES[index % len(STROKES)]
    return {'color': color, 'ls': style}


def _titled(layer: LayerMemory) -> str:
    return f'{layer.path or "the layer"} ({layer.kind})'
