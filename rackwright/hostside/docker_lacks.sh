# Functions that name what dockerd made in the kernel when it started, must find there to start a container that publishes a
# port, and does not: a running container needs none of it, so it may be gone for weeks (moby/moby#46147). It prints nothing
# where dockerd does not make it (`"iptables": false`), or where that cannot be found out.
docker_words() { # dockerd's process; sets `lacks_words`: its command line, then its file without blanks; once a process
  [ "${lacks_of:-}" != "$1" ] || return 0
  lacks_of=$1
  lacks_words=" $(tr '\000\n' '  ' 2>/dev/null <"/proc/$1/cmdline")" lacks_file=/etc/docker/daemon.json
  case $lacks_words in
    *' --config-file='*) lacks_file=${lacks_words#*' --config-file='} lacks_file=${lacks_file%% *} ;;
    *' --config-file '*) lacks_file=${lacks_words#*' --config-file '} lacks_file=${lacks_file%% *} ;;
  esac
  [ ! -r "$lacks_file" ] || lacks_words=$lacks_words$(tr -d ' \t\r\n' <"$lacks_file")
}
docker_lacks() { # `docker info` as JSON, dockerd's process; prints a name a line
  [ "/proc/$2/ns/net" -ef /proc/self/ns/net ] || return 0
  docker_words "$2"
  case $lacks_words in
    *' --iptables=false '* | *' --iptables=0 '* | *' --iptables=f '* | *'"iptables":false'*) return 0 ;;
    *' --bridge=none '* | *' --bridge none '* | *' -b none '* | *' -b=none '* | *'"bridge":"none"'*) return 0 ;;
    *' --bridge='*) lacks_bridge=${lacks_words#*' --bridge='} lacks_bridge=${lacks_bridge%% *} ;;
    *' --bridge '*) lacks_bridge=${lacks_words#*' --bridge '} lacks_bridge=${lacks_bridge%% *} ;;
    *' -b '*) lacks_bridge=${lacks_words#*' -b '} lacks_bridge=${lacks_bridge%% *} ;;
    *'"bridge":"'?*) lacks_bridge=${lacks_words#*'"bridge":"'} lacks_bridge=${lacks_bridge%%'"'*} ;;
    *) lacks_bridge= ;;
  esac
  lacks_bridge=${lacks_bridge:-docker0}
  if [ ! -e "/sys/class/net/$lacks_bridge" ]; then printf '%s\n' "interface $lacks_bridge"
  elif read -r lacks_flags <"/sys/class/net/$lacks_bridge/flags" && [ $((lacks_flags & 1)) = 0 ]; then
    printf '%s\n' "interface $lacks_bridge down"
  fi
  case $1 in
    *'"FirewallBackend":{"Driver":"nftables'*) lacks_table ip; return 0 ;;
    *'"FirewallBackend":{"Driver":"iptables'*) ;;
    *'"FirewallBackend":{"Driver":"'*) return 0 ;;
  esac
  lacks_chains iptables DOCKER-USER
  # A bridge without IPv6 needs nothing of ip6tables, which dockerd looks after from version 27 on.
  grep -q "^[0-9a-f]* [0-9a-f]* [0-9a-f]* 00 [0-9a-f]*  *$lacks_bridge\$" /proc/net/if_inet6 2>/dev/null || return 0
  case $lacks_words in
    *' --ip6tables=false '* | *'"ip6tables":false'*) ;;
    *' --ip6tables '* | *' --ip6tables=true '* | *'"ip6tables":true'*) lacks_chains ip6tables '' ;;
    *) lacks_version=${1#*'"ServerVersion":"'} lacks_version=${lacks_version%%[!0-9]*}
      [ "${lacks_version:-0}" -lt 27 ] || lacks_chains ip6tables '' ;;
  esac
}
lacks_chains() { # the command, a further chain that FORWARD must lead to
  # Without a table's name the older backend loads no module. A rule that another tool made may be unreadable to it.
  lacks_rules=$("$1-save" 2>/dev/null) || return 0
  case $lacks_rules in *' is incompatible, use '*) return 0 ;; esac
  printf '%s\n' "$lacks_rules" | awk -v user="$2" -v v6="$([ "$1" = iptables ] || echo ' (IPv6)')" '
    /^\*/ { table = substr($1, 2) }
    /^:/ { there[table, substr($1, 2)] = 1 }
    /^-A / { for (i = 3; i < NF; i++) if ($i == "-j" || $i == "-g") leads[table, $2] = leads[table, $2] " " $(i + 1) }
    function needs(table, from, chain) {
      if (!((table, chain) in there)) print table " " chain v6
      else if (!reaches(table, from, chain)) print table " " from " to " chain v6
    }
    function reaches(table, from, chain,  found, names, many, i, j, next_ones, seen) {
      found = from
      for (i = 1; i <= (many = split(found, names, " ")); i++) {
        if (names[i] == chain) return 1
        split(leads[table, names[i]], next_ones, " ")
        for (j in next_ones) if (!(next_ones[j] in seen)) { seen[next_ones[j]] = 1; found = found " " next_ones[j] }
      }
      return 0
    }
    END {
      needs("nat", "PREROUTING", "DOCKER"); needs("filter", "FORWARD", "DOCKER")
      if (user) needs("filter", "FORWARD", user)
    }'
}
lacks_table() { # a family of nftables
  lacks_tables=$(nft list tables 2>/dev/null) || return 0
  case "
$lacks_tables
" in *"
table $1 docker-bridges
"*) ;; *) printf '%s\n' "nft table $1 docker-bridges" ;; esac
}
