"""What constrains jobs besides nodes: jobs that have to end first, and limits of queues, partitions and memory."""
