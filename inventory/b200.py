"""DGX B200 hosts: 8 GPUs, x86-64. Their settings are in group_vars/b200.yml."""

from rackwright.inventory import build

globals().update(
    build(
        __file__,
        {
            "b200": [
                "b200-01.example.com",
                ("b200-02.example.com", {"ssh_hostname": "192.0.2.12", "ssh_user": "ops"}),
            ],
            # One GPU, one request at a time. A host belongs to one profile: put it here instead of in b200.
            "low_latency": [],
            "low_latency_speculative": [],
            # 8 GPUs with Eagle3-v2 (below 8k tokens of context), or on the newest TensorRT-LLM line.
            "b200_eagle3_v2": [],
            "b200_newest": [],
            # TensorRT-LLM 1.2.1: gpt-oss-120b, DeepSeek-R1, and on one GPU Llama 3.3 70B and Qwen3-30B-A3B.
            "b200_stable": [],
            "b200_deepseek_r1": [],
            "b200_llama33_70b": [],
            "b200_qwen3_30b": [],
            # gpt-oss-120b with vLLM 0.33.0 on one GPU, without and with Eagle3-v3, and with SGLang 0.5.23 on all.
            "b200_vllm": [],
            "b200_vllm_eagle3": [],
            "b200_sglang": [],
            # DeepSeek-V4-Flash on all GPUs with vLLM 0.25.0, without and with DSpark; Nemotron 3 Super on two, Qwen3.8
            # on one.
            "b200_vllm_deepseek_v4_flash": [],
            "b200_vllm_deepseek_v4_flash_dspark": [],
            "b200_nemotron3_super": [],
            "b200_qwen38_flash_next": [],
            "b200_vllm_qwen38_27b": [],
            # MiniMax-M3 on all GPUs, without and with Eagle3.
            "b200_vllm_minimax_m3": [],
            "b200_vllm_minimax_m3_eagle3": [],
            # GLM-5 on all GPUs with TensorRT-LLM 1.3.0rc8.
            "b200_glm5": [],
        },
        children={
            "b200_vllm": ["b200_vllm_eagle3"],
            "b200_vllm_deepseek_v4_flash": ["b200_vllm_deepseek_v4_flash_dspark"],
            "b200_vllm_minimax_m3": ["b200_vllm_minimax_m3_eagle3"],
        },
    )
)
