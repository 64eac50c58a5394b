(() => {
  "use strict";
  const hosts = Array.from(document.querySelectorAll(".host"));
  const chips = Array.from(document.querySelectorAll(".chip"));
  const field = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const expand = document.getElementById("expand");
  const texts = new Map(hosts.map((host) => {
    const errors = Array.from(host.querySelectorAll(".error"), (error) => error.textContent);
    return [host, [host.dataset.name, host.dataset.state, ...errors].join("\n").toLowerCase()];
  }));
  document.querySelector(".tools").hidden = false;

  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const states = chips.filter((chip) => chip.getAttribute("aria-pressed") === "true").map((chip) => chip.dataset.state);
    let count = 0;
    for (const host of hosts) {
      const fits = words.every((word) => texts.get(host).includes(word)) &&
        (states.length === 0 || states.includes(host.dataset.state));
      host.classList.toggle("gone", !fits);
      count += fits ? 1 : 0;
    }
    shown.textContent = count === hosts.length ? "" : `${count} of ${hosts.length} hosts`;
  };

  const reveal = () => {
    const host = hosts.find((one) => one.id === location.hash.slice(1));
    if (host) {
      host.classList.remove("gone");
      host.open = true;
      host.scrollIntoView({ block: "start" });
    }
  };

  field.addEventListener("input", filter);
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
      filter();
    });
  }
  expand.addEventListener("click", () => {
    const open = expand.textContent === "open all";
    for (const host of hosts) host.open = open && !host.classList.contains("gone");
    expand.textContent = open ? "close all" : "open all";
  });
  window.addEventListener("hashchange", reveal);
  reveal();
})();
