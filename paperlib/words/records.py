"""What rows look like that may not be records of their own."""


def near_rows(name: str) -> str:
    """The warning about rows that are near to each other in all features, and share their side."""
    return (
        f"{name}: rows that are near to each other are members, or not, together far more often "
        "than coins of their own make them: does each row have its own coin? If several rows "
        "share one, such as those of one customer, or crops of one image, say so: unit="
    )
