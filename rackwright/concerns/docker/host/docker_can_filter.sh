# A dockerd that is stopped starts again only where it can make its chains: not once the running kernel's modules are gone, as
# after an upgrade of the kernel. The file $reason, if any, gets what went wrong, and $cause that it is Docker's.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
command -v iptables >/dev/null || exit 0
for table in nat filter; do
  iptables --wait 10 -t $table -X RACKWRIGHT-TRY 2>/dev/null
  said=$(iptables --wait 10 -t $table -N RACKWRIGHT-TRY 2>&1 && iptables --wait 10 -t $table -X RACKWRIGHT-TRY 2>&1) && continue
  printf '%s\n' "iptables cannot make a chain in $table, so dockerd would not start again: $said; next: reboot, when the kernel was upgraded" |
    tr '\n' ' ' | tee "${reason:-/dev/null}"
  printf 'docker\n' >"${cause:-/dev/null}"
  exit 1
done
