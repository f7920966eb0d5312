"""The command line as a frame: exit codes, one-line errors, quick help."""

import os
from pathlib import Path
import signal
import subprocess
import sys
import time

import pytest

import seqmem_ros
from seqmem_ros.cli import evaluate
from seqmem_ros.cli import main as frame
from seqmem_ros.cli.main import main
from seqmem_ros.core.errors import SeqmemError

BAG = str(Path(seqmem_ros.__file__).parent / 'data' / 'kr300_a')


def run_with(monkeypatch, error):
    """Run a command that ends with an error."""

    def run(args):
        raise error

    monkeypatch.setattr(evaluate, 'run', run)
    return main(['evaluate', 'bag'])


def test_the_version_is_that_of_the_package(capsys):
    assert main(['--version']) == 0
    assert capsys.readouterr().out == f'seqmem {seqmem_ros.__version__}\n'


@pytest.mark.parametrize('name', frame.COMMANDS)
def test_every_command_explains_itself_with_examples(capsys, name):
    assert main(['--help']) == 0
    # A long name has a line of its own.
    assert f'\n    {name}' in capsys.readouterr().out
    assert main([name, '--help']) == 0
    assert f'\n  seqmem {name} ' in capsys.readouterr().out


@pytest.mark.parametrize('arguments', [[], ['nonsense'], ['evaluate'], ['evaluate', 'b', '--x']])
def test_wrong_usage_is_2(capsys, arguments):
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith('usage: seqmem')


def test_a_known_error_is_one_line_and_1(capsys, monkeypatch):
    assert run_with(monkeypatch, SeqmemError('expected this,\n  got that')) == 1
    captured = capsys.readouterr()
    assert captured.err == 'seqmem: error: expected this, got that\n'
    assert captured.out == ''


@pytest.mark.parametrize(
    ('package', 'advice'),
    [
        ('rosbags', "pip install 'seqmem_ros[offline]'"),
        ('matplotlib.figure', "pip install 'seqmem_ros[offline]'"),
        ('optax', "pip install 'seqmem_ros[train]'"),
        ('h5py', "pip install 'seqmem_ros[convert]'"),
    ],
)
def test_a_missing_package_comes_with_the_command_that_helps(capsys, monkeypatch, package, advice):
    error = ModuleNotFoundError(f'No module named {package!r}', name=package)
    assert run_with(monkeypatch, error) == 1
    name = package.partition('.')[0]
    assert capsys.readouterr().err == f'seqmem: error: the package {name} is missing: {advice}\n'


def test_a_missing_ros_comes_with_both_ways_to_it(capsys, monkeypatch):
    error = ModuleNotFoundError("No module named 'rclpy'", name='rclpy')
    assert run_with(monkeypatch, error) == 1
    assert capsys.readouterr().err == (
        f'seqmem: error: the package rclpy is missing for {sys.executable}: source a ROS 2 '
        "installation first, or, without one, pip install 'seqmem_ros[ros]'\n"
    )


def test_a_bug_stays_a_traceback(monkeypatch):
    with pytest.raises(ModuleNotFoundError):
        run_with(monkeypatch, ModuleNotFoundError('No module named mistyped', name='mistyped'))
    with pytest.raises(ZeroDivisionError):
        run_with(monkeypatch, ZeroDivisionError())


