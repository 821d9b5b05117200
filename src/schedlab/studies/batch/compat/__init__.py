"""What matches the published systems' defects; `legacy.py` names it, and nothing else outside of this room does."""
