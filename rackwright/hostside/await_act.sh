# Wait for the watch's act on this host: it looks for jobs like this one once it has the lock, so that none begins later.
# Parameters: lock until ("UPTIME ENDPOINT" of the act) seconds.
[ -e "$lock" ] || exit 0
waited=0
until flock --shared --timeout 1 "$lock" true; do
  act_until= act_of=
  [ ! -r "$until" ] || read -r act_until act_of <"$until"
  if [ $waited -ge "$seconds" ]; then
    printf '%s\n' "the watch has not ended its restart of endpoint ${act_of:-?} within $seconds s; next: systemctl stop rackwright-act@${act_of:-NAME}, then run the same command again" | tee "${reason:-/dev/null}"
    exit 1
  fi
  [ $((waited % 15)) = 0 ] && event progress "the watch restarts endpoint ${act_of:-?}: waiting for it, up to $((seconds - waited)) s"
  waited=$((waited + 1))
done
exit 0
