"""Hosts with 8 x H200, x86-64. Their settings are in group_vars/h200.yml and the file of their own group."""

from rackwright.inventory import build

globals().update(
    build(
        __file__,
        {
            "h200_vllm": ["h200-01.example.com"],
            # A host belongs to one profile: put it here instead.
            "h200_vllm_eagle3": [],
            "h200_vllm_dflash": [],
            "h200_vllm_llama33_70b": [],
            "h200_vllm_deepseek_r1": [],
            "h200_sglang": [],
            "h200_trtllm": [],
            "h200_vllm_nemotron3_nano": [],
            "h200_vllm_nemotron3_super": [],
            "h200_vllm_qwen38_flash_next": [],
            "h200_vllm_gemma4_31b": [],
            "h200_sglang_dflash": [],
            "h200_sglang_eagle3": [],
        },
        children={
            "h200": [
                "h200_vllm",
                "h200_vllm_llama33_70b",
                "h200_vllm_deepseek_r1",
                "h200_sglang",
                "h200_trtllm",
                "h200_vllm_nemotron3_nano",
                "h200_vllm_nemotron3_super",
                "h200_vllm_qwen38_flash_next",
                "h200_vllm_gemma4_31b",
                "h200_sglang_dflash",
                "h200_sglang_eagle3",
            ],
            "h200_vllm": ["h200_vllm_eagle3", "h200_vllm_dflash"],
        },
    )
)
