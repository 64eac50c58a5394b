"""The shipped profiles of several hosts, and what hosts of the lab need beside them."""

from __future__ import annotations

from typing import Any

from rackwright_lab.servers.image import MPI_APART, REPOSITORY

ONE: dict[str, Any] = {"gpus": [0]}
FOUR: dict[str, Any] = {"gpus": [0, 1, 2, 3]}
GROUPS: dict[str, tuple[int, dict[str, Any]]] = {
    "dgx_spark_pair_eagle3": (2, ONE),
    "dgx_spark_pair_vllm_deepseek_v4_flash": (2, ONE),
    "dgx_spark_pair_vllm_qwen38_27b": (2, ONE),
    "gb300_pair_vllm_kimi_k3": (2, FOUR),
    "dgx_spark_ring_vllm_qwen35_397b": (3, ONE),
    "dgx_spark_four_vllm_qwen38_flash_next": (4, ONE),
    "dgx_spark_pair": (2, ONE),
    "gb200_pair": (2, {**FOUR, "image": f"nvcr.io/{REPOSITORY}:{MPI_APART['1.1.0rc0']}"}),
}
"""Hosts and settings by profile; the image of gb200_pair is the same stand-in with the Open MPI that real ones have."""
CARRIED = {"group_transport": "any"}
"""No host of the lab has RDMA or NVLink, so the members' traffic goes as it can; all else is the profile's."""
