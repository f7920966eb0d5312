"""What is installed and shipped: consistent, complete, small."""

from dataclasses import asdict
import os
from pathlib import Path
import xml.etree.ElementTree as ElementTree

import pytest

import seqmem_ros
from seqmem_ros.core.estimators import SHIPPED
from seqmem_ros.core.weights import load_model
from seqmem_ros.offline.shipped import SHIPPED as TRAINED

ROOT = Path(__file__).parents[1]
MOST_BYTES = 300_000


@pytest.fixture(scope='module')
def manifest():
    return ElementTree.parse(ROOT / 'package.xml').getroot()


def test_the_version_is_the_same_everywhere(manifest):
    version = seqmem_ros.__version__
    assert manifest.findtext('version') == version
    headings = [
        line for line in (ROOT / 'CHANGELOG.rst').read_text().splitlines() if line[:1].isdigit()
    ]
    assert headings[0].startswith(f'{version} (')


def test_the_manifest_is_one_of_an_ament_python_package(manifest):
    assert manifest.get('format') == '3'
    assert manifest.findtext('name') == 'seqmem_ros'
    assert manifest.findtext('export/build_type') == 'ament_python'
    needed = {element.text for element in manifest.findall('exec_depend')}
    assert needed >= {
        'rclpy', 'sensor_msgs', 'std_msgs', 'std_srvs', 'diagnostic_msgs', 'launch',
        'launch_ros', 'python3-numpy',
    }  # fmt: skip
    tested = {element.text for element in manifest.findall('test_depend')}
    assert tested >= {'launch_testing', 'launch_testing_ros', 'python3-pytest'}
    assert (ROOT / 'resource' / 'seqmem_ros').read_text() == ''


@pytest.mark.parametrize('script', ['run', '.ci/run'])
def test_scripts_can_be_run(script):
    assert os.access(ROOT / script, os.X_OK)


@pytest.mark.parametrize('name', list(SHIPPED))
def test_shipped_weights_are_small_and_say_how_they_were_made(name):
    path = SHIPPED[name]
    assert path.stat().st_size < MOST_BYTES
    spec = load_model(path).spec
    assert spec.joints == ()
    assert spec.nominal_rate_hz == (50.0, 1000.0)
    training, scores = spec.card['training'], spec.card['scores']
    assert training['data'] == 'simulated'
    assert training.items() >= asdict(TRAINED[path.stem]).items()
    if spec.task == 'velocity':
        assert scores['model'] < scores['kalman_tuned_on_each_recording'] < scores['kalman']
    else:
        assert scores['macro_f1'] > 0.8


@pytest.mark.parametrize('path', sorted(ROOT.glob('seqmem_ros/data/*')), ids=lambda p: p.name)
def test_shipped_data_have_their_licence_beside_them(path):
    assert (path / 'LICENSE').is_file()
    assert 'Source:' in (path / 'README.md').read_text()
