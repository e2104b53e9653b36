#!/usr/bin/env python3
"""Draws what a command prints on a terminal as an SVG, for the README.

    script -qec "nodeproof demo" /dev/null 2>/dev/null | python3 docs/picture.py "nodeproof demo" > docs/demo.svg

Reads from standard input; of the demo, shows the comparison, its third numbered section.
Knows bold and faint text, and nothing else.
"""

import html
import re
import sys

WIDTH, LINE, SIZE, LEFT, TOP = 700, 20, 14, 20, 62
STYLES = {"0": "", "1": ' font-weight="bold" fill="#ffffff"', "2": ' fill="#8b949e"'}


def part(text):
    """The lines to show, progress bars and what they overwrite left out."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    plain = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line).split("\r")[-1] for line in lines]
    headings = [i for i, line in enumerate(plain) if re.match(r"\d  [A-Z]", line)] + [len(plain)]
    first, last = headings[2:4] if len(headings) > 3 else (0, len(plain))
    return "\n".join(lines[first:last]).strip("\n").split("\n")


def spans(line):
    """One `<tspan>` for each stretch of a line in one style."""
    style, result = "", []
    for piece in re.split(r"(\x1b\[[0-9;?]*[a-zA-Z])", line):
        if piece.startswith("\x1b"):
            style = STYLES.get(piece[2:-1], style) if piece.endswith("m") else style
        elif piece:
            # Browsers fold plain spaces.
            piece = html.escape(piece).replace(" ", "\u00a0")
            result.append(f"<tspan{style}>{piece}</tspan>")
    return "".join(result)


def main():
    title = sys.argv[1] if len(sys.argv) > 1 else ""
    lines = part(sys.stdin.read())
    height = TOP + LINE * len(lines) + 6
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">')
    print(f"<title>{html.escape(title)}</title>")
    print(f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#161b22"/>')
    for i, colour in enumerate(["#ff5f57", "#febc2e", "#28c840"]):
        print(f'<circle cx="{LEFT + 6 + 20 * i}" cy="20" r="6" fill="{colour}"/>')
    style = f'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="{SIZE}" fill="#e6edf3"'
    print(f'<g {style}>')
    print(f'<text x="{WIDTH // 2}" y="25" text-anchor="middle" fill="#8b949e">{html.escape(title)}</text>')
    for i, line in enumerate(lines):
        if line:
            print(f'<text x="{LEFT}" y="{TOP + LINE * i}">{spans(line)}</text>')
    print("</g>\n</svg>")


if __name__ == "__main__":
    main()
