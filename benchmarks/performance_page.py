"""docs/performance.md and its picture, from the results of the benchmarks."""

import json
from pathlib import Path
import sys

PICTURE = 'performance.png'
# What is asked for: title, limit, and where to find the figure.
STEP_CASES = ('gru 32', 'lstm 32')
HEAD = """# Speed and size

Measured by `./run bench --page`, which writes this page anew. Every figure is the median of
rounds in which all contestants take turns; ratios are taken within a round. Weights, inputs and
outputs are the same for all, and agree to 1e-5 before anything is timed.
"""


def write_page(folder: Path, docs: Path) -> None:
    """
    Write the page and its picture.

    :param folder: with the results of the benchmarks as JSON
    :param docs: folder of the pages
    """
    results = {path.stem: json.loads(path.read_text()) for path in folder.glob('*.json')}
    sections = [HEAD, _machine(results), _bars(results)]
    for name, make in SECTIONS.items():
        if name in results:
            sections.append(make(results[name]))
    if 'step' in results:
        _plot(results, docs / 'images' / PICTURE)
        sections.append(f'![Time of one step in each library](images/{PICTURE})\n')
    notes = docs / 'performance_notes.md'
    if notes.exists():
        sections.append(notes.read_text())
    (docs / 'performance.md').write_text('\n'.join(sections))


def _machine(results: dict) -> str:
    machine = next(iter(results.values()))['machine']
    packages = ', '.join(f'{name} {found}' for name, found in machine['packages'].items())
    load = ', '.join(f'{name} {each["machine"]["load_1min"]}' for name, each in results.items())
    return (
        f'Machine: {machine["cores"]} cores of {machine["processor"]}, {machine["memory_gib"]} '
        f'GiB, {machine["system"]}, Python {machine["python"]}; {packages}. Load of the machine '
        f'at the end of each part (1 min): {load}.\n'
    )


def bars(results: dict) -> list[tuple[str, float, float]]:
    """
    Collect what is asked for.

    :param results: of the benchmarks, by name
    :returns: title, figure and limit of each; a figure may not be above its limit
    """
    found: list[tuple[str, float, float]] = []
    if 'step' in results:
        for case in STEP_CASES:
            rows = results['step']['cases'].get(case)
            if rows:
                ort, eager = rows['onnxruntime'], rows['torch eager']
                found += [
                    (f'step, {case}: p50 / ONNX Runtime', ort['ours_to_it_p50'], 1.0),
                    (f'step, {case}: p99 / ONNX Runtime', ort['ours_to_it_p99'], 2.0),
                    (f'step, {case}: p50 / PyTorch eager', eager['ours_to_it_p50'], 0.35),
                ]
        for name, stream in results['step']['streams'].items():
            found.append((f'compilations, shipped {name}', stream['compilations'], 1))
    for case, row in results.get('node', {}).get('cases', {}).items():
        found += [
            (f'node, {case}: CPU / pass-through', row['cpu_ratio'], 1.15),
            (f'node, {case}: round trip p50 / pass-through', row['p50_ratio'], 1.15),
        ]
    endurance = results.get('node', {}).get('endurance')
    if endurance:
        lost = endurance['pass-through']['lost']
        found.append(('lost of 60 s at 1000 Hz, 7 joints', endurance['seqmem']['lost'], lost))
    if 'start' in results:
        row = results['start']['processes']['node, cache']
        found += [
            ('second start / import only', row['start_ratio'], 1.5),
            ('resident size / import only', row['resident_ratio'], 1.25),
        ]
    if 'offline' in results:
        peers, lengths = results['offline']['peers'], results['offline']['length']
        for case, row in peers.items():
            found.append((f'fast path / nn.GRU, {case}', 1 / row['nn.GRU / fast'], 1 / 8))
        times = [value for length, value in lengths.items() if int(length) >= 100_000]
        found.append(('time a sample, 10^5 to 10^7: most / least', max(times) / min(times), 1.1))
    return found


def _bars(results: dict) -> str:
    rows = [
        (title, f'{value:.3g}', f'{limit:.3g}', 'yes' if value <= limit else 'NO')
        for title, value, limit in bars(results)
    ]
    return '## What is asked for\n\n' + _table(('', 'measured', 'at most', 'met'), rows)


