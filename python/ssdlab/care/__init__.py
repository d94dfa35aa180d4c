"""Looking after a drive: scanning, trimming, purging and refreshing it."""
