"""The networks that grow: architectures, PyTorch models, Net2Net growth, training, weight files."""
