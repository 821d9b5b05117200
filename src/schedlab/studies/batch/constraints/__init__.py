"""What constrains jobs besides nodes: preceding jobs that have to end first."""
