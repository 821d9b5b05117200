"""One job of a recorded run by the published rules, on names and dictionaries.

It shares no code with the simulator: an op's shards are `7a`, `7b`, a server is `c-r-s`, a dep is a pair of shards.
One job, empty cluster.
"""

import math
from collections import Counter, defaultdict


def shapes(degree, groups, racks, servers):
    found = []
    for deep in (deep for deep in range(1, degree + 1) if degree % deep == 0):
        wide, side = degree // deep, math.isqrt(degree // deep)
        if side * side == wide and side <= min(groups, racks) and deep <= servers:
            found.append((side, side, deep))
        if wide <= min(groups, racks) and deep <= servers:
            found += [(wide, 1, deep), (wide, deep, 1)]
    return found


def play(inputs):
    """Return placement, sizes and times of deps, and the step's time, communication and computation; None where it
    is not placed.
    """
    job = _Job(inputs)
    if not job.place():
        return None
    times = job.dep_times()
    if any(math.isinf(time) for dep, time in times.items() if job.remote(dep)):
        return {"placement": job.server, "sizes": job.size, "times": times, "jct": math.inf}
    sums = job.look_ahead(times)
    return {
        "placement": job.server,
        "sizes": job.size,
        "times": times,
        **{key: value * job.steps for key, value in sums.items()},
    }


