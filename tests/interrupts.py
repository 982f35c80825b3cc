"""Work that is interrupted."""


def stopping(patch, owner, name, at):
    """Interrupts a function of ``owner`` in place of call ``at``; the arguments of its calls so
    far.
    """
    work, calls = getattr(owner, name), []

    def stops(*given, **options):
        calls.append(given)
        if len(calls) == at:
            raise KeyboardInterrupt
        return work(*given, **options)

    patch.setattr(owner, name, stops)
    return calls
