"""Shared panels: axes and legends, facets, learning, points, curves, bars, coloured cells, time lines, tables."""
