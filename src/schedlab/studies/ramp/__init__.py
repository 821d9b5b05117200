"""Ramp: how far should a distributed training job be split over the servers of an optical cluster?"""
