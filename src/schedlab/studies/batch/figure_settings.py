"""Typed values of the figures (`params` of conf/figure/batch/*.yaml), by drawing."""

from __future__ import annotations

from schedlab.config.schema import Settings, setting


class DeviceSpeedSettings(Settings):
    """The figure `device_speed`."""

    published: dict[str, float] = setting({}, doc="device -> its published rate", unit="steps/s")
    records: tuple[str, ...] = setting((), doc="what `schedlab batch speed --out` recorded, from the checkout or the working directory on")


FIGURE_SETTINGS: dict[str, type[Settings]] = {"device_speed": DeviceSpeedSettings}


def figure_files(settings: Settings) -> list[str]:
    """Return the files that a drawing reads beside the tables."""
    return list(settings.records) if isinstance(settings, DeviceSpeedSettings) else []
