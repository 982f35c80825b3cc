"""Calls that are refused."""

from collections.abc import Callable
from typing import Any

import pytest


def refused(
    message: str, call: Callable[..., Any], /, *given: Any, error: type = ValueError, **options: Any
) -> str:
    """The call ends in an error of one line that has this message, a regular expression; all of
    it.
    """
    with pytest.raises(error, match=message) as caught:
        call(*given, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)
