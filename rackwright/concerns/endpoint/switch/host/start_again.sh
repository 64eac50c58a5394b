# What keeps endpoints that run from starting again as they were proven, before a host is drained or restarted.
# Parameters: home (the endpoints' folder) room written again by (of the function `able`, which is can_start.sh).
for own in "$home"/*/; do
  own=${own%/}
  name=${own##*/} unit=rackwright-${own##*/}.service publishes=no
  releases=$(readlink -f "$own/proven") && [ -f "$releases/spec.json" ] || continue
  case $(tr -d ' \n' <"$releases/spec.json") in *'"network":"bridge"'*) publishes=yes ;; esac
  lacks=$(able) || printf '%s\n' "$name $lacks"
done
exit 0
