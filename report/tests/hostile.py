"""Writes a graph whose names try to break out of whatever shows them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))
from wordnet import archive, compressed_rows, integers, strings  # noqa: E402

NODES, ATTRIBUTES, CLASSES = 24, 30, 3
NASTY = [
    "</script><script>window.broken = true</script>",
    "<img src=x onerror='window.broken = true'>",
    '"><svg onload="window.broken = true">',
    "__proto__",
    "constructor",
    "\u202eright to left\u2066 and no way back",
    "👩‍👩‍👧‍👦 &amp; &lt;b&gt; `${1}` \\u003c \u2028 '",
    "long " * 2000,
    "__NODEPROOF_DATA__",
    "=1+1",
]


def names(what, count):
    return strings([f"{NASTY[i % len(NASTY)]} {what} {i}" for i in range(count)])


def main():
    rows = [sorted({(node + 1) % NODES, (node - 1) % NODES, (node * 7 + 5) % NODES} - {node}) for node in range(NODES)]
    words = [sorted({(node * step + step) % ATTRIBUTES for step in range(1, 6)}) for node in range(NODES)]
    members = {
        **compressed_rows("adj", rows, NODES),
        **compressed_rows("attr", words, ATTRIBUTES),
        "labels": integers([node % CLASSES for node in range(NODES)]),
        "node_names": names("node", NODES),
        "attr_names": names("word", ATTRIBUTES),
        "class_names": names("class", CLASSES),
    }
    Path(sys.argv[1]).write_bytes(archive(members))


if __name__ == "__main__":
    main()
