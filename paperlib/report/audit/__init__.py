"""The audit report: a verdict in plain words, the number with its claim, and what stands behind
them.
"""
