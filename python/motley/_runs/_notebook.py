"""The course of a run as a table, where the script is a notebook."""

import html
import time
from typing import Any

from motley._runs._epoch import Epoch, Step

STEPS_EVERY_S = 0.5  # no browser need draw each of them


def table() -> "Table | None":
    """None outside of notebooks."""
    try:
        from IPython import get_ipython
        from IPython.display import HTML, display
    except ImportError:
        return None
    if get_ipython() is None or not hasattr(get_ipython(), "kernel"):
        return None
    return Table(lambda text: display(HTML(text), display_id=True), HTML)


class Table:
    """A row for each epoch, and one for the newest step of the epoch that is under way; drawn in one place. `show(html)` gives a handle
    with update(content), whose content `wrap` makes of HTML."""

    def __init__(self, show: Any, wrap: Any):
        self._show, self._wrap = show, wrap
        self._rows: list[dict[str, str]] = []
        self._handle: Any = None
        self._drawn = 0.0

    def on_step(self, step: Step) -> None:
        if time.monotonic() - self._drawn >= STEPS_EVERY_S:
            self._draw({"epoch": f"{step.epoch} …", "step": str(step.number), "loss": f"{step.loss:.5g}",
                        "learning rate": f"{step.learning_rate:.3g}", "samples/s": f"{step.samples / step.seconds:.0f}"})

    def on_epoch(self, epoch: Epoch) -> None:
        tested = {} if epoch.test_loss is None else {"test loss": f"{epoch.test_loss:.5g}"}
        self._rows.append({"epoch": str(epoch.number), "step": str(epoch.step), "loss": f"{epoch.loss:.5g}",
                           "learning rate": f"{epoch.learning_rate:.3g}", "samples/s": f"{epoch.samples / epoch.seconds:.0f}", **tested,
                           **{name: f"{value:.5g}" for name, value in epoch.scores.items()}})
        self._draw(None)

    def _draw(self, under_way: dict[str, str] | None) -> None:
        rows = self._rows + ([under_way] if under_way else [])
        names = list(dict.fromkeys(name for row in rows for name in row))
        lines = [[f"<th>{html.escape(name)}</th>" for name in names]]
        lines += [[f"<td>{html.escape(row.get(name, ''))}</td>" for name in names] for row in rows]
        text = "<table>" + "".join(f"<tr>{''.join(line)}</tr>" for line in lines) + "</table>"
        self._drawn = time.monotonic()
        if self._handle is None:
            self._handle = self._show(text)
        else:
            self._handle.update(self._wrap(text))
