"""Defects of the published program that change numbers, each of which can be switched on by name."""

from __future__ import annotations

from schedlab.config.schema import Settings, setting


class LegacySettings(Settings):
    """Defects of the published program that change numbers; all off by default, all on in mode reference."""

    reward: bool = setting(False, doc="use the published reward, which its price term dominates")
    keep_severities: bool = setting(False, doc="keep the severity of a service level after it is met again")
    memory_used_only: bool = setting(
        False, doc="divide the memory in use by itself, so that its utilisation is always 1"
    )
    whole_epochs: bool = setting(False, doc="truncate epochs to whole numbers")
    empty_components: bool = setting(False, doc="set the last four components of the state to 0")

    @property
    def in_state(self) -> bool:
        """Whether one of the defects changes the state that a learner observes."""
        return self.keep_severities or self.memory_used_only or self.whole_epochs or self.empty_components
