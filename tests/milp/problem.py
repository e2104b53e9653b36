"""Graph, model and budget, read from the files that nodeproof reads."""

import dataclasses
import json
import struct
import sys

import numpy as np
import scipy.sparse


def read_graph(path, binarise, keep_self_loops):
    """Adjacency (symmetric, 0 or 1) and attributes (boolean), both in compressed row form."""
    with np.load(path, allow_pickle=False) as file:

        def matrix(name):
            parts = [file[f"{name}_{part}"] for part in ("data", "indices", "indptr", "shape")]
            read = scipy.sparse.csr_matrix((parts[0].astype(float), parts[1], parts[2]), shape=tuple(parts[3]))
            read.sum_duplicates()
            return read

        adjacency, attributes = matrix("adj"), matrix("attr")
    adjacency = (adjacency != 0).astype(float)
    adjacency = ((adjacency + adjacency.T) != 0).astype(float).tolil()
    if not keep_self_loops:
        adjacency.setdiag(0)
    adjacency = adjacency.tocsr()
    adjacency.eliminate_zeros()
    if not binarise and not np.isin(attributes.data, (0, 1)).all():
        sys.exit("attributes are not binary; try --binarise")
    attributes = (attributes > 0).tocsr()
    attributes.sort_indices()
    return adjacency, attributes


def read_model(path):
    """The layers, pairs of weights and bias in double precision, and the name of the propagation."""
    if path.endswith(".npz"):
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name].astype(float) for name in file.files}
        propagation = "symmetric-gcn"
    else:
        with open(path, "rb") as file:
            content = file.read()
        (length,) = struct.unpack("<Q", content[:8])
        header, content = json.loads(content[8 : 8 + length]), content[8 + length :]
        metadata = header.pop("__metadata__", {})
        propagation = metadata.get("propagation", "symmetric-gcn")
        if "network" in metadata:
            propagation = only_propagation(json.loads(metadata["network"]))
        arrays = {}
        for name, tensor in header.items():
            if tensor["dtype"] in ("F32", "F64"):
                start, end = tensor["data_offsets"]
                values = np.frombuffer(content[start:end], "<f4" if tensor["dtype"] == "F32" else "<f8")
                arrays[name] = values.astype(float).reshape(tensor["shape"])
    if "W3" in arrays or "W1" not in arrays:
        sys.exit("only models with one or two hidden layers can be checked")
    if propagation not in ("symmetric-gcn", "row-normalised"):
        sys.exit(f"the propagation {propagation} is not supported")
    count = sum(f"W{layer}" in arrays for layer in range(3))
    return [(arrays[f"W{layer}"], arrays[f"b{layer}"]) for layer in range(count)], propagation


def only_propagation(network):
    """The propagation of a plain network with one or two hidden layers; others are refused."""
    sources = [[term["source"] for term in layer["terms"]] for layer in network["layers"]]
    activations = [layer["activation"] for layer in network["layers"]]
    scalars = any("scalar" in term for layer in network["layers"] for term in layer["terms"])
    hidden = len(sources) - 1
    plain = sources == [["attributes"], *([{"layer": layer}] for layer in range(hidden))]
    if not plain or activations != ["relu"] * hidden + ["none"] or scalars or hidden not in (1, 2):
        sys.exit("the network is not a plain one with one or two hidden layers")
    if network.get("kind", "bits") != "bits":
        sys.exit("the network reads no plain bits")
    if len(network["propagations"]) != 1:
        sys.exit("several propagations are not supported")
    return network["propagations"][0]


def propagation_matrix(adjacency, name):
    """P, from A + I; a kept self-loop adds to the diagonal, but not twice to the degree."""
    degrees = np.asarray(adjacency.sum(axis=1)).ravel() + 1
    looped = (adjacency + scipy.sparse.identity(adjacency.shape[0])).tocsr()
    if name == "row-normalised":
        return scipy.sparse.diags(1 / degrees).dot(looped).tocsr()
    scale = scipy.sparse.diags(1 / np.sqrt(degrees))
    return scale.dot(looped).dot(scale).tocsr()


@dataclasses.dataclass(frozen=True)
class Limits:
    """How many candidates a program may have."""

    # With more candidates than this, the most promising ones are tried by themselves first.
    short_list: int = 150
    # So many candidates are left to HiGHS even where they could be excluded: it is the program that is to decide.
    least: int = 60
    # Programs with more candidates are not even begun: HiGHS would go on for long past its limit of time.
    large: int = 4000


class World:
    """Graph, model (pairs of weights and bias) and budget."""

    def __init__(self, adjacency, attributes, layers, propagation, budget, limits=None):
        self.attributes = attributes
        self.layers = layers
        self.w0, self.b0 = layers[0]
        self.head = layers[-1]
        # Two hidden layers, not one.
        self.deep = len(layers) == 3
        self.limits = limits or Limits()
        self.p = propagation_matrix(adjacency, propagation)
        self.budget = budget
        nodes, count = attributes.shape
        self.global_budget = budget["global"]
        self.local = np.full(nodes, budget["local_count"])
        for node, own in budget.get("local_at", {}).items():
            self.local[int(node)] = own
        self.local[budget.get("protected_nodes", [])] = 0
        self.flippable = np.ones(count, bool)
        self.flippable[budget.get("protected_attributes", [])] = False

    def x(self, node):
        row = np.zeros(self.attributes.shape[1], bool)
        row[self.attributes.indices[self.attributes.indptr[node] : self.attributes.indptr[node + 1]]] = True
        return row

    def allowed(self, node):
        """The attributes that may be flipped at `node`, each on its own."""
        if self.local[node] == 0 or self.global_budget == 0:
            return np.zeros(0, int)
        allowed = self.flippable.copy()
        if self.budget["direction"] == "add-only":
            allowed &= ~self.x(node)
        if self.budget["direction"] == "delete-only":
            allowed &= self.x(node)
        return np.flatnonzero(allowed)

    def neighbours(self, node):
        row = slice(self.p.indptr[node], self.p.indptr[node + 1])
        return self.p.indices[row], self.p.data[row]

    def towards(self, nodes):
        """The neighbours of all of `nodes`, in order, and P from them to `nodes`."""
        near = np.unique(np.concatenate([self.neighbours(node)[0] for node in nodes]))
        p = np.zeros((len(nodes), len(near)))
        for row, node in enumerate(nodes):
            columns, values = self.neighbours(node)
            p[row, np.searchsorted(near, columns)] = values
        return near, p

    def reach(self):
        """For each node, how many nodes its logits depend on."""
        step = (self.p != 0).astype(float)
        seen = step
        for _ in self.layers[1:]:
            seen = (seen @ step != 0).astype(float)
        return np.diff(seen.tocsr().indptr)
