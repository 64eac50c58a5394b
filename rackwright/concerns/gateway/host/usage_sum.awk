# Sums access-log rows, each a JSON object, by client and model. A row that is not one, or lacks what is summed, is counted and left out.
# Names are cut, and at most `most` pairs have rows of their own, so that memory is bounded whatever clients write.
function text(value) {
  if (value !~ /^"/) return "-"
  value = substr(value, 2, length(value) - 2)
  gsub(/[^ -~]|[\\"]/, "?", value)
  return value == "" ? "-" : substr(value, 1, 128)
}
function number(value) { return value ~ /^"?[0-9]+"?$/ && length(value) < 18 ? substr(value, value ~ /^"/ ? 2 : 1) + 0 : 0 }
function fields(row,   name) {
  split("", field)
  if (!sub(/^[ \t]*\{[ \t]*/, "", row)) return 0
  while (match(row, /^"([^"\\]|\\.)*"[ \t]*:[ \t]*/)) {
    name = substr(row, 1, RLENGTH)
    sub(/"[ \t]*:[ \t]*$/, "", name)
    name = substr(name, 2)
    row = substr(row, RLENGTH + 1)
    if (!match(row, /^("([^"\\]|\\.)*"|-?[0-9.]+|true|false|null)/)) return 0
    if (!(name in field)) field[name] = substr(row, 1, RLENGTH)
    row = substr(row, RLENGTH + 1)
    if (!sub(/^[ \t]*,[ \t]*/, "", row)) break
  }
  return row ~ /^[ \t]*\}[ \t]*$/
}
# HAProxy says of itself, too, when it starts and stops.
!/^[ \t]*\{/ { next }
length($0) > 65536 || !fields($0) || !("key" in field) || !("status" in field) { unread++; next }
{
  pair = text(field["key"]) "\t" text(field["model"])
  if (!(pair in requests) && pairs >= most) pair = "(others)\t(others)"
  if (!(pair in requests)) pairs++
  status = number(field["status"])
  requests[pair]++
  refused[pair] += status >= 400 && status < 500
  failed[pair] += status < 100 || status >= 500
  cut[pair] += status >= 100 && status < 400 && text(field["end"]) !~ /^[-L]/
  ms[pair] += number(field["total_ms"])
  received[pair] += number(field["bytes_in"])
  sent[pair] += number(field["bytes_out"])
}
END {
  for (pair in requests) printf "row\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\n", pair, requests[pair], refused[pair], failed[pair], cut[pair], ms[pair], received[pair], sent[pair]
  printf "unread\t%.0f\n", unread
}
