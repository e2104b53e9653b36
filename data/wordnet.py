#!/usr/bin/env python3
"""Makes the bundled graph from WordNet 3.0.

node = synset, edge = pointer between two synsets, attribute = word of a definition, class = lexicographer file.

The bundled graph is the part of the nouns that hangs together best. Synsets of six classes, proper names left out, are
dropped until those that are left are connected, each has two neighbours and four words or more, and each word is
used by three or more. The synsets of all parts of speech make the full graph, whole as it is.
"""

import argparse
import io
import re
import struct
import sys
import zipfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = """\
examples:
  python3 data/wordnet.py                           write data/wordnet.npz anew
  python3 data/wordnet.py --check                   compare it with what WordNet gives
  python3 data/wordnet.py --full --out full.npz     all of WordNet: 117,659 synsets, 45 classes
"""
REMEDY = "install WordNet 3.0 (on Debian and Ubuntu: apt-get install wordnet-base), or give its folder"

BUNDLED = Path(__file__).parent / "wordnet.npz"
CLASSES = ["animal", "artifact", "body", "food", "plant", "substance"]
LEAST_NEIGHBOURS = 2
LEAST_WORDS = 4
LEAST_USES = 3

PARTS_OF_SPEECH = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
# Lexicographer files in the order of their numbers, lexnames(5WN).
FILES = """
    adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition
    noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person
    noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state
    noun.substance noun.time verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption
    verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative
    verb.weather adj.ppl
""".split()
PLURALS = [("s", ""), ("ches", "ch"), ("shes", "sh"), ("sses", "ss"), ("xes", "x"), ("ies", "y"), ("ves", "f")]
NO_PLURALS = ("is", "ss", "us")
STOP_WORDS = set("""
    about above according across after against all along also although always among an and another any are around as
    at based be because been before being below between both but by called can characterised characterized chiefly
    commonly consisting containing could did do does done during each eg either especially etc even ever every few for
    found from generally given had has have having he her him his how however ie if in including into is it its itself
    just kind least less like made mainly make makes making many may means more most mostly much must nearly no nor
    not now of off often on one only or other others our out over own particular people per place probably quite
    rather relating resembling same see several she should similar small so some someone something sometimes such than
    that the their them then there these they this those three through to too toward towards two type under until up
    upon us use used uses using usually various very was we well were what when where whether which while who whom
    whose will with within without would you your
""".split())


@dataclass
class Synset:
    """A set of words with one meaning."""

    file: str
    lemmas: list[str]
    pointers: list[tuple[str, str]]
    definition: list[str]

    def hypernym(self):
        """The synset that this one is a kind of, if it names one."""
        return next((target for kind, target in self.pointers if kind == "@"), None)

    def is_proper_name(self):
        """Whether it is an instance, or spelt with a capital, or a genus."""
        instance = any(kind == "@i" for kind, _ in self.pointers)
        return instance or self.lemmas[0] != self.lemmas[0].lower() or self.lemmas[0].startswith("genus ")


def read_synsets(folder, letters):
    """All synsets of some parts of speech by their ids, such as n02121620 (format: wndb(5WN))."""
    synsets = {}
    for letter in letters:
        with open(folder / f"data.{PARTS_OF_SPEECH[letter]}", encoding="utf-8") as lines:
            for line in lines:
                if not line.startswith("  "):  # the licence
                    data, _, gloss = line.partition(" | ")
                    fields = data.split()
                    synsets[letter + fields[0]] = parse_synset(fields, gloss)
    return synsets


def parse_synset(fields, gloss):
    """A synset from the fields of its line: offset, file, type, count, lemmas, count, pointers."""
    first_pointer = 4 + 2 * int(fields[3], 16)
    lemmas = [re.sub(r"\(.*\)$", "", lemma).replace("_", " ") for lemma in fields[4:first_pointer:2]]
    pointers = fields[first_pointer + 1 :]
    count = int(fields[first_pointer])
    pointers = [(pointers[4 * i], pointers[4 * i + 2] + pointers[4 * i + 1]) for i in range(count)]
    definition = re.sub(r'"[^"]*"?', " ", gloss.lower())  # what is quoted is an example
    return Synset(FILES[int(fields[1])], lemmas, pointers, re.findall(r"[^\W\d_]{2,}", definition))


