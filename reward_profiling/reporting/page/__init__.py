"""The report as data and words: from insights to what the page shows, without HTML."""
