"""Hosts with 8 x B300, x86-64. Their settings are in group_vars/b300.yml and the file of their own group."""

from rackwright.inventory import build

globals().update(
    build(
        __file__,
        {
            "b300_vllm_deepseek_v4_flash": ["b300-01.example.com"],
            # A host belongs to one profile: put it here instead.
            "b300_vllm_minimax_m3": [],
            "b300_vllm_kimi_k3": [],
        },
        children={"b300": ["b300_vllm_deepseek_v4_flash", "b300_vllm_minimax_m3", "b300_vllm_kimi_k3"]},
    )
)
