"""
Bring docs/memory.md up to date with the shipped weights: ``python docs/refresh_memory.py``.

Every block of the page that ``seqmem inspect gru`` or ``seqmem inspect attention`` prints is
replaced by what it prints now, and the two pictures are drawn anew. The sentences between the
blocks are not: read them again when numbers have changed.
"""

from collections.abc import Iterator
import contextlib
import io
from pathlib import Path
import re

from PIL import Image

from seqmem_ros.cli.main import main as seqmem
from seqmem_ros.core.estimators import SHIPPED

PAGE = Path(__file__).parent / 'memory.md'
IMAGES = Path(__file__).parent / 'images'
SHOWN = ('gru', 'attention')
# Printed by both models: the page shows these of the attention.
OF_ATTENTION = ('attention reaches', 'size of the output')
_BLOCK = re.compile(r'^    .*\n(?:    .*\n|\n(?=    ))*', re.MULTILINE)


def printed(model: str, *options: str) -> str:
    """Run ``seqmem inspect``; paths as they are below the project."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if seqmem(['inspect', model, *options]):
            raise SystemExit(1)
    folder = SHIPPED[model].parents[2]
    return out.getvalue().replace(f'{folder}/', '')


def paragraphs(text: str) -> Iterator[str]:
    """Cut an output where lines are empty."""
    return iter(text.strip().split('\n\n'))


def kind(paragraph: str) -> str:
    """Tell the views of one layer apart, which begin with its name."""
    line = re.sub(r'layers\.\d+ \(\w+\)', 'layer', paragraph.splitlines()[0])
    return ' '.join(line.split()[:2])


def refreshed(page: str, outputs: dict[str, str]) -> str:
    """Replace every block of the page that is an output."""
    known = {kind(p): p for p in paragraphs(outputs['gru'])}
    of_attention = {kind(p): p for p in paragraphs(outputs['attention'])}
    known.update({k: p for k, p in of_attention.items() if p.startswith(OF_ATTENTION)})

    def replace(found: re.Match) -> str:
        old = '\n'.join(line[4:] for line in found[0].strip('\n').split('\n'))
        new = [known.get(kind(p), p) for p in paragraphs(old)]
        lines = '\n\n'.join(new).split('\n')
        return ''.join(f'    {line}\n' if line else '\n' for line in lines)

    return _BLOCK.sub(replace, page)


def main() -> None:
    outputs = {}
    for name in SHOWN:
        picture = IMAGES / f'inspect_{name}.png'
        outputs[name] = printed(name, '--plot', str(picture))
        # A third of the size, and to the eye the same.
        Image.open(picture).quantize(64).save(picture, optimize=True)
    PAGE.write_text(refreshed(PAGE.read_text(), outputs))


if __name__ == '__main__':
    main()
