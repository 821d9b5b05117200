"""The hosts of a platform (compute, storage or master) and the routes between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from schedlab.config.errors import UserError, did_you_mean
from schedlab.platforms.routes import Channels, Point, Route, Routes

ROLES = ("", "compute_node", "master", "storage")


@dataclass(slots=True, eq=False)
class Host:
    """A machine: `speeds` in flop/s by pstate, `cores`, the initial `pstate`, its properties, and its places in the
    network and in the platform file.
    """

    name: str
    speeds: tuple[float, ...]
    cores: int
    pstate: int
    properties: Mapping[str, str]
    point: Point
    file: str
    line: int

    def at(self, attribute: str) -> str:
        """Return the place of an attribute or property, for errors."""
        return f"{self.file}: line {self.line}: host '{self.name}', {attribute}"


class Platform:
    """The hosts of a platform file and the routes between them."""

    def __init__(self, hosts: dict[str, Host], channels: Channels, where: str) -> None:
        self.hosts, self.channels, self.where = hosts, channels, where
        self._routes = Routes(channels, where)

    def host(self, name: str) -> Host:
        """Return the host with a name. Raises UserError if there is none."""
        if name not in self.hosts:
            raise UserError(f"no host is named '{name}'", where=self.where, remedy=did_you_mean(name, self.hosts))
        return self.hosts[name]

    def with_roles(self, roles: Mapping[str, str]) -> Platform:
        """Return the platform with another role for each named host, in addition to its present one. Raises
        UserError.
        """
        hosts = dict(self.hosts)
        for name, role in roles.items():
            host = self.host(name)
            both = ",".join(filter(None, (host.properties.get("role", ""), role)))
            hosts[name] = replace(host, properties={**host.properties, "role": both})
        return Platform(hosts, self.channels, self.where)

    def master(self, name: str) -> Host:
        """Return the host that computes nothing: the one with this name, or the one with the role `master`. Raises
        UserError if there is none or more than one.
        """
        masters = [host for host in self._sorted() if host.name == name or self._role(host) == "master"]
        if len(masters) > 1:
            names = ", ".join(host.name for host in masters[:3])
            raise UserError(f"{len(masters)} hosts are masters: {names}", where=self.where, expected="one")
        if not masters:
            raise UserError(
                f"no host is named '{name}' or has the role master",
                where=self.where,
                expected="one that computes nothing",
                remedy=f"{did_you_mean(name, self.hosts)}; choose one by --master-host NAME",
            )
        return masters[0]

    def compute_hosts(self, master: str) -> list[Host]:
        """Return the hosts in the order of their ids: by the bytes of their names, without the master and the storage
        hosts. Raises UserError if there is none, or if one has no speed.
        """
        hosts = [host for host in self._sorted() if host.name != master and self._role(host) in ("", "compute_node")]
        if not hosts:
            raise UserError(
                "no host computes", where=self.where, expected=f"at least one <host> beside the master host '{master}'"
            )
        for host in hosts:
            if not host.speeds[host.pstate]:
                raise UserError(
                    "is 0, and the host computes",
                    where=host.at("speed"),
                    expected="a positive speed, or the role storage",
                )
        return hosts

    def storage_hosts(self, master: str) -> list[Host]:
        """Return the hosts with the role `storage`, by name; their ids follow those of the compute hosts."""
        return [host for host in self._sorted() if host.name != master and self._role(host) == "storage"]

    def route(self, source: Host, target: Host) -> Route:
        """Return the route between two hosts. Raises UserError if the file contains none."""
        return self._routes.between(source.point, target.point)

    def _sorted(self) -> list[Host]:
        return sorted(self.hosts.values(), key=lambda host: host.name.encode())

    def _role(self, host: Host) -> str:
        role = host.properties.get("role", "")
        if role not in ROLES:
            raise UserError(f"'{role}' is no role", where=host.at("role"), expected=", ".join(ROLES[1:]))
        return role
