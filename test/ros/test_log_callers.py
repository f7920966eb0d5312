"""The log and the disk."""

import inspect

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from rclpy.logging import get_logger

from seqmem_ros.ros import lifecycle
from seqmem_ros.ros.log_callers import know_callers


def log_from(path):
    code = compile("logger.info('a line')", path, 'exec')
    return eval(code, {'logger': get_logger('log_callers')})


def test_a_line_of_the_log_asks_the_disk_for_no_other_module(monkeypatch, capfd):
    asked = []
    look_up = inspect.getabsfile
    monkeypatch.setattr(inspect, 'modulesbyfile', {})
    monkeypatch.setattr(inspect, '_filesbymodname', {})
    monkeypatch.setattr(inspect, 'getabsfile', lambda *a: asked.append(a) or look_up(*a))
    know_callers()
    log_from(lifecycle.__file__)
    assert asked == []
    # From anywhere else it is as slow as before, and as right.
    log_from(__file__)
    assert len(asked) > 100
    assert capfd.readouterr().err.count('a line') == 2


def test_without_what_inspect_knows_the_line_is_written_all_the_same(monkeypatch, capfd):
    monkeypatch.delattr(inspect, 'modulesbyfile')
    know_callers()
    monkeypatch.undo()
    log_from(lifecycle.__file__)
    assert 'a line' in capfd.readouterr().err