def words_of(synsets):
    """The words of each synset's definition: no stop words, plurals as singulars where those are in use."""
    uses = Counter(word for synset in synsets.values() for word in set(synset.definition))

    def singular(word):
        stems = [word.removesuffix(plural) + ending for plural, ending in PLURALS if word.endswith(plural)]
        stems = [stem for stem in stems if uses[stem] >= LEAST_USES and stem not in STOP_WORDS]
        return word if word.endswith(NO_PLURALS) else max(stems, key=uses.get, default=word)

    return {id: {singular(w) for w in synset.definition if w not in STOP_WORDS} for id, synset in synsets.items()}


def neighbours_of(synsets):
    """The neighbours of each synset: pointers in both directions, none to itself."""
    neighbours = defaultdict(set)
    for id, synset in synsets.items():
        for _, target in synset.pointers:
            if target in synsets and target != id:
                neighbours[id].add(target)
                neighbours[target].add(id)
    return neighbours


def vocabulary_of(words, ids):
    """The words that are used often enough."""
    uses = Counter(word for id in ids for word in words[id])
    return {word for word, count in uses.items() if count >= LEAST_USES}


def best_connected(ids, neighbours, words):
    """What is left of `ids` as the head of this file says."""
    kept = set(ids)
    while True:
        vocabulary = vocabulary_of(words, kept)
        fewer = {
            id
            for id in kept
            if len(neighbours[id] & kept) >= LEAST_NEIGHBOURS and len(words[id] & vocabulary) >= LEAST_WORDS
        }
        if fewer == kept:
            fewer = largest_component(kept, neighbours)
        if fewer == kept:
            return kept
        kept = fewer


def largest_component(ids, neighbours):
    """The largest connected subset of `ids`, the first of several."""
    left, largest = set(ids), set()
    for start in sorted(ids):
        if start in left:
            left.remove(start)
            component, stack = {start}, [start]
            while stack:
                reached = neighbours[stack.pop()] & left
                left -= reached
                component |= reached
                stack.extend(reached)
            largest = max(largest, component, key=len)
    return largest


def ways_to_name(synset, synsets):
    """`pea`, `pea (plant)`, `pea (legume)`, `pea (pea plant)`: alone, with class, hypernym or next lemma."""
    lemma, above = synset.lemmas[0], synset.hypernym()
    return [
        lemma,
        f"{lemma} ({synset.file.split('.')[1]})",
        f"{lemma} ({synsets[above].lemmas[0]})" if above else lemma,
        f"{lemma} ({synset.lemmas[1]})" if len(synset.lemmas) > 1 else lemma,
    ]


def names_of(ids, synsets):
    """A name of its own for each synset: the first way that sets it apart, or else a number, `pea 1`."""
    names, taken, numbers = {}, set(), Counter()
    for ways in zip(*(ways_to_name(synsets[id], synsets) for id in ids)):
        proposed = {id: name for id, name in zip(ids, ways) if id not in names}
        shared = Counter(proposed.values())
        names |= {id: name for id, name in proposed.items() if shared[name] == 1 and name not in taken}
        taken = set(names.values())
    for id in ids:
        lemma = synsets[id].lemmas[0]
        while id not in names:
            numbers[lemma] += 1
            if (name := f"{lemma} {numbers[lemma]}") not in taken:
                names[id] = name
    return [names[id] for id in ids]


