"""What the threads of a run take of the processor a step, by their names (Linux)."""

import collections
import os
import pathlib

import measure

LOOK_S = 0.2
COMPUTES = "motley-compute"
TICKS = os.sysconf("SC_CLK_TCK")


def threads_of(process):
    """Seconds of the processor by name of thread, of a process and its children."""
    seconds = collections.Counter()
    for task in pathlib.Path(f"/proc/{process}/task").glob("*"):
        try:
            name, fields = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            children = (task / "children").read_text().split()
        except OSError:
            continue  # it has ended
        user, system = fields.split()[11:13]
        seconds[name] += (int(user) + int(system)) / TICKS
        for child in children:
            seconds += threads_of(child)
    return seconds


class Watch(measure.Looking):
    """From the step `first` of a run to its end, as far as it was seen. processes: by host; output: of the head with --json."""

    def __init__(self, processes, output, first):
        super().__init__(LOOK_S)
        self.processes, self.output, self.first = processes, output, first
        self.looks = []

    def look(self):
        steps = pathlib.Path(self.output).read_text().count('"event":"step"')
        if steps < self.first or self.looks and steps == self.looks[-1][0]:
            return
        look = {host: threads_of(process) for host, process in self.processes.items()}
        if all(seconds[COMPUTES] for seconds in look.values()):
            self.looks[1:] = [(steps, look)]

    def a_step(self):
        """By host: seconds of the processor a step, by name of thread, and the part that is not computing; empty if too little was seen."""
        if len(self.looks) < 2:
            return {}
        (before, early), (after, late) = self.looks
        found = {}
        for host, seconds in late.items():
            each = {name: (total - early[host][name]) / (after - before) for name, total in seconds.items()}
            whole = sum(each.values())
            found[host] = {"not_computing": round(1 - each[COMPUTES] / whole, 4),
                           **{name: round(value, 4) for name, value in sorted(each.items()) if value >= 5e-5}}
        return found
