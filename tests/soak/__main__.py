"""Long random tests with counts: ``python -m soak`` from the folder ``tests``, or ``make soak``.

Exits with 1 if any verdict is a fault: a graph that contradicts its certificate, a law that does
not hold, other bits beside other threads or after an interrupt, a file that crashes its reader.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TYPE_CHECKING, NamedTuple

from .approximate import judge_approximate, samples
from .clouds import judge_clouds
from .degrees import judge_degree
from .files import judge_file, judge_kill
from .interrupts import judge_interrupt
from .large import judge_large
from .laws import judge_laws
from .problems import random_problem
from .races import judge_race
from .solving import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SHOWN = 12  # examples of each verdict
FAULTS = (
    "FALSE", "DEGREE MISSED", "WRONGLY", "TOO MUCH", "raised", "refused wrongly", "plans differ",
    "gap not finite", "not finite", "misstated", "oracle did", "CRASHED", "HUNG", "TOLD BADLY",
    "TORN", "LEFTOVERS", "BROKEN", "OTHER", "LATE", "LOST",
)  # fmt: skip


class Part(NamedTuple):
    """A kind of test: what is said about one case, and which cases there are."""

    judge: Callable[[int], list[tuple[str, str]]]
    count: int  # cases by default; all parts together take ten minutes or more on two cores
    cases: Callable[[int, int], Iterable[int]] = lambda count, seed: range(seed, seed + count)


PARTS = {
    "problems": Part(lambda seed: judge(random_problem(seed)), 20_000),
    "clouds": Part(judge_clouds, 5_000),
    "large": Part(judge_large, 60),
    "degrees": Part(judge_degree, 200),
    "approximate": Part(
        lambda number: judge_approximate(samples()[number]), 8,
        lambda count, _: range(0, len(samples()), max(1, len(samples()) // count)),
    ),
    "laws": Part(judge_laws, 2000),
    "races": Part(judge_race, 30),
    "interrupts": Part(judge_interrupt, 16),
    "files": Part(judge_file, 400),
    "kills": Part(judge_kill, 100),
}  # fmt: skip


def judged(part, case):
    """Verdicts about one case; an exception is one, too."""
    try:
        return PARTS[part].judge(case)
    except Exception as error:
        return [(f"raised {type(error).__name__}", f"{part} {case}: {str(error)[:300]}")]


def main():
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--count", type=int, help="cases of each part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=10.0, help="stop after, at the latest")
    arguments = parser.parse_args()
    begin, counts, examples = time.monotonic(), Counter(), {}
    for name in arguments.parts or PARTS:
        part = PARTS[name]
        cases = list(part.cases(arguments.count or part.count, arguments.seed))
        done, started = 0, time.monotonic()
        with ProcessPoolExecutor(arguments.processes) as pool:
            futures = [pool.submit(judged, name, case) for case in cases]
            for future in as_completed(futures):
                done += 1
                for verdict, detail in _result(future, name):
                    counts[verdict] += 1
                    if detail:
                        examples.setdefault(verdict, []).append(detail)
                if time.monotonic() - begin > 60 * arguments.minutes:
                    pool.shutdown(cancel_futures=True)
                    break
        seconds = time.monotonic() - started
        print(f"{name}: {done} of {len(cases)} cases, {seconds:.0f} s", flush=True)
    for verdict, found in examples.items():
        print(f"--- {verdict}: {len(found)}")
        for detail in sorted(found)[:SHOWN]:
            print("   ", detail)
    faults = 0
    for verdict, count in counts.most_common():
        fault = any(word in verdict for word in FAULTS)
        faults += count * fault
        print(f"{count:8d}  {verdict}{'   <-- fault' if fault else ''}")
    print(f"{sum(counts.values())} verdicts, {faults} faults, seed {arguments.seed}")
    sys.exit(1 if faults else 0)


def _result(future, name):
    """Verdicts of a case; a process that ends without any has crashed."""
    try:
        return future.result()
    except Exception as error:
        return [("process CRASHED", f"{name}: {type(error).__name__}: {error}")]


if __name__ == "__main__":
    main()
