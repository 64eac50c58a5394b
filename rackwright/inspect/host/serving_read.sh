# Print what each endpoint that runs listens on: "serves NAME" and its spec.json in base64. Parameters: home.
for own in "$home"/*/; do
  own=${own%/} && name=${own##*/}
  [ -f "$own/current/spec.json" ] && systemctl is-active --quiet "rackwright-$name.service" || continue
  printf '%s\n' "serves $name $(base64 -w0 <"$own/current/spec.json")"
done
exit 0
