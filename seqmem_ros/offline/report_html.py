"""One page about an evaluation, with its pictures inside: a file to send to a colleague."""

from base64 import b64encode
from collections.abc import Mapping
from collections.abc import Sequence
from html import escape

import seqmem_ros
from seqmem_ros.offline.batch_report import BagReport
from seqmem_ros.offline.figures import Picture
from seqmem_ros.offline.figures import slug

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.3rem; margin-top: 3rem;
     border-top: 2px solid #1a1a1a; padding-top: .6rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
pre { font: 13px/1.45 ui-monospace, Menlo, Consolas, monospace; background: #f5f5f3;
      padding: .8rem 1rem; overflow-x: auto; border-radius: 4px;
      white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 60rem) { pre { white-space: pre; overflow-wrap: normal; } }
img { max-width: 100%; height: auto; display: block; }
details { margin: .5rem 0; } summary { cursor: pointer; font-weight: 600; }
nav a { margin-right: 1rem; } .small { color: #555; font-size: .9rem; }
@media print { details > img { display: block; } h2 { break-before: page; } }
"""

_READING = """
<p>The positions of each recording were degraded as stated under <em>input</em>; every estimator
saw the same messages. The <em>reference</em> is a zero-phase derivative of the clean
recording, not its recorded velocity: the line <em>truth check</em> says what that is.</p>
<p><strong>RMSE</strong>: root mean square of estimate minus reference. <strong>lag</strong>: the
delay at which the estimate fits the reference best. <strong>RMSE at lag</strong>: the error that
is left if that delay is allowed for. <strong>99 %</strong>: the size that one error in a hundred
exceeds. <strong>standstill</strong>: the error where the joint rests. Totals are over the joints
that move.</p>
"""


def make_page(
    reports: Sequence[BagReport],
    overall: str,
    command: str,
    failed: Mapping[str, str] | None = None,
) -> str:
    """
    Write the page.

    :param reports: of each bag
    :param overall: table over all bags, empty if there is one bag
    :param command: how it was called
    :param failed: why other bags could not be evaluated, by name
    :returns: HTML that needs no other file and no network
    """
    title = 'Evaluation of ' + ', '.join(report.name for report in reports[:3])
    title += f' and {len(reports) - 3} more' if len(reports) > 3 else ''
    body = [f'<h1>{escape(title)}</h1>', _READING]
    if len(reports) > 1:
        links = ''.join(
            f'<a href="#{slug(report.name)}">{escape(report.name)}</a>' for report in reports
        )
        body += [f'<nav>{links}</nav>', '<h2>All bags</h2>', f'<pre>{escape(overall)}</pre>']
    body += [
        f'<p><strong>{escape(name)} could not be evaluated:</strong> {escape(why)}</p>'
        for name, why in (failed or {}).items()
    ]
    body += [_section(report) for report in reports]
    body.append(
        f'<p class="small">Made by seqmem_ros {seqmem_ros.__version__}: '
        f'<code>{escape(command)}</code></p>'
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n'
        + '\n'.join(body)
        + '\n</body></html>\n'
    )


def _section(report: BagReport) -> str:
    parts = [
        f'<h2 id="{slug(report.name)}">{escape(report.name)}</h2>',
        f'<pre>{escape(report.text)}</pre>',
    ]
    parts += [_figure(picture) for picture in report.pictures]
    return '\n'.join(parts)


def _figure(picture: Picture) -> str:
    data = b64encode(picture.png).decode()
    title = escape(picture.title)
    image = f'<img alt="{title}" loading="lazy" src="data:image/png;base64,{data}">'
    if picture.detail:
        return f'<details><summary>{title}</summary>{image}</details>'
    return f'<h3>{title}</h3>{image}'
