# Note the maps as they are: their keys may have changed since this deploy has rendered them. Parameters: folder left (SHA-256 of the
# files) journal program.
#include key_rows.sh
one_at_a_time
sha256sum "$folder"/*.map | awk 'NR == FNR { sum[$2] = $1; next } $2 in sum { $1 = sum[$2] } 1' - "$left" | durable_file "$left" 0644
