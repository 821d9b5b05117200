"""HDeepRM's launcher, options files, agents and run folders."""
