"""Long random tests with counts: ``python -m soak`` from the folder ``tests``, or ``make soak``.

Exits with 1 if a graph contradicts its certificate, a problem was refused wrongly, a plan
differs from the oracle's, or a degree that can be had was missed; if a damaged file is neither
read nor refused in one line, or a killed writer leaves half a file.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed

from .approximate import judge_approximate, samples
from .degrees import judge_degree
from .files import judge_file, judge_kill
from .large import judge_large
from .problems import random_problem
from .solving import judge

SHOWN = 12  # examples of each verdict
FAULTS = (
    "FALSE", "DEGREE MISSED", "WRONGLY", "TOO MUCH", "raised", "refused wrongly", "plans differ",
    "gap not finite", "not finite", "misstated", "oracle did", "CRASHED", "HUNG", "TOLD BADLY",
    "TORN", "LEFTOVERS",
)  # fmt: skip
# Parts with their number of cases at scale one, which takes about ten minutes on two cores.
PARTS = {
    "problems": 20_000,
    "large": 60,
    "degrees": 200,
    "approximate": 8,
    "files": 400,
    "kills": 100,
}


def judged(part, case):
    """Verdicts about one case; an exception is one, too."""
    try:
        match part:
            case "problems":
                return judge(random_problem(case))
            case "large":
                return judge_large(case)
            case "degrees":
                return judge_degree(case)
            case "files":
                return judge_file(case)
            case "kills":
                return judge_kill(case)
            case _:
                return judge_approximate(samples()[case])
    except Exception as error:
        return [(f"raised {type(error).__name__}", f"{part} {case}: {str(error)[:300]}")]


def cases_of(part, count, seed):
    if part == "approximate":
        every = max(1, len(samples()) // count)
        return range(0, len(samples()), every)
    return range(seed, seed + count)


def main():
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--count", type=int, help="cases of each part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=10.0, help="stop after, at the latest")
    arguments = parser.parse_args()
    begin, counts, examples = time.monotonic(), Counter(), {}
    for part in arguments.parts or PARTS:
        cases = cases_of(part, arguments.count or PARTS[part], arguments.seed)
        done, started = 0, time.monotonic()
        with ProcessPoolExecutor(arguments.processes) as pool:
            futures = [pool.submit(judged, part, case) for case in cases]
            for future in as_completed(futures):
                done += 1
                for verdict, detail in future.result():
                    counts[verdict] += 1
                    if detail:
                        examples.setdefault(verdict, []).append(detail)
                if time.monotonic() - begin > 60 * arguments.minutes:
                    pool.shutdown(cancel_futures=True)
                    break
        print(
            f"{part}: {done} of {len(cases)} cases, {time.monotonic() - started:.0f} s", flush=True
        )
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


if __name__ == "__main__":
    main()
