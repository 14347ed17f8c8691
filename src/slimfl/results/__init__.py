"""Reading run folders: typed records, summaries over rounds and seeds, curves as plain lists."""
