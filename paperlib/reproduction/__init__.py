"""Four papers rebuilt with the tool: their experiments, rules of verdicts, notebooks and sweeps.

It runs from a checkout and is no part of the installed package. Nothing outside it imports it.
"""
