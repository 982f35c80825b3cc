"""What rows look like that may not be records of their own."""


def near_rows(name: str) -> str:
    """The warning about rows that are near to each other in all features, and share their side."""
    return (
        f"{name}: rows that are near to each other are members, or not, together far more often "
        "than coins of their own make them: does each row have its own coin? If several rows "
        "share one, such as those of one customer, or crops of one image, say so: unit="
    )


def near_counts(counts: list[int], chance: float) -> str:
    """The warning about runs whose numbers of members lie closer together than fair coins make
    them.

    Args:
        counts: Members of each run.
        chance: Bound on the probability of counts at least this close.
    """
    listed = ", ".join(f"{count:,}" for count in counts[:8])
    if len(counts) > 8:
        listed = f"{listed}, ..."
    return (
        f"the runs have {listed} members, closer together than coins of their own make them "
        f"(p = {chance:.2g}): if that is one split, from which rows were lost, or one run under "
        "two names, its coins count once and the bound does not hold; to check, give a record one "
        "name in all runs (--id-column, in Python ids)"
    )
