"""Frozen backbones: names, weights, preprocessing, inference. An image in, a feature vector out.

Empty of imports, so that `temi.backbones.catalog` and `temi.backbones.cropping` stay free of torch.
"""
