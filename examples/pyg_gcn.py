"""Trains a network of PyTorch Geometric in the usual way, and asks which of its predictions withstand tampering.

pip install '.[pyg,pandas]'
python examples/pyg_gcn.py
"""

import argparse

import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv

import nodeproof


class GCN(torch.nn.Module):
    def __init__(self, attributes: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.conv1 = GCNConv(attributes, hidden)
        self.conv2 = GCNConv(hidden, classes)

    def forward(self, x, edge_index):
        x = self.conv1(x, edge_index).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return self.conv2(x, edge_index)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--global-budget", type=int, default=5, help="flips in all")
    options = parser.parse_args()

    torch.manual_seed(0)
    graph = nodeproof.Graph.bundled()
    split = nodeproof.Split.stratified(graph, train="10%")
    data = graph.to_pyg(split)
    module = GCN(graph.attribute_count, 32, graph.classes)
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(options.epochs):
        module.train()
        optimiser.zero_grad()
        logits = module(data.x, data.edge_index)
        F.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
        optimiser.step()

    names = {"node_names": graph.node_names, "attribute_names": graph.attribute_names, "class_names": graph.class_names}
    graph, model = nodeproof.from_pyg(module, data, **names)
    print(f"logits differ from the module's by at most {model.verification.largest_difference:.1e}")
    certificates = nodeproof.certify(graph, model, global_budget=options.global_budget)
    print(certificates)
    print(certificates.to_pandas().head(10).to_string())
    print()
    right = certificates.nonrobust & (certificates.predicted == certificates.labels)
    radii = nodeproof.radius(graph, model, nodes=certificates.nodes[right][:100], max_budget=options.global_budget)
    fooled = [radius for radius in radii if radius.nonrobust_from]
    if fooled:
        weakest = min(fooled, key=lambda radius: radius.nonrobust_from)
        print(nodeproof.explain(graph, model, weakest.node, global_budget=weakest.nonrobust_from))
    else:
        print("no set of flips was found that changes a class")


if __name__ == "__main__":
    main()