def _step(result: dict) -> str:
    rows = []
    for case, contestants in result['cases'].items():
        for name, row in contestants.items():
            figures = (row['p50'], row['p99'], row['p99.9'], row['ours_to_it_p50'])
            rows.append((case, name, *map(str, figures), str(row['peak_bytes'])))
    head = ('network', 'library', 'p50 us', 'p99 us', 'p99.9 us', 'ours / it', 'bytes a call')
    streams = [
        (name, *(str(row[key]) for key in ('p50', 'p99', 'p99.9', 'compilations', 'estimates')))
        for name, row in result['streams'].items()
    ]
    return (
        '## One step\n\n7 joints as the batch, NumPy in and out, one thread. Ours also selects '
        'features, and restarts and rests single joints.\n\n'
        + _table(head, rows)
        + '\nWhole `Stream.push`, shipped networks, 10,000 messages with resets in between:\n\n'
        + _table(('', 'p50 us', 'p99 us', 'p99.9 us', 'compilations', 'estimates'), streams)
    )


def _breakdown(result: dict) -> str:
    rows = [(name, f'{value:.1f}') for name, value in result['parts_us'].items()]
    return '## Where the time of a message goes\n\n' + _table(('part', 'median us'), rows)


def _node(result: dict) -> str:
    rows = []
    for case, row in result['cases'].items():
        for name in ('seqmem', 'pass-through'):
            each = row[name]
            figures = (each['cpu_us'], each['p50_us'], each['p99_us'])
            rows.append((case, name, *map(str, figures), f'{each["lost"]} of {each["sent"]}'))
    head = ('', 'process', 'CPU us a message', 'round trip p50 us', 'p99 us', 'lost')
    return '## The node against a pass-through\n\n' + _table(head, rows)


def _start(result: dict) -> str:
    head = ('process', 'start s', 'ratio', 'resident MiB', 'ratio')
    rows = [(name, *map(str, row.values())) for name, row in _ordered(result['processes'])]
    return '## Start and memory\n\n' + _table(head, rows)


def _ordered(processes: dict) -> list[tuple[str, dict]]:
    keys = ('start_s', 'start_ratio', 'resident_mib', 'resident_ratio')
    return [(name, {key: row[key] for key in keys}) for name, row in processes.items()]


def _memory(result: dict) -> str:
    rows = [(name, str(size)) for name, size in result['sizes_kib'].items()]
    return _table(('file', 'KiB'), rows)


def _offline(result: dict) -> str:
    text = '## Whole recordings\n\nus for a sample of one joint.\n\n'
    names = list(next(iter(result['peers'].values())))
    rows = [(case, *(str(row[name]) for name in names)) for case, row in result['peers'].items()]
    text += _table(('', *names), rows)
    for key, title in (('length', 'samples'), ('joints', 'joints'), ('hidden', 'hidden units')):
        table = sorted(result[key].items(), key=lambda item: int(item[0]))
        text += '\n' + _table((title, 'us'), [(name, str(value)) for name, value in table])
    return text


SECTIONS = {
    'step': _step,
    'breakdown': _breakdown,
    'node': _node,
    'start': _start,
    'memory': _memory,
    'offline': _offline,
}


def _table(head: tuple, rows: list[tuple]) -> str:
    lines = [head, tuple('---' for _ in head), *rows]
    return '\n'.join('| ' + ' | '.join(line) + ' |' for line in lines) + '\n'


def _plot(results: dict, path: Path) -> None:
    from matplotlib.figure import Figure

    cases = results['step']['cases']
    # By cell, and there by size: gru 32 before gru 128.
    cases = {key: cases[key] for key in sorted(cases, key=lambda key: (key[:3], len(key), key))}
    names = list(next(iter(cases.values())))
    figure = Figure(figsize=(9, 4.8), layout='constrained')
    axes = figure.subplots()
    width = 0.8 / len(names)
    for place, name in enumerate(names):
        at = [index + (place - len(names) / 2 + 0.5) * width for index in range(len(cases))]
        p50 = [case[name]['p50'] for case in cases.values()]
        p99 = [case[name]['p99'] for case in cases.values()]
        axes.bar(at, p50, width, label=name, color=f'C{place}')
        axes.plot(at, p99, '_', color=f'C{place}', markersize=8)
    axes.set_yscale('log')
    axes.set_xticks(range(len(cases)), list(cases))
    axes.set_ylabel('us a step (bar: p50, dash: p99)')
    axes.set_title('One step of 7 joints, NumPy in and out, one thread')
    figure.legend(loc='outside lower center', ncols=len(names), fontsize=9, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


if __name__ == '__main__':
    write_page(Path(sys.argv[1]), Path(sys.argv[2]))
