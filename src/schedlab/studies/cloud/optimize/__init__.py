"""`schedlab cloud optimize`: measure, learn, train, recommend, report."""
