"""Null targets of PANORAMIA, which never saw a member."""
