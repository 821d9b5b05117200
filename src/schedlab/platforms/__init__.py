"""Platforms: descriptions, generators and the reader of Batsim's XML files."""
