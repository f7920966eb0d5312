"""``seqmem evaluate`` on several bags, and the files that it leaves."""

import csv
from html.parser import HTMLParser
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import seqmem_ros
from seqmem_ros.cli.main import main
from seqmem_ros.core.joints import JointSample
from seqmem_ros.offline.bags import list_topics
from seqmem_ros.offline.bags import read_joint_messages
from seqmem_ros.offline.bags import read_joint_samples
from seqmem_ros.offline.bags import write_joint_bag

SHIPPED = str(Path(seqmem_ros.__file__).parent / 'data' / 'kr300_a')
FILTERS = ['--model', 'none', '--filters', 'difference,kalman']


@pytest.fixture
def bags(tmp_path):
    """Cut the shipped recording into two bags of the same name."""
    paths = []
    for folder, start, stop in (('a', 500, 900), ('b', 900, 1500)):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / 'run'
        samples = itertools.islice(read_joint_samples(SHIPPED), start, stop)
        write_joint_bag(path, '/joint_states', samples, 'base')
        paths.append(str(path))
    return paths


class Page(HTMLParser):
    """Collects what a page refers to, and the texts of its headings."""

    def __init__(self, text):
        super().__init__()
        self.sources, self.tags, self.ids = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        given = dict(attributes)
        self.sources += [given[name] for name in ('src', 'href') if name in given]
        self.ids += [given['id']] if 'id' in given else []


