"""A Dask cluster in this machine that stays, for many commands: python local.py [WORKERS]."""

from __future__ import annotations

import os
import sys
import time

from distributed import LocalCluster


def main(workers: int) -> None:
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, scheduler_port=8786, host="127.0.0.1"
    ) as cluster:
        print(f"ssdlab sweep ... --cluster {cluster.scheduler_address}", flush=True)
        while True:  # until Ctrl-C
            time.sleep(1)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count() or 1)
