"""SLA-MORL's class names, its files of recorded cases (`schedlab cloud replay`) and its published settings."""
