# Prints the metrics. Environment: times (rows `EPOCH PATH`), uptime, now. Of a KEY=VALUE file the first row of a key counts.
function text(value) { gsub(/[^ -~]/, "?", value); gsub(/[\\"]/, "_", value); return substr(value, 1, 200) }
function named(key, value) { return key "=\"" text(value) "\"" }
function put(name, labels, value) { rows[name] = rows[name] name (labels == "" ? "" : "{" labels "}") " " value "\n" }
function of(endpoint) { return named("endpoint", endpoint) }
function seconds(value) { return value ~ /^[0-9]+(\.[0-9]+)?$/ ? value + 0 : -1 }
function at_epoch(up) { return seconds(up) < 0 ? "" : int(now - uptime + up) }
function metric(name, kind, help) { order[++metrics] = name; heads[name] = "# HELP " name " " help "\n# TYPE " name " " kind "\n" }
function json(line) { sub(/^ "[a-z_]+": "?/, "", line); sub(/"?,?$/, "", line); return line }
BEGIN {
  now = ENVIRON["now"] + 0; uptime = ENVIRON["uptime"] + 0
  metric("rackwright_last_look_time_seconds", "gauge", "When the host last looked after itself.")
  metric("rackwright_watch_paused", "gauge", "1 while an operator has paused the checks of the firewall, or the looks at engines.")
  metric("rackwright_lease_held", "gauge", "1 while a run has the host.")
  metric("rackwright_lease_age_seconds", "gauge", "For how long that run has it.")
  metric("rackwright_drained", "gauge", "1 while an operator has drained the host.")
  metric("rackwright_mark", "gauge", "1 for each mark that keeps a host or an endpoint out of service, or rollouts away from it.")
  metric("rackwright_mark_time_seconds", "gauge", "When the mark was made.")
  metric("rackwright_repairs", "gauge", "Repairs of the firewall that the host still lists.")
  metric("rackwright_last_repair_time_seconds", "gauge", "When the firewall was last repaired.")
  metric("rackwright_gpu_faults", "gauge", "Faults of GPUs and network ports that the host sees.")
  metric("rackwright_gpu_fault", "gauge", "1 for each of them.")
  metric("rackwright_release_info", "gauge", "The release that an endpoint points at.")
  metric("rackwright_release_proven", "gauge", "1 where that release has proven itself.")
  metric("rackwright_last_proof_time_seconds", "gauge", "When a release of the endpoint last proved itself.")
  metric("rackwright_endpoint_start_time_seconds", "gauge", "When the unit of the endpoint last started.")
  metric("rackwright_endpoint_looked_time_seconds", "gauge", "When the watch last looked at the endpoint.")
  metric("rackwright_endpoint_state", "gauge", "1 for the state that this look found.")
  metric("rackwright_endpoint_state_time_seconds", "gauge", "Since when it is in that state.")
  metric("rackwright_endpoint_would_restart", "gauge", "1 where watch.act: restart would have restarted it.")
  metric("rackwright_acts_total", "counter", "Acts of the watch on the endpoint.")
  metric("rackwright_last_act_time_seconds", "gauge", "When it last acted, how, and with what result.")
  states = split("serving idle busy loading skipped stalled hung dead unmeasured", known, " ")
  for (i = 1; i <= states; i++) is_known[known[i]] = 1
  # Of these each endpoint has a row also where nothing was done: a counter that begins at 1 has not increased.
  acts = split("restart tell give-up sick", act, " ")
  put("rackwright_last_look_time_seconds", "", now)
}
# Each record names a file. One that has gone meanwhile has no rows: an awk ends at an argument that is missing.
{
  parts = split($0, part, "/"); file = part[parts]; kind = part[parts - 1]; key = ""; number = 0
  if (file == "spec.json") { kind = "spec"; endpoint[key = part[parts - 2]] = 1 }
  else if (kind == "watch" && file ~ /^acts-/) { kind = "acts"; endpoint[key = substr(file, 6)] = 1 }
  else if (kind == "watch" && file == "firewall") kind = "repairs"
  else if (kind !~ /^watch/ && file == "gpus") kind = key = file
  else if (kind == "watched" || kind == "watch") { if (file ~ /\./) next; endpoint[key = file] = 1 }
  else if (kind == "marks") key = file
  else kind = file
  while ((getline row < $0) > 0) each_row(row, ++number)
  close($0)
}
function each_row(row, number,   at, name, field) {
  if (kind == "spec") {
    if (row ~ /^ "(hash|image|served_name)": /) {
      name = substr(row, 3); sub(/".*/, "", name)
      if (!((key, name) in spec)) spec[key, name] = json(row)
    }
    return
  }
  split(row, field, " ")
  if (kind == "acts") {
    if (field[2] == "" || field[2] == "clear") return
    done[key, field[2]]++
    if (seconds(field[1]) >= 0) { last_act[key] = field[1] + 0; last_kind[key] = field[2]; last_result[key] = field[3] }
  } else if (kind == "repairs") {
    repairs++; if (seconds(field[1]) >= 0) repaired = field[1] + 0
  } else if (kind == "faults") {
    at = index(field[1], "-")
    put("rackwright_gpu_fault", named("kind", at ? substr(field[1], 1, at - 1) : field[1]) "," named("of", at ? substr(field[1], at + 1) : ""), 1)
  } else if (kind ~ /-paused$/) {
    if (number == 1 && field[1] + 0 > uptime) paused[kind] = 1
  } else if ((at = index(row, "=")) > 0) {
    name = substr(row, 1, at - 1)
    if (!((kind, key, name) in value)) value[kind, key, name] = substr(row, at + 1)
  }
}
END {
  written = split(ENVIRON["times"], stamp, "\n")
  for (i = 1; i <= written; i++) {
    at = index(stamp[i], " "); path = substr(stamp[i], at + 1); when = substr(stamp[i], 1, at - 1)
    n = split(path, part, "/")
    if (part[n] == "proven") { proven[part[n - 1]] = when; endpoint[part[n - 1]] = 1 }
    else if (part[n - 1] == "marks") marked[part[n]] = when
    else if (part[n] == "drained") drained_at = when
    else { sub(/^invocation:rackwright-/, "", part[n]); sub(/\.service$/, "", part[n]); started[part[n]] = when }
  }
  put("rackwright_watch_paused", named("what", "firewall"), ("watch-paused" in paused) + 0)
  put("rackwright_watch_paused", named("what", "engines"), ("engines-paused" in paused) + 0)
  taken = seconds(value["lease", "", "taken"]); expires = seconds(value["lease", "", "expires"])
  held = taken >= 0 && taken <= uptime && uptime < expires
  put("rackwright_lease_held", "", held + 0)
  if (held) put("rackwright_lease_age_seconds", "", uptime - taken)
  put("rackwright_drained", "", (drained_at != "") + 0)
  if (drained_at != "") put("rackwright_mark_time_seconds", of("") "," named("kind", "drained"), drained_at)
  put("rackwright_repairs", "", repairs + 0)
  if (repaired) put("rackwright_last_repair_time_seconds", "", repaired)
  if (seconds(value["gpus", "gpus", "faults"]) >= 0) put("rackwright_gpu_faults", "", value["gpus", "gpus", "faults"])
  for (mark in marked) {
    at = index(mark, "-")
    labels = of(at ? substr(mark, at + 1) : "") "," named("kind", at ? substr(mark, 1, at - 1) : mark)
    put("rackwright_mark", labels "," named("word", value["marks", mark, "word"]), 1)
    put("rackwright_mark_time_seconds", labels, marked[mark])
  }
  for (name in endpoint) each_endpoint(name)
  for (i = 1; i <= metrics; i++) if (order[i] in rows) printf "%s%s", heads[order[i]], rows[order[i]]
}
function each_endpoint(name,   labels, found, i, pair) {
  labels = of(name)
  if ((name, "hash") in spec) {
    put("rackwright_release_info", labels "," named("release", spec[name, "hash"]) "," named("model", spec[name, "served_name"]) "," named("engine", value["watched", name, "engine"]) "," named("image", spec[name, "image"]), 1)
    put("rackwright_release_proven", labels, index(" " ENVIRON["proven"] " ", " " name " ") > 0)
  }
  if (name in proven) put("rackwright_last_proof_time_seconds", labels, proven[name])
  if (name in started) put("rackwright_endpoint_start_time_seconds", labels, started[name])
  found = value["watch", name, "state"]
  if (found != "") {
    for (i = 1; i <= states; i++) put("rackwright_endpoint_state", labels "," named("state", known[i]), (known[i] == found) + 0)
    if (!(found in is_known)) put("rackwright_endpoint_state", labels "," named("state", found), 1)
    if ((at = at_epoch(value["watch", name, "looked"])) != "") put("rackwright_endpoint_looked_time_seconds", labels, at)
    if ((at = at_epoch(value["watch", name, "since"])) != "") put("rackwright_endpoint_state_time_seconds", labels, at)
    put("rackwright_endpoint_would_restart", labels, (value["watch", name, "would"] == "restart") + 0)
  }
  if (("watched", name, "engine") in value || found != "") for (i = 1; i <= acts; i++) done[name, act[i]] += 0
  for (pair in done) { split(pair, part, SUBSEP); if (part[1] == name) put("rackwright_acts_total", labels "," named("act", part[2]), done[pair]) }
  if (name in last_act) put("rackwright_last_act_time_seconds", labels "," named("act", last_kind[name]) "," named("result", last_result[name]), last_act[name])
}
