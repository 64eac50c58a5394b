"""Fetches one model repository into a folder of its own, verified, so that a part of it never looks complete.

Runs in the serving image, by its own python3 and huggingface_hub (0.23 and newer), packed as one file; nothing
here may import the rest of Rackwright, or need more than Python 3.9. Layout on the host:

    TARGET.partial/            while fetching: files that are verified, and .parts/ with those that are not yet
    RECORDS/NAME.partial       which of them this host has verified
    TARGET/                    moved into place in one step, when everything is verified
    RECORDS/NAME.json          what this host has verified: store, and size, SHA-256, times and inode of each file
    TARGET/.rackwright.json    the same as a mark, for people and for removal
"""
