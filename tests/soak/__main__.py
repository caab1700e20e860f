"""Run it: ``python -m soak --problems 1000 --seed 0`` from the folder ``tests``."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from .problems import random_problem
from .solving import judge

SHOWN = 12  # examples of each fault


def judged(seed, largest):
    try:
        problem = random_problem(seed, largest=largest)
        return judge(problem), problem
    except Exception as error:
        return [(f"raised {type(error).__name__}", f"seed {seed}: {str(error)[:300]}")], None


def main():
    parser = argparse.ArgumentParser(prog="soak")
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=150)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1e9)
    arguments = parser.parse_args()
    begin, counts, examples = time.monotonic(), Counter(), {}
    seeds = range(arguments.seed, arguments.seed + arguments.problems)
    done = 0
    with ProcessPoolExecutor(arguments.processes) as pool:
        for results, _ in pool.map(partial(judged, largest=arguments.largest), seeds, chunksize=20):
            done += 1
            for verdict, detail in results:
                counts[verdict] += 1
                if detail:
                    examples.setdefault(verdict, []).append(detail)
            if time.monotonic() - begin > 60 * arguments.minutes:
                pool.shutdown(cancel_futures=True)
                break
    for verdict, found in examples.items():
        print(f"--- {verdict}: {len(found)}")
        for detail in found[:SHOWN]:
            print("   ", detail)
    print(f"{done} problems, {sum(counts.values())} graphs, {time.monotonic() - begin:.0f} s")
    for verdict, count in counts.most_common():
        print(f"{count:8d}  {verdict}")


if __name__ == "__main__":
    main()
