"""Work that is interrupted."""


def stopping(work, at):
    """The work, interrupted in place of a call, and the arguments of its calls so far."""
    calls = []

    def stops(*given, **options):
        calls.append(given)
        if len(calls) == at:
            raise KeyboardInterrupt
        return work(*given, **options)

    return stops, calls
