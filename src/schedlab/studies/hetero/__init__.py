"""Which job and which core next, on a heterogeneous cluster with memory-bandwidth conflicts? (HDeepRM on Batsim)"""
