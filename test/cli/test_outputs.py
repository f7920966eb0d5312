"""Whether files can be written is found out before the work."""

import os

import pytest

from seqmem_ros.cli.outputs import check_files
from seqmem_ros.cli.outputs import check_picture
from seqmem_ros.cli.outputs import keep_inputs
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
def test_files_that_cannot_be_written_are_refused(tmp_path, path, text):
    (tmp_path / 'folder.png').mkdir()
    with pytest.raises(SeqmemError) as refused:
        check_files({'--it': path.format(tmp=tmp_path)})
    assert text.format(tmp=tmp_path) in str(refused.value)


def test_what_is_read_is_not_written_over(tmp_path):
    bag, weights, link = tmp_path / 'bag', tmp_path / 'w.safetensors', tmp_path / 'link.json'
    bag.mkdir()
    (bag / 'bag.mcap').touch()
    weights.touch()
    link.symlink_to(bag / 'bag.mcap')
    inputs = [str(bag), str(weights), 'gru', None]
    for path in (weights, bag / 'bag.mcap', link, tmp_path / 'bag' / '..' / 'w.safetensors'):
        with pytest.raises(SeqmemError, match='--it: expected another place than what is read'):
            check_files({'--it': str(path)}, inputs)
    check_files({'--it': str(bag / 'scores.json')}, inputs)
    with pytest.raises(SeqmemError, match='--out: expected another place than what is read'):
        keep_inputs({'--out': str(bag)}, inputs)
    keep_inputs({'--out': str(bag / 'report'), '--none': None}, inputs)


def test_two_outputs_are_two_files(tmp_path):
    both = {'--out': str(tmp_path / 'a'), '--json': str(tmp_path / 'x' / '..' / 'a')}
    (tmp_path / 'x').mkdir()
    with pytest.raises(SeqmemError, match='--json: expected another file than that of --out, got'):
        check_files(both)
    check_files({'--out': '/dev/null', '--json': '/dev/null'})


def test_a_link_is_kept_and_leads_to_no_new_file(tmp_path):
    link = tmp_path / 'link.json'
    link.symlink_to(tmp_path / 'not_there.json')
    check_files({'--json': str(link)})
    assert link.is_symlink() and not (tmp_path / 'not_there.json').exists()


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
