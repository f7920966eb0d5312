"""Where compiled programs are kept, and that nothing depends on it."""

from pathlib import Path

from seqmem_ros.ros.program_cache import cache_folder
from seqmem_ros.ros.program_cache import keep_programs


def test_programs_are_kept_in_the_cache_of_the_user(tmp_path):
    environment = {'XDG_CACHE_HOME': str(tmp_path)}
    keep_programs(environment)
    folder = Path(environment['JAX_COMPILATION_CACHE_DIR'])
    assert folder == cache_folder({'XDG_CACHE_HOME': str(tmp_path)})
    assert folder.parent == tmp_path / 'seqmem_ros'
    assert folder.is_dir()
    assert environment['JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS'] == '0'


def test_what_is_set_stays(tmp_path):
    environment = {
        'JAX_COMPILATION_CACHE_DIR': 'elsewhere',
        'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '5',
        'XDG_CACHE_HOME': str(tmp_path),
    }
    keep_programs(environment)
    assert environment['JAX_COMPILATION_CACHE_DIR'] == 'elsewhere'
    assert environment['JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS'] == '5'
    assert not any(tmp_path.iterdir())


def test_without_a_place_there_is_no_cache(tmp_path):
    (tmp_path / 'file').write_text('')
    environment = {'XDG_CACHE_HOME': str(tmp_path / 'file')}
    keep_programs(environment)
    assert environment == {'XDG_CACHE_HOME': str(tmp_path / 'file')}
