# How a head starts processes on the other members by SSH, for engines that want mpirun. Read by run-member.
# Each start of the group has keys of its own, in a folder of root's that a reboot empties: a member sends its host key
# over its lifeline, the head answers with the key that may come in, and what comes in starts orted in the member's container.
blob() { # file of a public key
  local kind key
  read -r kind key _ <"$1" && [ "$kind" = ssh-ed25519 ] && [[ $key =~ ^[A-Za-z0-9+/]{68}$ ]] && printf '%s\n' "$key"
}
make_key() {
  ssh-keygen -q -t ed25519 -N '' -C "$container" -f "$here/key" </dev/null || give_up "ssh-keygen cannot make a key in $here"
  word=$(blob "$here/key.pub") || give_up "$here/key.pub is no key of ed25519"
}
fabric() { # prints what of this host's addresses the ranks may use: its own network, where all members are in it
  local own place bits mine theirs
  own=$(ip -o -4 address show dev "$interface" | awk -v address="$ADDRESS" '{ split($4, own, "/") } own[1] == address { print $4; exit }')
  bits=$((32 - ${own#*/})) mine=$(whole_of "$ADDRESS")
  for place in ${MEMBERS//,/ }; do
    theirs=$(whole_of "$place")
    [ $((mine >> bits)) = $((theirs >> bits)) ] || { own=${MEMBERS//,//32,}/32; break; }
  done
  printf '%s\n' "$own"
}
whole_of() { # an address as one number
  local a b c d
  IFS=. read -r a b c d <<<"$1"
  printf '%s\n' $(((a << 24) + (b << 16) + (c << 8) + d))
}

# -- the head

write_known_hosts() { # of the members, with the keys that they have sent
  local rank line said theirs time key
  : >"$here/known_hosts" || return 1
  for ((rank = 1; rank < ${#places[@]}; rank++)); do
    heard "$rank" || return 1
    printf '[%s]:%s ssh-ed25519 %s\n' "${places[rank]}" "$launch_port" "$key" >>"$here/known_hosts" || return 1
  done
}
prepare_launch() { # what mpirun's agent leaves here is asked for once
  asked_in=$home/scratch/launch launches=()
  rm -rf "$asked_in" && mkdir "$asked_in" && write_known_hosts
}
launch_asked() { # starts on other members what mpirun asks for; gives up when one of them cannot be reached
  local rank place text half
  for ((rank = 1; rank < ${#places[@]}; rank++)); do
    place=${places[rank]}
    if [ -n "${launches[rank]:-}" ]; then
      [ "${launches[rank]}" != ended ] && ! kill -0 "${launches[rank]}" 2>/dev/null || continue
      wait "${launches[rank]}" && launches[rank]=ended && continue
      # When mpirun is told to stop, both ends stop; what it says then counts.
      for ((half = 0; half < 10; half++)); do
        kill -0 "$engine" 2>/dev/null || return 0
        sleep 0.5
      done
      put stop -
      give_up "rank $rank ($place): its processes cannot be started, or have ended; all stop"
    fi
    [ -f "$asked_in/$place" ] && [ ! -L "$asked_in/$place" ] && IFS= read -r -t 1 -n 8000 text <"$asked_in/$place" || continue
    # No alive messages: whether a silent member still counts is decided by its lifeline alone.
    ssh -F none -T -p "$launch_port" -i "$here/key" -o BindAddress="$ADDRESS" -o UserKnownHostsFile="$here/known_hosts" \
      -o GlobalKnownHostsFile=none -o StrictHostKeyChecking=yes -o HostKeyAlgorithms=ssh-ed25519 -o BatchMode=yes \
      -o IdentitiesOnly=yes -o IdentityAgent=none -o PreferredAuthentications=publickey -o ConnectTimeout=5 \
      -o ConnectionAttempts=60 -o LogLevel=ERROR "root@$place" "$text" </dev/null &
    launches[rank]=$!
  done
}

# -- the other members

open_door() { # key that may come in: the head's, and it may start orted here
  local pam=no sshd
  [[ $1 =~ ^[A-Za-z0-9+/]{68}$ ]] || give_up "the head has sent no key"
  sshd=$(PATH=$PATH:/usr/sbin:/sbin command -v sshd) || give_up "this host has no sshd"
  # Without PAM sshd lets nobody in whose password is locked, by key neither.
  case $(getent shadow root) in root:!*) pam=yes ;; esac
  printf 'from="%s",restrict,command="/bin/bash %s %s" ssh-ed25519 %s\n' \
    "$HEAD" "$folder/start-ranks" "$HEAD" "$1" >"$here/may-come-in" || give_up "$here cannot be written"
  mkdir -p -m 0755 /run/sshd
  "$sshd" -D -e -f /dev/null -h "$here/key" -o ListenAddress="$ADDRESS:$launch_port" -o PidFile=none -o UsePAM="$pam" \
    -o AuthorizedKeysFile="$here/may-come-in" -o AuthenticationMethods=publickey -o AllowUsers="root@$HEAD" \
    -o PermitRootLogin=forced-commands-only -o DisableForwarding=yes -o PermitTTY=no -o PermitUserRC=no \
    -o PermitUserEnvironment=no -o LogLevel=ERROR &
  door=$!
}
close_door() {
  [ -n "$door" ] || return 0
  kill "$door" 2>/dev/null
  wait "$door" 2>/dev/null
  door=''
}
