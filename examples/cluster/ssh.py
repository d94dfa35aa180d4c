"""A Dask cluster over SSH: python ssh.py HOST [HOST ...], the first also for the scheduler.

Each host needs ssdlab[cluster] in the same version, under the same path as here.
"""

from __future__ import annotations

import sys
import time

from distributed import SSHCluster


def main(hosts: list[str]) -> None:
    with SSHCluster(
        [hosts[0], *hosts],
        scheduler_options={"port": 8786},
        worker_options={"nthreads": 1, "n_workers": 2},  # as many workers as cores
        remote_python=sys.executable,
    ) as cluster:
        print(f"ssdlab sweep ... --cluster {cluster.scheduler_address}", flush=True)
        while True:  # until Ctrl-C
            time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1:] or ["localhost"])
