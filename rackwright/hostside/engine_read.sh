# What Docker answered.
printf '%s\n' "$reading_engine"
