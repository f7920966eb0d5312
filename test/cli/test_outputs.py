"""Whether files can be written is found out before the work."""

import os

import pytest

from seqmem_ros.cli.outputs import check_files
from seqmem_ros.cli.outputs import check_picture
from seqmem_ros.cli.outputs import made_folder
from seqmem_ros.core.errors import SeqmemError


def test_files_that_can_be_written_are_left_as_they_are(tmp_path):
    old, new = tmp_path / 'old.json', tmp_path / 'new.json'
    old.write_text('kept')
    os.mkfifo(tmp_path / 'pipe')
    check_files({'--a': str(old), '--b': str(new), '--c': '-', '--d': None, '--e': ''})
    # It would wait for a reader.
    check_files({'--pipe': str(tmp_path / 'pipe'), '--null': '/dev/null'})
    assert old.read_text() == 'kept' and not new.exists()


@pytest.mark.parametrize(
    ('path', 'text'),
    [
        ('/no/such/x.png', '--it: no such folder: /no/such'),
        ('/proc/x.png', '--it: expected a file that can be written, got /proc/x.png: No such'),
        ('{tmp}/folder.png', '--it: expected a file to write, got the folder {tmp}/folder.png'),
        ('{tmp}/' + 300 * 'x' + '.png', '.png: File name too long'),
    ],
)
@pytest.mark.parametrize('check', [lambda path: check_files({'--it': path}), None])
def test_files_that_cannot_be_written_are_refused(tmp_path, path, text, check):
    (tmp_path / 'folder.png').mkdir()
    check = check or (lambda path: check_picture('--it', path))
    with pytest.raises(SeqmemError) as refused:
        check(path.format(tmp=tmp_path))
    assert text.format(tmp=tmp_path) in str(refused.value)


def test_pictures_are_of_three_kinds(tmp_path):
    for suffix in ('png', 'svg', 'pdf', 'PNG'):
        check_picture('--plot', str(tmp_path / f'x.{suffix}'))
    check_picture('--plot', None)
    with pytest.raises(SeqmemError, match=r'--plot: expected a .png, .svg, .pdf file, got x.txt'):
        check_picture('--plot', 'x.txt')


def test_a_folder_is_made_and_left_empty(tmp_path):
    folder = made_folder('--out', tmp_path / 'a' / 'b')
    assert folder == tmp_path / 'a' / 'b' and list(folder.iterdir()) == []
    (folder / 'kept').touch()
    assert made_folder('--out', str(folder)) == folder and (folder / 'kept').exists()


@pytest.mark.parametrize('path', ['/dev/null/x', '/proc', '/proc/x'])
def test_a_folder_that_nothing_can_be_written_to_is_refused(path):
    with pytest.raises(SeqmemError) as refused:
        made_folder('--out', path)
    said = f'--out: expected a folder that can be made and written to, got {path}: '
    assert str(refused.value).startswith(said)
