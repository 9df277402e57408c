"""Frozen backbones: names, weights, preprocessing and inference.

Nothing is imported here, so that `temi.backbones.catalog` and `temi.backbones.cropping` do not
load torch.
"""
