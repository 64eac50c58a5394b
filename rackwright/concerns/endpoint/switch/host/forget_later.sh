# Take the releases that came after this one out of the history, so that they are pruned. Parameters: home release_hash.
set -e
cd "$home"
sed "/^$release_hash\$/q" history | durable_file "$home/history"
