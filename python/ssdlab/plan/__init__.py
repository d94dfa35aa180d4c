"""Which storage to take: caches before disks, disks, arrays and SSDs beside each other, with prices."""
