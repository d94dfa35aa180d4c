"""A Dask cluster in the jobs of Slurm: python slurm.py [JOBS], on a node that may submit jobs.

Needs dask-jobqueue beside ssdlab[cluster], and a home folder that all nodes see.
"""

from __future__ import annotations

import sys
import time

from dask_jobqueue import SLURMCluster


def main(jobs: int) -> None:
    cluster = SLURMCluster(
        queue="batch",
        cores=16,
        processes=16,  # a worker for each core
        memory="64GB",
        walltime="04:00:00",
        scheduler_options={"port": 8786},
    )
    cluster.scale(jobs=jobs)
    print(f"ssdlab sweep ... --cluster {cluster.scheduler_address}", flush=True)
    while True:  # until Ctrl-C; jobs that end or are preempted are submitted again
        time.sleep(1)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
