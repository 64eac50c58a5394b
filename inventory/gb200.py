"""GB200 NVL72 compute trays: 4 GPUs, aarch64. They are children of gb200: gb200_tray's file is the stronger one."""

from rackwright.inventory import build

globals().update(
    build(
        __file__,
        {
            "gb200_tray": [
                ("gb200-r1-t01.example.com", {"hardware": {"rack": "r1"}}),
                ("gb200-r1-t02.example.com", {"hardware": {"rack": "r1"}}),
            ],
            # On the newest TensorRT-LLM line; a host belongs to one profile.
            "gb200_tray_newest": [],
            # TensorRT-LLM 1.2.1: gpt-oss-120b and DeepSeek-R1; and DeepSeek-R1 with vLLM 0.33.0.
            "gb200_tray_stable": [],
            "gb200_tray_deepseek_r1": [],
            "gb200_tray_vllm_deepseek_r1": [],
        },
        children={"gb200": ["gb200_tray"]},
    )
)
