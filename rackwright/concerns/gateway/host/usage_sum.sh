# Sums a gateway's access log of the last `seconds`. Parameters: seconds unit tag most program (usage_sum.awk).
# The unit is what journald has seen itself: a program that only calls itself like the gateway is not counted.
now=$(date +%s)
begins=$(journalctl --quiet --no-pager --output short-unix 2>/dev/null | head -n 1 | cut -d . -f 1 | tr -cd 0-9)
printf 'begins\t%s\t%s\n' "${begins:-0}" "$((now - seconds))"
journalctl --quiet --no-pager --output cat --since "@$((now - seconds))" "_SYSTEMD_UNIT=$unit" "SYSLOG_IDENTIFIER=$tag" |
  LC_ALL=C awk -v most="$most" "$program"
