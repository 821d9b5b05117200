"""Shared panels: axes with their ticks and legends, points, curves, bars, coloured cells, time lines, tables."""
