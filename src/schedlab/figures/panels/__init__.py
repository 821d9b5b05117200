"""Shared panels: axes and legends, facets, points, curves, bars, coloured cells, time lines, tables."""
