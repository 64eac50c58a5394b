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
        },
        children={"gb200": ["gb200_tray"]},
    )
)
