# Let unit and pointer be those of the release that runs already. Parameters: unit home release_hash.
set -e
ln -sfn "releases/$release_hash" "$home/current.new"
mv -fT "$home/current.new" "$home/current"
systemctl daemon-reload
systemctl enable --quiet "$unit"
set +e
