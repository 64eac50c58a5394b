# What this host sees of the others of its endpoint, and of what connects them.
# Parameters: own (its address towards them), others (theirs), port (one that the members listen at), transport, launch
# (programs that start ranks on the others, if anything does).
lacking=
for program in $launch; do
  have "$program" || [ -x "/usr/sbin/$program" ] || lacking="$lacking $program"
done
[ -z "$lacking" ] || printf '%s\n' "members.lacking=${lacking# }"
interface=$(ip -o -4 address show 2>/dev/null | awk -v address="$own" '{ split($4, found, "/") } found[1] == address { print $2; exit }')
mtu=
[ -z "$interface" ] || read -r mtu <"/sys/class/net/$interface/mtu"
printf '%s\n' "members.interface=$interface" "members.mtu=$mtu"
have ping || echo members.ping=missing
for other in $others; do
  # A network may drop pings, and a host that refuses a connection is reached as well.
  ( small=no large=no
    if have ping && ping -n -q -c 1 -W 2 "$other" >/dev/null 2>&1; then
      small=yes
      # 28 bytes are the headers; -M do: no router on the way may divide it.
      if ping -n -q -c 2 -i 0.2 -W 2 -M do -s "$((${mtu:-1500} - 28))" "$other" >/dev/null 2>&1; then large=yes; fi
    else
      # shellcheck disable=SC2016 - bash expands its own arguments
      said=$(LC_ALL=C timeout 2 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$other" "$port" 2>&1)
      status=$?
      case $status:$said in 0:* | *refused*) small=tcp ;; esac
    fi
    printf '%s\n' "member $other $small $large" ) &
done
wait
if [ "$transport" = rdma ]; then
  [ ! -c /dev/infiniband/uverbs0 ] || echo rdma.verbs=yes
  for folder in /sys/class/infiniband/*/ports/*; do
    [ -e "$folder/state" ] || continue
    read -r _ state <"$folder/state"
    device=${folder#/sys/class/infiniband/}
    printf '%s\n' "rdma ${device%%/*}/${folder##*/} $state"
  done
fi
if [ "$transport" = nvlink ]; then
  if have nvidia-imex-ctl; then
    timeout 10 nvidia-imex-ctl -N 2>/dev/null | sed -n 's/^ *Domain State: *\([A-Z_]*\).*/imex.state=\1/p'
    # The last line that a program prints may lack its end, and sed ends none.
    echo
  else echo imex.state=missing; fi
  for file in /dev/nvidia-caps-imex-channels/channel*; do
    [ ! -e "$file" ] || { echo imex.channels=yes; break; }
  done
  if [ -r /etc/nvidia-imex/nodes_config.cfg ]; then
    # The order is its own, so it counts; comments and empty lines do not.
    sum=$(sed 's/[[:space:]]*\(#.*\)*$//; /^$/d' /etc/nvidia-imex/nodes_config.cfg | sha256sum)
    printf '%s\n' "imex.nodes=${sum%% *}"
  fi
  # shellcheck disable=SC2016 - dpkg-query's own variables
  dpkg-query -W -f '${db:Status-Abbrev} ${Version}\n' 'nvidia-imex*' 2>/dev/null | sed -n 's/^ii *\([0-9.]*\).*/imex.version=\1/p'
fi
