#!/usr/bin/env python3
"""Draws what rounds_quality.py found: loss over samples, and over time where the link is so slow that exact steps are best made by one
machine alone and rounds keep all of them at work nine tenths of the time.

  bench/rounds_quality.py >found.json
  bench/rounds_picture.py found.json docs/pictures/rounds.svg
"""

import json
import pathlib
import sys

COMPUTING = 0.9  # of the time in rounds; bench/RESULTS.md, 100 Mbit/s
LINES = {"exact": ("#222222", ""), "two workers": ("#1f6fb2", ""), "four workers": ("#c2571a", ""),
         "four workers, int4": ("#1a1a1a", "1 5")}
WIDTH, HEIGHT, LEFT, TOP, GAP = 330, 230, 52, 30, 70
LOW, HIGH, STEP = 1.0, 2.4, 0.2
WINDOW = 128


def place(panel, x, loss):
    return LEFT + panel * (WIDTH + GAP) + x * WIDTH, TOP + (HIGH - min(loss, HIGH)) / (HIGH - LOW) * HEIGHT


def panel_of(number, title, axis, ticks, curves):
    x0, x1 = LEFT + number * (WIDTH + GAP), LEFT + number * (WIDTH + GAP) + WIDTH
    parts = [f'<text x="{x0}" y="{TOP - 12}" font-weight="bold">{title}</text>',
             f'<text x="{(x0 + x1) / 2}" y="{TOP + HEIGHT + 36}" text-anchor="middle">{axis}</text>']
    for i in range(round((HIGH - LOW) / STEP) + 1):
        loss = LOW + i * STEP
        y = place(number, 0, loss)[1]
        parts.append(f'<line x1="{x0}" y1="{y:.1f}" x2="{x1}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end">{loss:.1f}</text>')
    for x, text in ticks:
        parts.append(f'<text x="{x0 + x * WIDTH:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{text}</text>')
    for name, points in curves.items():
        color, dashes = LINES[name]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in (place(number, x, loss) for x, loss in points))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2" stroke-dasharray="{dashes}"/>')
    return parts


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    found = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
    means, speeds = {}, {}
    for way in found:
        if way.get("way") in LINES:
            name, count = way["way"], len(way["shares"])
            means[name] = [(points[0][0], sum(loss for _, loss in points) / len(points)) for points in zip(*way["curves"], strict=True)]
            speeds[name], batch = (1.0 if count == 1 else COMPUTING * count), sum(way["shares"])
    last = means["exact"][-1][0]
    tokens = last * batch * WINDOW / 1e6
    samples = {name: [(step / last, loss) for step, loss in points] for name, points in means.items()}
    time = {name: [(step / last / speeds[name], loss) for step, loss in points] for name, points in means.items()}
    ticks = [(i / 4, f"{tokens * i / 4:.1f}") for i in range(5)]
    parts = panel_of(0, "Over samples", "million bytes of text", ticks, samples)
    ticks = [(i / 4, f"{i / 4:.2f}") for i in range(5)]
    parts += panel_of(1, "Over time, on a slow link", "time, of what one machine takes for all of it alone", ticks, time)
    names = {"exact": "exact steps (right: of one machine)", "two workers": "rounds, two machines", "four workers": "rounds, four machines",
             "four workers, int4": "the same in int4"}
    for i, (name, (color, dashes)) in enumerate(LINES.items()):
        x, y = LEFT + WIDTH - 210, TOP + 18 + 18 * i
        stroke = f'stroke="{color}" stroke-width="2" stroke-dasharray="{dashes}"'
        parts.append(f'<line x1="{x}" y1="{y - 4}" x2="{x + 24}" y2="{y - 4}" {stroke}/>')
        parts.append(f'<text x="{x + 30}" y="{y}">{names[name]}</text>')
    whole = LEFT + 2 * WIDTH + GAP + 20
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{TOP + HEIGHT + 48}" font-family="sans-serif" font-size="11">',
           '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]
    pathlib.Path(sys.argv[2]).write_text("\n".join(svg) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
