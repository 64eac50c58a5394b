# Take the mark of a drained host away, so that a power cut does not bring it back. Parameters: mark and no_boot (files).
durably_gone "$mark" && durably_gone "$no_boot" || exit 1
rmdir "${no_boot%/*}" 2>/dev/null
exit 0