def test_several_bags_have_tables_of_their_own_and_one_over_all(bags, tmp_path, capsys):
    out = tmp_path / 'report'
    assert main(['evaluate', *bags, *FILTERS, '--out', str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.out.count('bag          ') == 2 and '\nall 2 bags\n' in captured.out
    numbers = json.loads((out / 'metrics.json').read_text())
    assert list(numbers['bags']) == ['run', 'run_2'] and numbers['failed'] == {}
    entries = [numbers['bags'][name]['estimators']['kalman'] for name in numbers['bags']]
    samples = np.array([entry['samples'] for entry in entries])
    squares = np.array([entry['rmse'] for entry in entries]) ** 2
    pooled = np.sqrt(np.sum(samples * squares) / samples.sum())
    assert numbers['all']['kalman']['rmse'] == pytest.approx(pooled, rel=1e-9)
    assert numbers['all']['kalman']['samples'] == samples.sum()
    row = next(
        line for line in captured.out.split('all 2 bags')[1].splitlines() if 'kalman' in line
    )
    assert row.split()[:3] == ['kalman', '2', f'{pooled:.4f}']


def test_the_files_say_the_same_and_the_page_needs_no_other(bags, tmp_path, capsys):
    out = tmp_path / 'report'
    arguments = [*bags[:1], *FILTERS, '--model', 'motion', '--out', str(out), '--fast']
    assert main(['evaluate', *arguments]) == 0
    numbers = json.loads((out / 'metrics.json').read_text())['bags']['run']
    with (out / 'metrics.csv').open() as file:
        rows = list(csv.DictReader(file))
    of = {(row['estimator'], row['joint']): row for row in rows if row['bag'] == 'run'}
    kalman = numbers['estimators']['kalman']
    assert float(of['kalman', 'all that move']['rmse']) == kalman['rmse']
    assert float(of['kalman', 'joint_a1']['p99']) == kalman['per_joint']['joint_a1']['p99']
    motion = numbers['estimators']['motion']
    assert float(of['motion', 'all that move']['macro_f1']) == motion['macro_f1']
    assert int(of['motion', 'all that move']['missed']) == motion['missed']
    pictures = {path.stem for path in (out / 'plots' / 'run').glob('*.png')}
    assert pictures == {
        'rmse_against_lag', 'rmse_per_joint', 'health', 'confusion_motion', 'timeline_motion',
        'delay_motion', *(f'joint_joint_a{axis}' for axis in range(1, 7)),
    }  # fmt: skip
    text = (out / 'report.html').read_text(encoding='utf-8')
    page = Page(text)
    assert len([tag for tag in page.tags if tag == 'img']) == len(pictures)
    assert all(source.startswith('data:image/png;base64,') for source in page.sources)
    assert not {'script', 'link', 'iframe'} & set(page.tags)
    assert f'{kalman["rmse"]:.4f}' in text


def test_processes_give_what_one_gives(bags, tmp_path, capsys):
    said = []
    for jobs in ('1', '2'):
        assert main(['evaluate', *bags, *FILTERS, '--json', '-', '--jobs', jobs]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1] and list(said[0]) == ['run', 'run_2']


def test_a_bag_that_fails_does_not_end_the_others(bags, tmp_path, capsys):
    (tmp_path / 'broken.mcap').write_bytes(b'nothing')
    out = tmp_path / 'report'
    arguments = [bags[0], str(tmp_path / 'broken.mcap'), *FILTERS, '--out', str(out)]
    assert main(['evaluate', *arguments]) == 1
    captured = capsys.readouterr()
    assert 'broken.mcap: expected a bag (.mcap, .db3, .bag), but it begins' in captured.err
    assert captured.out.startswith('bag ')
    assert list(json.loads((out / 'metrics.json').read_text())['failed']) == ['broken']
    page = (out / 'report.html').read_text()
    assert '<p><strong>broken could not be evaluated:</strong> ' in page


def test_estimates_are_written_as_a_bag_to_open_beside(bags, tmp_path, capsys):
    out = tmp_path / 'estimates'
    arguments = [bags[0], *FILTERS, '--model', 'motion', '--write-bag', str(out), '--drop', '0']
    assert main(['evaluate', *arguments]) == 0
    topics = list_topics(out)
    assert {name: topic.count for name, topic in topics.items()} == {
        '/seqmem/reference/joint_states': 400 - 2 * 5,
        '/seqmem/difference/joint_states': 396,
        '/seqmem/kalman/joint_states': 396,
        '/seqmem/motion/label': 396,
        '/seqmem/motion/label_scores': 396,
    }
    original = {m.sample.stamp_ns: m for m in read_joint_messages(bags[0])}
    before = None
    for message in read_joint_messages(out, '/seqmem/difference/joint_states'):
        source = original[message.sample.stamp_ns]
        assert (message.record_ns, message.frame_id) == (source.record_ns, 'base')
        assert message.sample.names == source.sample.names
        # Positions are those that the filter saw: rounded to 14 bits.
        step = 2 * np.pi / 2**14
        seen = np.round(source.sample.position / step) * step
        np.testing.assert_array_equal(message.sample.position, seen)
        if before is not None:
            expected = (seen - before) / 0.004
            np.testing.assert_allclose(message.sample.velocity, expected, rtol=1e-6, atol=1e-12)
        before = seen


def test_labels_from_a_file_score_a_model_of_the_motion(bags, tmp_path, capsys):
    track = tmp_path / 'labels.csv'
    track.write_text('start,end,label\n0,0.8,forward\n0.8,1.2,nap\n')
    arguments = [bags[0], '--model', 'motion', '--filters', 'none', '--labels', str(track)]
    assert main(['evaluate', *arguments, '--drop', '0', '--json', '-']) == 0
    confusion = np.array(json.loads(capsys.readouterr().out)['estimators']['motion']['confusion'])
    # From the fifth message on, for 0.8 s at 250 Hz, six joints; the nap is no label of the model.
    assert confusion.sum() == confusion[1].sum() == 6 * (200 - 4)


@pytest.mark.parametrize(
    ('arguments', 'text'),
    [
        (['--jobs', '0'], '--jobs: expected a number from 1 up, got 0'),
        (['--start', '3', '--end', '2'], 'start and end: expected 0 <= start < end, got 3 and 2'),
        (['--write-bag', SHIPPED], 'kr300_a exists already: give a new name or remove it first'),
        (['--labels', '/contact'], "no topic '/contact' with labels"),
        ([SHIPPED, '--plot', 'x.png'], '--plot: expected one bag, got several: use --out'),
        (['--out', '/dev/null/x'], '--out: expected a folder that can be made and written'),
    ],
)
def test_what_is_wrong_is_said_before_the_work(capsys, arguments, text):
    assert main(['evaluate', SHIPPED, *arguments, *FILTERS]) == 1
    captured = capsys.readouterr()
    assert text in captured.err and captured.err.count('\n') == 1


@pytest.mark.parametrize('fast', [[], ['--fast']])
def test_an_arm_that_rests_exactly_is_told_and_drawn(tmp_path, capsys, fast):
    """All errors are zero, by which nothing can be divided and of which there is no logarithm."""
    times_ns = range(10**18, 10**18 + 500 * 4_000_000, 4_000_000)
    samples = [(ns, JointSample(ns, ('a', 'b'), np.array([0.5, 1.0]))) for ns in times_ns]
    write_joint_bag(tmp_path / 'still', '/joint_states', samples)
    arguments = ['evaluate', str(tmp_path / 'still'), '--model', 'gru', '--filters', 'kalman,line']
    assert main([*arguments, *fast, '--out', str(tmp_path / 'report')]) == 0
    said = capsys.readouterr().out
    assert 'kalman, the best filter here, has no error: nothing moves' in said
    assert (tmp_path / 'report' / 'plots' / 'still' / 'rmse_per_joint.png').stat().st_size > 1000


@pytest.mark.skipif(not Path('/dev/full').exists(), reason='this system has no /dev/full')
def test_a_full_disk_is_said_in_one_line(bags, capsys):
    assert main(['evaluate', bags[0], *FILTERS, '--json', '/dev/full']) == 1
    error = capsys.readouterr().err
    assert error.startswith('seqmem: error: expected room to write a file, got: No space left')
    assert error.count('\n') == 1
