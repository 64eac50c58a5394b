"""GB300 NVL72 compute trays: 4 GPUs, aarch64.

Their settings are in group_vars/gb300.yml and the file of their own group.
"""

from rackwright.inventory import build

globals().update(
    build(
        __file__,
        {
            "gb300_tray_vllm_deepseek_v4_flash": ["gb300-r1-t01.example.com"],
            # A host belongs to one profile: put it here instead.
            "gb300_tray_vllm_qwen38_flash_next": [],
            # Each two neighbours are one endpoint of 8 GPUs; the first one answers.
            "gb300_pair_vllm_kimi_k3": [],
        },
        children={
            "gb300": [
                "gb300_tray_vllm_deepseek_v4_flash",
                "gb300_tray_vllm_qwen38_flash_next",
                "gb300_pair_vllm_kimi_k3",
            ],
        },
    )
)