def make(folder, full):
    """The bytes of the graph's file."""
    synsets = read_synsets(folder, PARTS_OF_SPEECH if full else "n")
    words, neighbours = words_of(synsets), neighbours_of(synsets)
    if full:
        ids, classes = sorted(synsets), FILES
    else:
        classes = [f"noun.{name}" for name in CLASSES]
        chosen = (id for id, synset in synsets.items() if synset.file in classes and not synset.is_proper_name())
        ids = sorted(best_connected(chosen, neighbours, words))
    vocabulary = sorted(vocabulary_of(words, ids))
    columns = {word: column for column, word in enumerate(vocabulary)}
    rows = {id: row for row, id in enumerate(ids)}
    adjacency = [sorted(rows[other] for other in neighbours[id] if other in rows) for id in ids]
    attributes = [sorted(columns[word] for word in words[id] if word in columns) for id in ids]
    return archive(
        {
            **compressed_rows("adj", adjacency, len(ids)),
            **compressed_rows("attr", attributes, len(vocabulary)),
            "labels": integers(classes.index(synsets[id].file) for id in ids),
            "node_names": strings(names_of(ids, synsets)),
            "attr_names": strings(vocabulary),
            "class_names": strings(FILES if full else CLASSES),
        }
    )


def compressed_rows(prefix, rows, width):
    """The members of a binary matrix in compressed row form, given the columns of each row's ones."""
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row))
    return {
        f"{prefix}_data": integers([1] * offsets[-1]),
        f"{prefix}_indices": integers(column for row in rows for column in row),
        f"{prefix}_indptr": integers(offsets),
        f"{prefix}_shape": integers([len(rows), width]),
    }


def integers(items):
    """An .npy array of integers, of the smallest type that holds them."""
    items = list(items)
    size, code = next((size, code) for size, code in [(1, "b"), (2, "h"), (4, "i")] if max(items) < 1 << 8 * size - 1)
    return npy(f"{'|' if size == 1 else '<'}i{size}", len(items), struct.pack(f"<{len(items)}{code}", *items))


def strings(items):
    """An .npy array of strings."""
    width = max(map(len, items))
    return npy(f"<U{width}", len(items), b"".join(item.ljust(width, "\0").encode("utf-32-le") for item in items))


def npy(descr, length, content):
    """A one-dimensional array in NumPy's format 1.0."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({length},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("ascii") + content


def archive(members):
    """An .npz file, the same bytes every time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in members.items():
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.create_system = 3
            member.external_attr = 0o644 << 16
            file.writestr(member, content, zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


def same_members(one, other):
    """Whether two archives hold the same, however it is packed."""
    with zipfile.ZipFile(io.BytesIO(one)) as one, zipfile.ZipFile(io.BytesIO(other)) as other:
        return one.namelist() == other.namelist() and all(one.read(name) == other.read(name) for name in one.namelist())


def check(content, path):
    """Compares the file with what it should be; the message, and the exit code."""
    if not path.is_file():
        return f"{path} is not there; make it with python3 data/wordnet.py", 1
    there = path.read_bytes()
    if there == content:
        return f"{path} is what WordNet gives, byte for byte", 0
    try:
        if same_members(there, content):
            return f"{path} holds the same arrays as WordNet gives but other bytes; versions of zlib may differ", 1
    except zipfile.BadZipFile:
        pass
    return f"{path} differs from what WordNet gives; make it anew with python3 data/wordnet.py", 1


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", nargs="?", type=Path, default="/usr/share/wordnet", help="where data.noun is (default: %(default)s)"
    )
    parser.add_argument("--full", action="store_true", help="all synsets of all parts of speech; needs --out")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write here instead of data/wordnet.npz")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if data/wordnet.npz differs")
    arguments = parser.parse_args()
    if arguments.check and (arguments.full or arguments.out):
        parser.error("--check looks at data/wordnet.npz; leave out --full and --out")
    if arguments.full and not arguments.out:
        parser.error("--full needs --out FILE; only the bundled graph is kept in data/")
    try:
        content = make(arguments.folder, arguments.full)
    except OSError as error:
        parser.error(f"cannot read {error.filename}: {error.strerror}; {REMEDY}")
    path = arguments.out or BUNDLED
    if arguments.check:
        message, code = check(content, path)
        print(message)
        sys.exit(code)
    try:
        path.write_bytes(content)
    except OSError as error:
        parser.error(f"cannot write {path}: {error.strerror}; choose a place where you may write")
    print(f"{path}: {len(content):,} bytes")


if __name__ == "__main__":
    main()
