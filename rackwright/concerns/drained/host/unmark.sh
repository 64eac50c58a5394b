# Take the mark of a drained host away, so that a power cut does not bring it back. Parameters: mark and no_boot (files)
# homes (the endpoints' folder) notes askers_limit (seconds). It ends when each gateway knows.
#include askers.sh
event() { :; }
asker_clock
since=$asker_now
durably_gone "$mark" && durably_gone "$no_boot" || exit 1
rmdir "${no_boot%/*}" 2>/dev/null
for endpoint in "$homes"/*/; do
  endpoint=${endpoint%/} endpoint=${endpoint##*/}
  askers_await "$since" any "$askers_limit"
done
exit 0
