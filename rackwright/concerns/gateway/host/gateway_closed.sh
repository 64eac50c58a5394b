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
  timeout 5 firewall-cmd --list-all-zones 2>/dev/null | awk -v port="$port" '
    BEGIN { service = port == 443 ? " https " : port == 80 ? " http " : "-" }
    /^[^ ]/ { used = /\(active\)|\(.*active.*\)/ }
    used && /^  target: ACCEPT/ { opens = 1 }
    used && /^  services:/ && index($0 " ", service) { opens = 1 }
    used && /^  ports:/ {
      for (n = 2; n <= NF; n++) {
        if (split($n, words, "/") != 2 || words[2] != "tcp") continue
        last = split(words[1], range, "-")
        if (port + 0 >= range[1] + 0 && port + 0 <= range[last] + 0) opens = 1
      }
    }
    used && index($0, "port=\"" port "\"") && /accept/ { opens = 1 }
    END { exit !opens }'
}
if grep -qs '^ENABLED=yes' "$ufw"; then ufw_opens || echo "closed ufw"
elif have firewall-cmd && systemctl is-active --quiet firewalld.service; then firewalld_opens || echo "closed firewalld"
fi
if systemctl is-active --quiet "$unit"; then
  printf 'health %s\n' "$(curl --silent --insecure --noproxy '*' --max-time 2 --output /dev/null --write-out '%{http_code}' "$url" 2>/dev/null)"
fi
