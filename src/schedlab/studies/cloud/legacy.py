"""Defects of the published program that change numbers, each a switch by name."""

from __future__ import annotations

from schedlab.config.schema import Settings, setting


class LegacySettings(Settings):
    """Defects of the published program that change numbers; all off by default, all on in mode reference."""

    reward: bool = setting(False, doc="the published reward, whose price term drowns the rest, in place of the scalar")
    keep_severities: bool = setting(False, doc="the severity of an item stays when the item is met again")
    memory_used_only: bool = setting(
        False, doc="the state knows the memory in use alone, whose utilisation is then always 1"
    )
    whole_epochs: bool = setting(False, doc="epochs are cut to whole numbers")
    empty_components: bool = setting(False, doc="the last four components of the state are 0")

    @property
    def in_state(self) -> bool:
        """Whether the state that a learner sees has a defect."""
        return self.keep_severities or self.memory_used_only or self.whole_epochs or self.empty_components
