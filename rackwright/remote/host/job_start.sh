# Start a job as a transient systemd unit, or join it when it runs already with the same script.
# Parameters: unit folder secrets trial (see job_ended.sh) ended (its text) digest timeout after (folders of jobs) busy. Standard input: "script - BASE64", "secret NAME BASE64", "end".
umask 077
mkdir -p "${folder%/*}"
# Two runs that start the same job at the same moment would clear each other's folder.
exec 9>"$folder.lock"
flock --timeout 60 9 || { printf '%s\n' "another run holds $folder.lock; see who: fuser $folder.lock" >&2; exit "$busy"; }
if [ -d "$folder" ] && systemctl is-active --quiet "$unit"; then
  cat >/dev/null
  [ "$(cat "$folder/digest")" = "$digest" ] && { printf 'joined %s\n' "$(cat "$folder/nonce" 2>/dev/null)"; exit 0; }
  printf '%s\n' "another run is doing this differently right now: wait until $unit has ended, or stop it: systemctl stop $unit" >&2
  exit "$busy"
fi
# One that is ending has still to close what it opened, and systemd starts no other of its name until then.
waited=0
while [ "$(systemctl is-active "$unit")" = deactivating ] && [ $waited -lt 30 ]; do sleep 1; waited=$((waited + 1)); done
rm -rf "$folder" "$secrets"
mkdir -p "$folder" "$secrets"
whole=no
while read -r kind name data; do
  case "$kind" in
    script) printf %s "$data" | base64 -d >"$folder/script" ;;
    secret) printf %s "$data" | base64 -d >"$secrets/$name" ;;
    end) whole=yes ;;
  esac
done
if [ $whole = no ]; then
  rm -rf "$folder" "$secrets"
  echo "the connection was cut while the job arrived, so it was not started" >&2
  exit 1
fi
printf '%s\n' "$digest" >"$folder/digest"
: >"$folder/log"
: >"$folder/events"
# Made here and kept in a file of root's: neither a command line nor an environment has it, so only the job can say it.
read -r nonce </proc/sys/kernel/random/uuid
printf '%s\n' "$nonce" >"$folder/nonce"
# In a file of its own: systemd warns in the journal of what sh needs quoted in a unit's command line.
cat >"$folder/main" <<'END'
for job in $AFTER; do
  until [ -e "$job/status" ] || [ -e "$job/ended" ] || [ ! -e "$job/began" ]; do sleep 1; done
done
/bin/sh "$JOB/script" >>"$JOB/log" 2>&1
printf '%s\n' "$?" >"$JOB/status.new"
mv "$JOB/status.new" "$JOB/status"
END
printf %s "$ended" >"$folder/after"
read -r now _ </proc/uptime
printf '%s\n' "$now" >"$folder/began"
systemd-run --quiet --collect --unit="$unit" --property=RuntimeMaxSec="$timeout" \
  --property=ExecStopPost="-/bin/sh $folder/after" --setenv=SECRETS="$secrets" --setenv=JOB="$folder" \
  --setenv=TRIAL="$trial" --setenv=AFTER="$after" --setenv=LC_ALL=C \
  /bin/sh "$folder/main" ||
  { rm -rf "$folder" "$secrets"; exit 1; }
printf 'started %s\n' "$nonce"
