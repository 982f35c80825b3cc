"""PANORAMIA: pools of members, generated and other real examples, the game on them, and its
audits.
"""
