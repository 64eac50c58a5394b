# Let DCGM test the GPUs, and keep its report. The job succeeds whenever dcgmi has ended: what it found is in the report.
# Parameters: level, seconds (it may take), usual (the time that it takes, in words), kept (file for the report).
umask 022
read -r boot </proc/sys/kernel/random/boot_id
uptime() { cut -d. -f1 /proc/uptime; }
began=$(uptime)
rm -f "$JOB/status"
{ timeout -k 30 "$seconds" dcgmi diag -r "$level" -j >"$JOB/report" 2>"$JOB/errors"; echo $? >"$JOB/status"; } &
looks=0
while [ ! -s "$JOB/status" ]; do
  [ $((looks % 30)) != 3 ] || event progress "dcgmi diag -r $level: $(($(uptime) - began)) s, of $usual"
  looks=$((looks + 1))
  sleep 1
done
read -r status <"$JOB/status"
took=$(($(uptime) - began))
mkdir -p "${kept%/*}" || exit 1
{
  printf 'format=1\nlevel=%s\nboot=%s\nat=%s\nseconds=%s\nstatus=%s\n' "$level" "$boot" "$(date +%s)" "$took" "$status"
  printf 'errors=%s\n' "$(tail -c 2000 "$JOB/errors" | base64 -w0)"
  printf 'report=%s\n' "$(head -c 4194304 "$JOB/report" | gzip -c | base64 -w0)"
} | durable_file "$kept" || exit 1
event progress "dcgmi diag -r $level: ended after $took s"
