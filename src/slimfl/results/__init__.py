"""Reading run folders: typed records, data frames, summaries over rounds and seeds."""
