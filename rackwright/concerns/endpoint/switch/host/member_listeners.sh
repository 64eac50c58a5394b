# Where an endpoint's own processes listen on this host, those of its lifelines too. Parameters: unit container.
# Prints a line "listens ADDRESS:PORT" for each, once.
main=$(timeout 20 docker inspect --format '{{.State.Pid}}' "$container" 2>/dev/null) || exit 1
inside=$(cat "/proc/$main/cgroup") || exit 1
beside=$(cat "/proc/$(systemctl show --property MainPID --value "$unit")/cgroup" 2>/dev/null)
ss -Hltnp | while read -r _ _ _ here _ users; do
  while :; do
    case $users in *pid=[0-9]*) users=${users#*pid=} pid=${users%%[!0-9]*} ;; *) break ;; esac
    group=$(cat "/proc/$pid/cgroup" 2>/dev/null) || continue
    case $group in "$inside" | "${beside:-none}") printf '%s\n' "listens $here"; break ;; esac
  done
done | sort -u
