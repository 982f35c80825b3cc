"""Normalisation layers: batch norm, or group norm where the records of a batch must be kept apart."""

from math import gcd

from torch import nn


def norm_layer(channels: int, group_norm: bool) -> nn.Module:
    """Batch norm, or group norm with up to 32 groups, which DP-SGD can use.

    >>> norm_layer(48, True).num_groups
    16
    """
    return nn.GroupNorm(gcd(channels, 32), channels) if group_norm else nn.BatchNorm2d(channels)
