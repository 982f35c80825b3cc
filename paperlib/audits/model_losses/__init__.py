"""Losses of any model, one per record: what the audits of scores start from."""

from paperlib.audits.model_losses.choice import losses as losses