class _Job:
    def __init__(self, inputs):
        self.topology, self.steps = inputs["topology"], inputs["training_steps"]
        self.memory_of_device = inputs["device"]["memory_bytes"]
        graph = next(iter(inputs["graphs"].values()))
        self.forward = [op[0] for op in graph["ops"]]
        self.edges, self.last = [tuple(edge) for edge in graph["edges"]], 2 * len(self.forward) + 1
        self.cost, self.memory, self.degree, order = {}, {}, {}, []
        most, quantum = inputs["decisions"][0]["action"], inputs["min_op_run_time_quantum"]
        for op, _, forward, backward, activation, parameter in graph["ops"]:
            mate = self.last - op
            self.cost[op], self.cost[mate] = forward, backward
            self.memory[op] = self.memory[mate] = activation + parameter
            self.degree[op] = self.degree[mate] = max(1, min(2 * math.ceil(math.ceil(forward / quantum) / 2), most))
            order += [op, mate]
        self.split_deps({op: rank for rank, op in enumerate(order)})

    def shards(self, op):
        return [str(op)] if self.degree[op] == 1 else [f"{op}{chr(97 + number)}" for number in range(self.degree[op])]

    def split_deps(self, rank):
        """Section 6: all pairs of shards; sizes from memory, of the op that was split first."""
        count = len(self.forward)
        backward = [(self.last - target, self.last - source) for source, target in self.edges]
        self.size, self.op, self.mutual = {}, {shard: op for op in self.degree for shard in self.shards(op)}, set()
        for source, target in [*self.edges, *backward, (count, count + 1)]:
            of_child = self.degree[source] > 1 and (self.degree[target] == 1 or rank[target] < rank[source])
            size = self.memory[target if of_child else source] / (self.degree[source] * self.degree[target])
            self.size |= {(one, other): size for one in self.shards(source) for other in self.shards(target)}
        for op in (op for op in self.degree if op > count):
            pairs = [(one, other) for one in self.shards(op) for other in self.shards(op) if one != other]
            self.size |= dict.fromkeys(pairs, self.memory[op] / self.degree[op])
            self.mutual |= set(pairs)

    def place(self):
        """Section 8: first fit; the mates of a forward op's shards join them."""
        parents = {op: [source for source, target in self.edges if target == op] for op in self.forward}
        waiting, queue, visited = (
            {op: len(parents[op]) for op in self.forward},
            [op for op in self.forward if not parents[op]],
            [],
        )
        while queue:
            visited.append(queue.pop(0))
            for child in (target for source, target in self.edges if source == visited[-1]):
                waiting[child] -= 1
                queue += [child] * (waiting[child] == 0)
        free, blocks, self.server = defaultdict(lambda: self.memory_of_device), {}, {}
        for op in visited:
            needed = self.memory[op]
            known = [blocks[one] for one in parents[op] if len(blocks[one]) == self.degree[op]]
            block = next((one for one in known if sum(free[server] for server in one) >= needed), None) or self.block(
                op, free
            )
            if block is None:
                return False
            for server in block:
                free[server] -= needed / len(block)
            blocks[op] = block
            for each in (op, self.last - op):
                self.server |= dict(zip(self.shards(each), block, strict=True))
        load = Counter()
        for shard, server in self.server.items():
            load[server] += self.memory[self.op[shard]] / self.degree[self.op[shard]]
        return max(load.values()) <= self.memory_of_device

    def block(self, op, free):
        whole = [self.topology[key] for key in ("communication_groups", "racks_per_group", "servers_per_rack")]
        degree = self.degree[op]
        boxes = [
            [(a, b, c) for a in range(x) for b in range(y) for c in range(z)] for x, y, z in shapes(degree, *whole)
        ]
        boxes += [[(step, step, 0) for step in range(degree)], [(step, 0, 0) for step in range(degree)]]
        origins = [(c, r, s) for c in range(whole[0]) for r in range(whole[1]) for s in range(whole[2])]
        for cells in (
            [tuple(map(sum, zip(origin, cell, strict=True))) for cell in box] for box in boxes for origin in origins
        ):
            servers = ["-".join(map(str, cell)) for cell in cells]
            inside = all(at < most for cell in cells for at, most in zip(cell, whole, strict=True))
            if inside and all(free[server] >= self.memory[op] / degree for server in servers):
                return servers
        return None

    def remote(self, dep):
        return self.server[dep[0]] != self.server[dep[1]] and self.size[dep] > 0

    def dep_times(self):
        """Section 9: collectives where as many shards send from a server as receive there."""
        times = {}
        for op in self.forward:
            mate = self.last - op
            leaving = [dep for dep in self.size if self.op[dep[0]] == op]
            arriving = [dep for dep in self.size if self.op[dep[1]] == mate and dep not in self.mutual]
            for deps in (leaving, arriving):
                sent, received = (Counter(self.server[dep[end]] for dep in deps) for end in (0, 1))
                together = self.degree[op] > 1 and deps and sent == received
                times |= (
                    dict.fromkeys(deps, self.collective(deps)) if together else {dep: self.message(dep) for dep in deps}
                )
        times |= {(one, other): self.collective([(one, other), (other, one)]) for one, other in self.mutual}
        return times

    def message(self, dep):
        return self.latency() + self.size[dep] / self.bandwidth() if self.remote(dep) else 0.0

    def latency(self):
        return self.topology["propagation_latency"] + 2 * self.topology["io_latency"]

    def bandwidth(self):
        return self.topology["node_bandwidth"] / self.topology["communication_groups"]

    def collective(self, deps):
        servers = {self.server[shard] for dep in deps for shard in dep}
        if len(servers) == 1:
            return 0.0
        groups, racks, nodes = (
            len(set(column)) for column in zip(*(server.split("-") for server in servers), strict=True)
        )
        part, waves = sum(self.size[dep] for dep in deps), self.topology["communication_groups"]
        sending = adding = 0.0
        for members in (groups, min(groups, nodes), racks, math.ceil(nodes / waves)):
            part = math.ceil(part / members)
            if members > 1:
                levels, share = math.ceil(math.log2(members)), min(waves, waves // (members - 1))
                if share == 0:
                    return math.inf
                sending += self.latency() + part / (share * self.bandwidth() / waves)
                adding += (levels * part / 2) / min(2e12 * levels / (2 * (members + 1)), 130e12)
        return 2 * sending + adding

    def look_ahead(self, times):
        """Section 10: from event to event; a tick ends with the first flow of a link (of equals that which started
        first) or shard.
        """
        cost = {shard: self.cost[op] / self.degree[op] for shard, op in self.op.items()}
        by_cost = {shard: rank for rank, shard in enumerate(sorted(self.server, key=lambda shard: -cost[shard]))}
        needed = Counter(dep[1] for dep in self.size if dep not in self.mutual)
        left, dep_left, came = dict(cost), dict(times), Counter()
        ready, flows, left_over = [shard for shard in cost if not needed[shard]], [], len(cost) + len(times)
        sums = {"jct": 0.0, "communication_overhead": 0.0, "computation_overhead": 0.0}
        while left_over:
            running, first = {}, {}
            for shard in sorted(ready, key=by_cost.get):
                running[self.server[shard]] = shard  # the last, cheapest one stays
            for dep in flows:
                link, key = (self.server[dep[0]], self.server[dep[1]]), (times[dep], dep_left[dep])
                if self.remote(dep) and (link not in first or key < (times[first[link]], dep_left[first[link]])):
                    first[link] = dep
            local = [dep for dep in flows if not self.remote(dep)]
            tick = (
                0.0
                if local
                else min([left[shard] for shard in running.values()] + [dep_left[dep] for dep in first.values()])
            )
            moving = list(flows)
            for shard in running.values():
                left[shard] -= tick
                if left[shard] <= 0:
                    ready.remove(shard)
                    flows += [dep for dep in self.size if dep[0] == shard]
                    left_over -= 1
            if not local:
                dep_left |= {dep: dep_left[dep] - tick for dep in moving}
            for dep in local or [dep for dep in moving if dep_left[dep] <= 0]:
                flows.remove(dep)
                left_over -= 1
                came[dep[1]] += 1
                if came[dep[1]] == needed[dep[1]]:
                    ready.append(dep[1])
            sums["jct"] += tick
            sums["communication_overhead"] += tick if moving and not local else 0.0
            sums["computation_overhead"] += tick if running else 0.0
        return sums
