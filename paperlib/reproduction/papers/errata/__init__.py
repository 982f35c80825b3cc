"""Errata: what the papers print beside what follows from their own numbers, propositions and
sums.
"""
