"""Which storage to take: caches, disks, arrays and SSDs beside each other, with prices."""
