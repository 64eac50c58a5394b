"""The shipped profiles of several hosts, and what hosts of the lab need beside them."""

from __future__ import annotations

from typing import Any

ONE: dict[str, Any] = {"gpus": [0]}
FOUR: dict[str, Any] = {"gpus": [0, 1, 2, 3]}
GROUPS: dict[str, tuple[int, dict[str, Any]]] = {
    "dgx_spark_pair_eagle3": (2, ONE),
    "dgx_spark_pair_vllm_deepseek_v4_flash": (2, ONE),
    "dgx_spark_pair_vllm_qwen38_27b": (2, ONE),
    "gb300_pair_vllm_kimi_k3": (2, FOUR),
    "dgx_spark_ring_vllm_qwen35_397b": (3, ONE),
    "dgx_spark_four_vllm_qwen38_flash_next": (4, ONE),
}
"""Hosts and settings by profile."""
CARRIED = {"group_transport": "any"}
"""No host of the lab has RDMA or NVLink, so the members' traffic goes as it can; all else is the profile's."""
