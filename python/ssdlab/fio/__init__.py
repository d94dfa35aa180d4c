"""Real targets: fio does the work, ssdlab writes the job and reads what fio left."""
