"""CPU time of the tests, so that they stay fast to work with.

The last lines of a run name the tests above their limit and the time of all. With `--limit-times`
they fail: nothing that is right fails because a processor is slow. CPU time counts the process and
those that it started. On a slower processor the limits are as many times as long, as far as a
short loop can tell.
"""

import gc
import os
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

MOST_SECONDS = 20.0
"""CPU time of one test; it only falls."""
SLOWER = {
    # the first writes the made-up data
    "test_the_rehearsal_reaches_its_last_cell_and_decides_nothing": 45.0,
}
"""A test of whole notebooks may take longer; it only falls, too."""
MOST_SECONDS_OF_ALL = 1600.0
"""CPU time of all tests together, on the processor for which the limits hold."""
LOOP_SECONDS = 0.05
"""CPU time of `loop_seconds` on the processor for which the limits hold."""

os.environ.setdefault(
    "JAX_DISABLE_MOST_OPTIMIZATIONS", "1"
)  # compiling takes seconds, the code runs once
gc.set_threshold(
    100_000, 20, 20
)  # imports and tests leave few cycles, and looking for them takes long


@pytest.fixture
def few_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of detection from ten simulated audits each, where how exact they are is not what is
    tested.
    """
    from paperlib.bounds.claims import detection as of_claims
    from paperlib.bounds.one_run import combine
    from paperlib.bounds.ranks import detection

    monkeypatch.setattr(of_claims, "SIMULATIONS", (10, 20))
    together, apart = combine.fewest_shown_together, detection.fewest_shown

    def few_together(shown: Any, most: int, power: float, simulations: int, count: int) -> Any:
        return together(shown, most, power, min(simulations, 10), count)

    def few_apart(shows: Any, most: int, power: float, simulations: int) -> Any:
        return apart(shows, most, power, min(simulations, 10))

    monkeypatch.setattr(combine, "fewest_shown_together", few_together)
    monkeypatch.setattr(detection, "fewest_shown", few_apart)


class Spent:
    """CPU time of the tests of all worker processes, in seconds of the processor of the limits."""

    seconds = 0.0
    above: ClassVar[list[str]] = []
    """What is said of each test above its limit."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--limit-times",
        action="store_true",
        help="let tests above their limit of CPU time fail",
    )


def loop_seconds() -> float:
    """CPU time of a fixed piece of work."""
    start = time.process_time()
    sum(at * at % 7 for at in range(1_000_000))
    return time.process_time() - start


MEASURED_EVERY = 20.0
"""CPU time after which the processor's speed is measured again."""


class Processor:
    """How fast this processor is now: a shared one is twice as fast at one time as at another."""

    slower_by = max(1.0, min(loop_seconds() for _ in range(3)) / LOOP_SECONDS)
    measured_at = time.process_time()

    @classmethod
    def slowness(cls) -> float:
        """How many times as long it takes as the one for which the limits hold, at least 1."""
        if cpu_seconds() - cls.measured_at > MEASURED_EVERY:
            cls.slower_by = max(1.0, min(loop_seconds() for _ in range(3)) / LOOP_SECONDS)
            cls.measured_at = cpu_seconds()
        return cls.slower_by


def cpu_seconds() -> float:
    """CPU time of this process and of those that it started and waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    slower_by = Processor.slowness()
    start = cpu_seconds()
    result = yield
    spent = cpu_seconds() - start
    slower_by = max(slower_by, Processor.slowness())
    limit = SLOWER.get(item.name.partition("[")[0], MOST_SECONDS) * slower_by
    if spent > limit:
        excess = f"{item.name} took {spent:.0f} s of CPU time, and {limit:.0f} s is the limit"
        Spent.above.append(excess)
        assert not item.config.getoption("--limit-times"), excess
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    start = cpu_seconds()
    result = yield
    Spent.seconds += (cpu_seconds() - start) / Processor.slowness()
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    worker = getattr(session.config, "workeroutput", None)
    if worker is not None:
        worker["cpu_seconds"] = Spent.seconds
        worker["above"] = Spent.above
    elif session.config.getoption("--limit-times") and Spent.seconds > MOST_SECONDS_OF_ALL:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_testnodedown(node: object, error: object) -> None:
    output = getattr(node, "workeroutput", {})
    Spent.seconds += output.get("cpu_seconds", 0.0)
    Spent.above.extend(output.get("above", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for excess in Spent.above:
        terminalreporter.write_line(excess)
    terminalreporter.write_line(
        f"CPU time: {Spent.seconds:.0f} s of at most {MOST_SECONDS_OF_ALL:.0f} s, as on the "
        f"processor of the limits; this one takes {Processor.slowness():.1f} times as long"
    )
