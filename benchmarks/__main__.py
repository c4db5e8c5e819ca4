"""Runs the benchmarks, or those that are named: python -m benchmarks [resolution] [cold_start] …"""

from __future__ import annotations

import sys

from benchmarks import check, cluster, cold_start, data_path, diagnosis, resolution

BENCHMARKS = {
    "resolution": resolution.main,
    "cold_start": cold_start.main,
    "check": check.main,
    "cluster": cluster.main,
    "diagnosis": diagnosis.main,
    "data_path": data_path.main,
}


def main(names: list[str]) -> None:
    """Runs the named benchmarks in order, all of them where none is named."""
    for name in names or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
