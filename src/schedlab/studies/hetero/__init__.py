"""The study `hetero`: which job next, and on which core, of a heterogeneous cluster? (HDeepRM on Batsim)"""
