"""Workstations with one RTX PRO 6000 Blackwell Max-Q, x86-64."""

from rackwright.inventory import build

globals().update(
    build(
        __file__,
        {
            "rtx_pro_6000_trtllm": ["ws-01.example.com", "ws-02.example.com"],
            # A host belongs to one profile: put it here instead.
            "rtx_pro_6000_vllm_eagle3": [],
            "rtx_pro_6000_vllm": [],
            "rtx_pro_6000_sglang": [],
            "rtx_pro_6000_vllm_qwen36": [],
            "rtx_pro_6000_vllm_nemotron3_super": [],
        },
        children={
            "rtx_pro_6000": [
                "rtx_pro_6000_trtllm",
                "rtx_pro_6000_vllm",
                "rtx_pro_6000_sglang",
                "rtx_pro_6000_vllm_qwen36",
                "rtx_pro_6000_vllm_nemotron3_super",
            ],
            "rtx_pro_6000_vllm": ["rtx_pro_6000_vllm_eagle3"],
        },
    )
)
