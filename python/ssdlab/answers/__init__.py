"""The answers of studies that are not arrays or plans, which build their own: one file each."""