def test_an_interrupt_is_130_and_quiet(capsys, monkeypatch):
    assert run_with(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == 'seqmem: interrupted\n'


@pytest.mark.parametrize('number, word', [(2, 'interrupted'), (15, 'terminated')])
@pytest.mark.parametrize(
    'last_words',
    [
        'finally:\n        print("down", flush=True)',
        # NumPy makes this of what a signal raises while it asks an object for its numbers.
        'except BaseException:\n        print("down", flush=True); raise ValueError("a sequence")',
    ],
    ids=['as it came', 'as another error'],
)
def test_a_command_that_is_stopped_says_so_and_cleans_up(last_words, number, word):
    code = (
        'import sys, time; from seqmem_ros.cli import evaluate; '
        'from seqmem_ros.cli.main import main\n'
        'def run(args):\n'
        '    try:\n'
        '        print("up", flush=True); time.sleep(60)\n'
        f'    {last_words}\n'
        'evaluate.run = run; sys.exit(main(["evaluate", "bag"]))'
    )
    process = subprocess.Popen(
        [sys.executable, '-c', code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == 'up\n'
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (128 + number, 'down\n', f'seqmem: {word}\n')


def test_a_second_stop_does_not_break_off_what_the_first_began():
    """Nor is it the exit code of a process that has said that it was interrupted."""
    code = (
        'import signal, sys; from seqmem_ros.cli import evaluate; '
        'from seqmem_ros.cli.main import main\n'
        'def run(args):\n'
        '    try: signal.raise_signal(2)\n'
        '    finally:\n'
        '        signal.raise_signal(15); signal.raise_signal(2); print("down")\n'
        'evaluate.run = run; code = main(["evaluate", "bag"])\n'
        'signal.raise_signal(15); signal.raise_signal(2); sys.exit(code)'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (130, 'down\n', 'seqmem: interrupted\n')


@pytest.mark.parametrize('where', ['callback of the collector', '__del__'])
@pytest.mark.parametrize('number, word', [(2, 'interrupted'), (15, 'terminated')])
def test_a_stop_is_heard_where_python_swallows_what_is_raised(where, number, word):
    """JAX has a callback that is called each time that garbage is collected."""
    code = (
        'import gc, signal, sys, time; from seqmem_ros.cli import evaluate; '
        'from seqmem_ros.cli.main import main\n'
        f'def stop(*_): done or done.append(1) or signal.raise_signal({number})\n'
        'done = []\n'
        'class Last:\n'
        '    def __del__(self): stop()\n'
        'def run(args):\n'
        f'    gc.callbacks.append(stop) if {where[0] == "c"} else Last()\n'
        '    gc.collect(); time.sleep(60)\n'
        'evaluate.run = run; sys.exit(main(["evaluate", "bag"]))'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (128 + number, f'seqmem: {word}\n')


@pytest.mark.parametrize('n_children', [1, 2, 3])
@pytest.mark.parametrize('number, word', [(2, 'interrupted'), (15, 'terminated')])
def test_a_stop_ends_the_processes_of_several_jobs_too(number, word, n_children):
    """Also one that comes while they start; the first one counts what the others share."""
    arguments = ['evaluate', BAG, BAG, '--jobs', '2', '--filters', 'none']
    process = subprocess.Popen(
        [sys.executable, '-m', 'seqmem_ros.cli.main', *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    children = Path(f'/proc/{process.pid}/task/{process.pid}/children')
    deadline_s = time.monotonic() + 60
    while len(started := children.read_text().split()) < n_children:
        assert process.poll() is None and time.monotonic() < deadline_s
        time.sleep(0.001)
    # Ctrl-C goes to all of them, a supervisor speaks to the one it has started.
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + number, f'seqmem: {word}\n')
    while any(Path(f'/proc/{child}').exists() for child in started):
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def test_as_a_process_it_is_quick_to_help_and_imports_nothing_heavy():
    code = (
        'import sys; from seqmem_ros.cli.main import main; code = main(["--help"]); '
        'heavy = {"jax", "rosbags", "matplotlib", "scipy", "rclpy"} & set(sys.modules); '
        'print(sorted(heavy), file=sys.stderr); sys.exit(code)'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == '[]\n'
    assert done.stdout.startswith('usage: seqmem')


def test_a_reader_that_goes_away_is_no_error():
    """The pipe is closed before anything is written to it."""
    code = (
        'import sys; from seqmem_ros.cli import evaluate; from seqmem_ros.cli.main import main; '
        'evaluate.run = lambda args: print("x" * 100000) or 0; '
        'sys.stdin.read(); sys.exit(main(["evaluate", "bag"]))'
    )
    process = subprocess.Popen(
        [sys.executable, '-c', code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    process.stdin.close()
    assert process.stderr.read() == b''
    assert process.wait(timeout=60) == 141
    process.stderr.close()
