"""Fetch one model repository into its own folder, verified, so that an incomplete one never looks complete.

It runs in the serving image with the image's python3 and huggingface_hub (0.23 and newer), packed as one file; no
module here may import the rest of Rackwright except `hostside/quiet_disk` and `hand_on/redirects`, or need more than
Python 3.9. Layout on the host:

    TARGET.partial/            while fetching: files that are verified, and .parts/ with those that are not yet
    RECORDS/NAME.partial       the files of it that this host has verified
    TARGET/                    moved into place in one step, when everything is verified
    RECORDS/NAME.json          verified by this host: store, and size, SHA-256, times and inode of each file
    TARGET/.rackwright.json    the same as a mark, for people and for removal
"""
