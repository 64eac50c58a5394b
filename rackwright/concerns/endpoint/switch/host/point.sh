# Let unit, pointer and binding be those of the release that runs already. Parameters: unit release home units binding
# held (drop-in that keeps the endpoint from starting).
set -e
printf %s "$binding" | durable_file "$home/binding"
durable_file "$units/$unit" <"$release/$unit"
durable_link "$home/current" "releases/${release##*/}"
rm -f "$held"
rmdir "${held%/*}" 2>/dev/null || true
systemctl enable --quiet --no-reload "$unit"
systemctl daemon-reload
set +e
