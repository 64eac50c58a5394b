# Print `closed BY` where a firewall of the host that others manage lets no client reach the gateway's port, and `health STATUS`
# where the gateway runs. Parameters: port url unit ufw (its file).
ufw_opens() { # a rule that accepts TCP at this port, or at all
  iptables-save -t filter 2>/dev/null | awk -v port="$port" '
    !/^-A ufw6?-user-input .*-j ACCEPT/ || / -p (udp|icmp|ah|esp|gre|igmp) / { next }
    {
      ports = ""
      for (n = 1; n < NF; n++) if ($n == "--dport" || $n == "--dports") ports = $(n + 1)
      count = split(ports, each, ",")
      if (!count) opens = 1
      for (n = 1; n <= count; n++) {
        last = split(each[n], range, ":")
        if (port + 0 >= range[1] + 0 && port + 0 <= range[last] + 0) opens = 1
      }
    }
    END { exit !opens }'
}
firewalld_opens() { # a zone in use with the port, its service, or an open target; a rule of more words counts by its port
  # The default zone has the interfaces that no zone names, and is not called active then.
  default=$(timeout 5 firewall-cmd --get-default-zone 2>/dev/null)
  timeout 5 firewall-cmd --list-all-zones 2>/dev/null | awk -v port="$port" -v usual="$default" '
    BEGIN { service = port == 443 ? " https " : port == 80 ? " http " : "-" }
    /^[^ ]/ { zone = $1; active[zone] = /\(.*active.*\)/ }
    /^  interfaces: *[^ ]/ && active[zone] { bound = 1 }
    /^  target: ACCEPT/ { opens[zone] = 1 }
    /^  services:/ && index($0 " ", service) { opens[zone] = 1 }
    /^  ports:/ {
      for (n = 2; n <= NF; n++) {
        if (split($n, words, "/") != 2 || words[2] != "tcp") continue
        last = split(words[1], range, "-")
        if (port + 0 >= range[1] + 0 && port + 0 <= range[last] + 0) opens[zone] = 1
      }
    }
    index($0, "port=\"" port "\"") && /accept/ { opens[zone] = 1 }
    END {
      for (zone in opens) if (active[zone] || (zone == usual && !bound)) exit 0
      exit 1
    }'
}
if grep -qs '^ENABLED=yes' "$ufw"; then ufw_opens || echo "closed ufw"
elif have firewall-cmd && systemctl is-active --quiet firewalld.service; then firewalld_opens || echo "closed firewalld"
fi
if systemctl is-active --quiet "$unit"; then
  printf 'health %s\n' "$(curl --silent --insecure --noproxy '*' --max-time 2 --output /dev/null --write-out '%{http_code}' "$url" 2>/dev/null)"
fi
