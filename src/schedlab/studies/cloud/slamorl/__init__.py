"""SLA-MORL's files of recorded cases (`schedlab cloud replay`), and its published settings and step."""
