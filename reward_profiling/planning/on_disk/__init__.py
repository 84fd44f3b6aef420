"""The plan and its manifest on disk: their one owner."""
