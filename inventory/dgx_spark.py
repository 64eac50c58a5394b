"""DGX Spark machines: one GB10 with unified memory, aarch64."""

from rackwright.inventory import build

globals().update(
    build(
        __file__,
        {
            "dgx_spark_eagle3": [("spark-01.example.com", {"ssh_user": "nvidia"})],
            "dgx_spark_draft_target": [("spark-02.example.com", {"ssh_user": "nvidia"})],
            # Each two neighbours, cabled to each other, are one endpoint; the first one answers.
            "dgx_spark_pair": [
                ("spark-03.example.com", {"ssh_user": "nvidia", "fabric_address": "192.0.2.3"}),
                ("spark-04.example.com", {"ssh_user": "nvidia", "fabric_address": "192.0.2.4"}),
            ],
            "dgx_spark_newest": [],
            "dgx_spark_vllm_qwen36": [],
            "dgx_spark_eagle3_playbook": [],
            "dgx_spark_vllm_qwen38_27b": [],
            "dgx_spark_vllm_nemotron3_super": [],
            "dgx_spark_vllm_nemotron3_nano": [],
            "dgx_spark_nemotron3_super": [],
            # Two Sparks each, as above; three in a ring, four at a switch.
            "dgx_spark_pair_eagle3": [],
            "dgx_spark_pair_vllm_deepseek_v4_flash": [],
            "dgx_spark_pair_vllm_qwen38_27b": [],
            "dgx_spark_ring_vllm_qwen35_397b": [],
            "dgx_spark_four_vllm_qwen38_flash_next": [],
        },
        children={
            "dgx_spark": [
                "dgx_spark_eagle3",
                "dgx_spark_draft_target",
                "dgx_spark_pair",
                "dgx_spark_newest",
                "dgx_spark_vllm_qwen36",
                "dgx_spark_eagle3_playbook",
                "dgx_spark_vllm_qwen38_27b",
                "dgx_spark_vllm_nemotron3_super",
                "dgx_spark_vllm_nemotron3_nano",
                "dgx_spark_nemotron3_super",
                "dgx_spark_pair_eagle3",
                "dgx_spark_pair_vllm_deepseek_v4_flash",
                "dgx_spark_pair_vllm_qwen38_27b",
                "dgx_spark_ring_vllm_qwen35_397b",
                "dgx_spark_four_vllm_qwen38_flash_next",
            ],
        },
    )
)
