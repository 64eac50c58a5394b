"""GB200 NVL72 compute trays: 4 GPUs, aarch64. Two of them serve one model together, or each serves its own.

They are children of gb200: the files of gb200_pair and gb200_tray are the stronger ones. fabric_address is where the
trays of one endpoint reach each other; without it, it is the address that SSH goes to.
"""

from rackwright.inventory import build

globals().update(
    build(
        __file__,
        {
            # Each two neighbours are one endpoint of 8 GPUs; the first one answers.
            "gb200_pair": [
                ("gb200-r1-t01.example.com", {"fabric_address": "192.0.2.1", "hardware": {"rack": "r1"}}),
                ("gb200-r1-t02.example.com", {"fabric_address": "192.0.2.2", "hardware": {"rack": "r1"}}),
            ],
            # One tray alone; a host belongs to one profile.
            "gb200_tray": [],
            # On the newest TensorRT-LLM line.
            "gb200_tray_newest": [],
            # TensorRT-LLM 1.2.1: gpt-oss-120b and DeepSeek-R1; and DeepSeek-R1 with vLLM 0.33.0.
            "gb200_tray_stable": [],
            "gb200_tray_deepseek_r1": [],
            "gb200_tray_vllm_deepseek_r1": [],
            # GLM-5.3-Flash with vLLM's own image for it.
            "gb200_tray_vllm_glm53_flash": [],
        },
        children={"gb200": ["gb200_pair", "gb200_tray"]},
    )
)
