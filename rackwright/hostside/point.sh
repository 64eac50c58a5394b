# Let unit, pointer and binding be those of the release that runs already. Parameters: unit release home units binding.
set -e
printf %s "$binding" >"$home/binding.new"
mv -f "$home/binding.new" "$home/binding"
install -m 0644 "$release/$unit" "$units/.$unit.new"
mv -f "$units/.$unit.new" "$units/$unit"
ln -sfn "releases/${release##*/}" "$home/current.new"
mv -fT "$home/current.new" "$home/current"
systemctl daemon-reload
systemctl enable --quiet "$unit"
set +e
