"""Net2Net growth of any torch network: `deepen` and `widen` (Chen, Goodfellow and Shlens 2016), over torch.fx."""

from schedlab.studies.adaptation.grow.deeper import deepen
from schedlab.studies.adaptation.grow.files import grow, load_grown
from schedlab.studies.adaptation.grow.graphs import layer_names, relative_difference
from schedlab.studies.adaptation.grow.wider import widen

__all__ = ["deepen", "grow", "layer_names", "load_grown", "relative_difference", "widen"]
