"""SLA-MORL's names, case files and published settings."""
