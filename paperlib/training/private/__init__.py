"""DP-SGD: accounting, clipping, noise."""
