"""Who may import whom: nn <- core <- offline, ros; the command line uses ros only when run."""

import ast
from pathlib import Path
import subprocess
import sys

import pytest

import seqmem_ros

ROOT = Path(seqmem_ros.__file__).parent
FILES = sorted(ROOT.rglob('*.py'))

# What each part may import: parts of this package, and packages beside the standard library.
# The names of interface packages end with _msgs.
PARTS = {
    'nn': ({'nn'}, {'jax', 'numpy'}),
    'core': ({'core', 'nn'}, {'jax', 'numpy', 'safetensors'}),
    'offline': (
        {'offline', 'core', 'nn'},
        {
            'jax', 'numpy', 'safetensors', 'optax', 'scipy', 'matplotlib', 'tqdm', 'h5py',
            'lz4', 'backports',
            # in the standard library from Python 3.14 on
            'compression',
        },
    ),
    'cli': ({'cli', 'core', 'nn', 'offline'}, {'numpy', 'tqdm', 'jax'}),
    'ros': (
        {'ros', 'core', 'offline'},
        {'numpy', 'rclpy', 'std_srvs', 'rcl_interfaces', 'builtin_interfaces'},
    ),
}  # fmt: skip
# The files that read or write what bags hold.
READ_BAGS = {
    Path('offline') / name
    for name in ('bag_writer.py', 'joint_decoder.py', 'label_sources.py', 'storage.py')
}
BLOCKED = (
    'rclpy', 'sensor_msgs', 'std_msgs', 'std_srvs', 'diagnostic_msgs', 'rosbags', 'matplotlib',
    'scipy', 'optax', 'tqdm', 'h5py', 'lz4', 'torch', 'safetensors.torch',
)  # fmt: skip


def imported(path):
    """List (module, is inside of a function) of every import of a file, by whatever means."""
    found = []

    def walk(node, inside):
        if isinstance(node, ast.Import):
            found.extend((alias.name, inside) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f'{path}:{node.lineno} imports relatively'
            found.append((node.module, inside))
            # "from seqmem_ros import nn" names a part as well.
            found.extend((f'{node.module}.{alias.name}', inside) for alias in node.names)
        if isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, 'attr', getattr(node.func, 'id', ''))
            first = node.args[0]
            if name in ('import_module', '__import__') and isinstance(first, ast.Constant):
                found.append((first.value, inside))
        inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            walk(child, inside)

    walk(ast.parse(path.read_text()), False)
    return found


def part_of(path):
    relative = path.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else ''


def test_every_file_belongs_to_a_part():
    assert {part_of(path) for path in FILES} - {''} == set(PARTS)


@pytest.mark.parametrize('part', PARTS)
def test_a_part_imports_what_it_may(part):
    parts, packages = PARTS[part]
    offences = []
    for path in FILES:
        if part_of(path) != part:
            continue
        for module, inside in imported(path):
            root, _, rest = module.partition('.')
            if root == 'seqmem_ros':
                used = rest.partition('.')[0]
                good = used in parts or used not in PARTS or (part == 'cli' and inside)
            else:
                good = root in packages or root in sys.stdlib_module_names
                good = good or (part == 'ros' and root.endswith('_msgs'))
                good = good or (root == 'rosbags' and path.relative_to(ROOT) in READ_BAGS)
                # Large, and needed for one kind of file alone.
                converts = path.parent == ROOT / 'offline' / 'convert'
                good = good or (root == 'torch' and inside and converts)
            if not good:
                offences.append(f'{path.relative_to(ROOT)}: {module}')
    assert offences == []


def test_the_package_itself_imports_nothing():
    assert imported(ROOT / '__init__.py') == []


def test_the_walk_sees_every_way_to_import(tmp_path):
    path = tmp_path / 'm.py'
    path.write_text(
        'import a.b, c\n'
        'from d.e import f\n'
        'class K:\n'
        '    def m(self):\n'
        '        import g\n'
        'if c:\n'
        '    from importlib import import_module\n'
        "    import_module('h.i')\n"
        "x = lambda: __import__('j')\n"
    )
    assert imported(path) == [
        ('a.b', False), ('c', False), ('d.e', False), ('d.e.f', False), ('g', True),
        ('importlib', False), ('importlib.import_module', False), ('h.i', False), ('j', True),
    ]  # fmt: skip


_BLOCK = f"""
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name in {BLOCKED} or name.partition('.')[0] in {BLOCKED}:
            raise ModuleNotFoundError(f'{{name}} is blocked', name=name)
sys.meta_path.insert(0, Block())
"""


def run_blocked(code):
    """Run code in a fresh process where everything optional is missing."""
    return subprocess.run(
        [sys.executable, '-c', _BLOCK + code], capture_output=True, text=True, check=False
    )


def test_nn_and_core_work_where_everything_optional_is_missing():
    modules = [
        '.'.join(['seqmem_ros', *path.relative_to(ROOT).with_suffix('').parts])
        for path in FILES
        if part_of(path) in ('nn', 'core')
    ]
    done = run_blocked(
        f"""
from importlib import import_module
for name in {modules}:
    import_module(name.removesuffix('.__init__'))
import numpy as np
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.stream import Stream
for model in ('gru', 'kalman'):
    stream = Stream(load_estimator(model))
    for i in range(6):
        sample = JointSample(10**9 + i * 10**7, ('joint',), np.array([0.1 * i]))
        estimate = stream.push(sample)
    print(model, round(float(estimate.velocity[0]), 1))
"""
    )
    assert (done.returncode, done.stderr) == (0, '')
    lines = done.stdout.split()
    assert lines[::2] == ['gru', 'kalman']
    # Ten radians a second, from six samples only.
    assert [float(value) for value in lines[1::2]] == pytest.approx([10.0, 10.0], abs=1.0)


def test_help_works_where_everything_optional_is_missing():
    done = run_blocked(
        """
from seqmem_ros.cli.main import COMMANDS, main
for arguments in ([], *([command] for command in COMMANDS)):
    assert main([*arguments, '--help']) == 0, arguments
assert not [name for name in sys.modules if name.startswith('seqmem_ros.ros')]
"""
    )
    assert (done.returncode, done.stderr) == (0, '')
    assert 'usage: seqmem ' in done.stdout
    assert 'usage: seqmem evaluate' in done.stdout


@pytest.mark.parametrize('package', ['rclpy', 'scipy', 'optax'])
def test_the_block_blocks(package):
    done = run_blocked(f'import {package}')
    assert done.returncode == 1
    assert f'{package} is blocked' in done.stderr
