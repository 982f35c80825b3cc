"""Bounds from one training run whose members were chosen by fair coins."""
