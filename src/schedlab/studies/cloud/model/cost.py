"""The cost calculator: compares two allocations, checks batch sizes, explains idle GPUs.

See docs/reference/cloud_model.md; the texts are those of SLA-MORL's program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedlab.config.schema import validate
from schedlab.studies.cloud.model.allocation import ResourceConfig, allocation_from
from schedlab.studies.cloud.replay.sla import GPU_COLUMN

OF_NOTHING = 0.01  # $ or s: base of percentages where the base is 0, as in SLA-MORL's program


def percent(change: float, base: float) -> float:
    """Return a change in percent of its base; if the base is 0, in percent of 0.01."""
    return change / (base if base > 0 else OF_NOTHING) * 100


def money(value: float) -> str:
    """Return an amount in dollars, with more digits for small amounts."""
    return f"${value:.{2 if value >= 1 else 3 if value >= 0.1 else 5}f}"


class ResourceCostCalculator:
    """Compares allocations at prices in $/h of a GPU, a core, a GB. Raises UserErrors for negative prices."""

    def __init__(
        self, cost_per_gpu_hour: float = 2.5, cost_per_cpu_hour: float = 0.1, cost_per_gb_hour: float = 0.02
    ) -> None:
        prices = {
            "cost_per_gpu_hour": cost_per_gpu_hour,
            "cost_per_cpu_hour": cost_per_cpu_hour,
            "cost_per_gb_hour": cost_per_gb_hour,
        }
        self.prices = validate(ResourceConfig, prices)

    def hourly_cost(self, allocation: Mapping[str, float]) -> float:
        """Return the price of an allocation {gpu_count, cpu_count, memory_gb}, $/h."""
        return self.prices.hourly_price(*allocation_from(allocation, "allocation"))

    def compare(
        self, base: Mapping[str, float], new: Mapping[str, float], times: tuple[float, float] | None = None
    ) -> dict[str, Any]:
        """Return prices, differences and, where the training times (s) of both are known, totals and a verdict."""
        before, after = self.hourly_cost(base), self.hourly_cost(new)
        old, now = allocation_from(base, "baseline"), allocation_from(new, "optimized")
        found = {
            "baseline_hourly_cost": before,
            "optimized_hourly_cost": after,
            "hourly_cost_change": after - before,
            "hourly_cost_change_pct": percent(after - before, before),
            "gpu_change": now.gpu_count - old.gpu_count,
            "cpu_change": now.cpu_count - old.cpu_count,
            "memory_change": now.memory_gb - old.memory_gb,
        }
        return {**found, **_totals(before, after, times)} if times else found


def _totals(before: float, after: float, times: tuple[float, float]) -> dict[str, Any]:
    base, new = before * (times[0] / 3600.0), after * (times[1] / 3600.0)
    slower = times[1] - times[0]
    found = {
        "baseline_total_cost": base,
        "optimized_total_cost": new,
        "total_cost_change": new - base,
        "total_cost_change_pct": percent(new - base, base),
        "time_change": slower,
        "time_change_pct": percent(slower, times[0]),
    }
    verdict = _verdict(percent(after - before, before), found["time_change_pct"])
    return {**found, "tradeoff_validation": verdict} if verdict else found


def _verdict(price: float, time: float) -> str:
    """Return the verdict on a change of price and time, both in percent; none if one of them does not change."""
    if price > 0 and time > 0:
        return "INVALID: Both hourly cost and time increased"
    if price < 0 and time < 0:
        return "EXCELLENT: Both hourly cost and time decreased"
    if price > 0 > time:
        if -time > price:
            return f"GOOD: {-time:.1f}% time improvement outweighs {price:.1f}% cost increase"
        return f"QUESTIONABLE: {price:.1f}% cost increase for only {-time:.1f}% time improvement"
    if price < 0 < time:
        if -price > time:
            return f"GOOD: {-price:.1f}% cost reduction outweighs {time:.1f}% time increase"
        return f"QUESTIONABLE: {-price:.1f}% cost reduction with {time:.1f}% time degradation"
    return ""


def check_batch(gpus: int, batch: float, new_gpus: int, new_batch: float) -> dict[str, Any]:
    """Return whether a change of the batch size fits a change of the number of GPUs."""
    each, new_each = batch / max(1, gpus), new_batch / max(1, new_gpus)
    more = new_batch - batch
    verdict = "OK: Batch size change consistent with GPU count change"
    if new_gpus > gpus and more <= 0:
        verdict = "WARNING: GPUs increased but batch size didn't increase"
    elif new_gpus < gpus and more > 0:
        verdict = "WARNING: GPUs decreased but batch size increased"
    elif new_gpus == gpus and abs(more) > batch * 0.5:
        verdict = f"WARNING: Large batch size change ({more}) with same GPU count"
    of_each = "OK: Per-GPU batch size remained relatively consistent"
    if abs(new_each - each) > each * 0.3:
        of_each = f"NOTE: Per-GPU batch size changed significantly from {each:.1f} to {new_each:.1f}"
    return {
        "baseline_gpu_count": gpus,
        "baseline_batch_size": batch,
        "baseline_per_gpu_batch": each,
        "optimized_gpu_count": new_gpus,
        "optimized_batch_size": new_batch,
        "optimized_per_gpu_batch": new_each,
        "batch_validation": verdict,
        "per_gpu_batch_validation": of_each,
    }


def diagnose_idle_gpus(metrics: Mapping[str, Any], gpu_count: int) -> list[str]:
    """Return possible causes if no allocated GPU is used, or if their number differs from the reported one."""
    if gpu_count <= 0:
        return []
    reported = [value for key, value in metrics.items() if key.startswith(GPU_COLUMN)]
    issues = []
    if not reported:
        issues.append("No GPU utilization metrics found in the data")
    elif all(value == 0 for value in reported):
        issues.append("All GPU utilization values are zero despite GPUs being allocated")
        if metrics.get("gpu_memory_used_gb") == 0:
            issues.append("GPU memory usage is zero - model may not be using GPU at all")
        if "cuda_visible_devices" in metrics and not metrics["cuda_visible_devices"]:
            issues.append("CUDA_VISIBLE_DEVICES environment variable is empty or not set")
        if (metrics.get("cpu_percent") or 0) > 90:
            issues.append("CPU usage is very high (>90%) - workload may be CPU-bound")
    if len(reported) != gpu_count:
        issues.append(
            f"Mismatch between GPU count ({gpu_count}) and number of GPU utilization metrics ({len(reported)})"
        )
    return issues
