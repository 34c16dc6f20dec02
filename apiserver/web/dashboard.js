// The dashboard: asks the REST interface every two seconds, and sooner when the stream of events says that something changed.
// What is shown is in the address: filter, sort, page and the open job.
// Everything shown goes through textContent: names come from users.
"use strict";

const EVERY_MS = 2000, SOONER_MS = 300, OLD_MS = 6000, PAGE = 50, OUTPUT_BYTES = 65536, OUTPUT_SHOWN = 400000, REST = 4;
const TOKEN_KEY = "xce-token";
const byId = (id) => document.getElementById(id);
const state = { lastOk: 0, busy: false, again: false, timer: 0, older: null, openJob: null, output: null };

// ---- elements ----
function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  if (className) element.className = className;
  return element;
}

// Fills a table: each row is a list of cells, a cell is text, an element, or {text, className}.
function fill(tableId, rows, whenEmpty) {
  const table = byId(tableId);
  const heads = table.tHead.rows[0].cells;
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.job : null;
  const body = make("tbody");
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((cell, i) => {
      const td = line.insertCell();
      td.dataset.label = heads[i].textContent;
      if (heads[i].className) td.className = heads[i].className;
      if (cell instanceof Node) td.append(cell);
      else if (cell !== null && typeof cell === "object") { td.append(make("span", cell.text)); td.classList.add(...cell.className.split(" ")); }
      else td.append(make("span", cell === null || cell === undefined || cell === "" ? "–" : cell));
      if (td.textContent === "–") td.classList.add("none");
    });
  }
  if (rows.length === 0) {
    const td = body.insertRow().insertCell();
    td.colSpan = heads.length;
    td.className = "empty";
    td.textContent = whenEmpty;
  }
  table.tBodies[0].replaceWith(body);
  if (focused) { const button = body.querySelector(`[data-job="${CSS.escape(focused)}"]`); if (button) button.focus(); }
}

// ---- words ----
function span(ms) {
  if (ms < 1000) return Math.max(0, Math.round(ms)) + " ms";
  if (ms < 10000) return (ms / 1000).toFixed(1) + " s";
  const s = Math.round(ms / 1000);
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s / 60) % 60 + " min";
  return Math.floor(s / 86400) + " d " + Math.floor(s / 3600) % 24 + " h";
}
function ago(time) { // coarse: it is read at a glance
  if (!time) return "–";
  const s = Math.max(0, Math.round((Date.now() - Date.parse(time)) / 1000));
  if (s < 2) return "now";
  if (s < 60) return s + " s ago";
  if (s < 3600) return Math.floor(s / 60) + " min ago";
  if (s < 86400) return Math.floor(s / 3600) + " h ago";
  return Math.floor(s / 86400) + " d ago";
}
const count = (n, word) => n + " " + word + (n === 1 ? "" : "s");
const memory = (mb) => (mb >= 1024 ? (mb / 1024).toFixed(mb % 1024 ? 1 : 0) + " GiB" : mb + " MiB");
const jobName = (job) => (job.array_id ? `${job.array_id}[${job.array_index}]` : String(job.id));
const STATE_CLASS = {
  COMPLETED: "is-good", RUNNING: "is-good", UP: "is-good", leader: "is-good", PENDING: "is-warn", HELD: "is-warn", SUSPENDED: "is-warn",
  STARTING: "is-warn", DRAINED: "is-warn", candidate: "is-warn", FAILED: "is-bad", KILLED: "is-bad", TIMEOUT: "is-bad", LOST: "is-bad",
  UNREACHABLE: "is-bad", GONE: "is-bad",
};
const stateCell = (word) => ({ text: word.toLowerCase(), className: "short state " + (STATE_CLASS[word] || "quiet") });
const short = (text) => ({ text: text === "" || text === null ? "–" : String(text), className: "short" });

function took(job) {
  if (!job.start_time) return "–";
  return span((job.end_time ? Date.parse(job.end_time) : Date.now()) - Date.parse(job.start_time));
}
// An estimate is no promise, and one that has passed is none at all.
function soonWords(time) {
  const ms = Date.parse(time) - Date.now();
  return ms < 1000 ? "soon" : "in about " + span(Math.max(1000, Math.round(ms / 1000) * 1000));
}
function where(job) {
  if (job.state === "PENDING" && job.estimated_start_time) return (job.reason ? job.reason + "; " : "") + "may start " + soonWords(job.estimated_start_time);
  if (job.reason) return job.hosts.length && !job.end_time ? job.hosts.join(", ") + " – " + job.reason : job.reason;
  if (job.state === "PENDING") return "the scheduler has not looked at it yet";
  if (job.exit_code) return "exit code " + job.exit_code + (job.hosts.length ? " on " + job.hosts.join(", ") : "");
  return job.hosts.join(", ");
}
function meter(used, all, text) {
  const cell = make("span");
  const bar = make("progress");
  bar.max = Math.max(1, all);
  bar.value = used;
  cell.append(bar, text);
  return cell;
}

// ---- requests ----
function headers() {
  const token = sessionStorage.getItem(TOKEN_KEY);
  return token ? { Authorization: "Bearer " + token } : {};
}

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store", headers: headers(), signal: AbortSignal.timeout(12000) });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  if (answer.status === 401) askForToken(problem.detail);
  const error = new Error(problem.detail || answer.status + " " + answer.statusText);
  error.status = answer.status;
  throw error;
}
const get = async (path) => (await ask(path)).json();

function askForToken(why) {
  byId("login-open").hidden = false;
  if (sessionStorage.getItem(TOKEN_KEY) && why) byId("login-why").textContent = why;
  if (!byId("login").open && !byId("job").open) byId("login").showModal();
}

const LISTED = ["state", "user", "queue", "name", "host", "sort", "order", "page_token"];
function query() {
  const q = new URLSearchParams({ order: "desc", limit: PAGE });
  for (const [name, value] of new URLSearchParams(location.search)) if (LISTED.includes(name) && value) q.set(name, value);
  return q;
}

// ---- show ----
function showJobs(list) {
  fill("jobs", list.jobs.map((job) => {
    const button = make("button", jobName(job), "link");
    button.type = "button";
    button.dataset.job = job.id;
    return [button, job.name, short(job.user), short(job.queue), stateCell(job.state), where(job), job.priority,
      short(ago(job.submit_time)), short(ago(job.end_time)), took(job)];
  }), location.search ? "No job matches." : "No jobs yet. Submit one: xce submit script.sh");
  state.older = list.next_page_token;
  byId("older").disabled = !list.next_page_token;
  byId("newest").disabled = !query().has("page_token");
  byId("jobs-note").textContent = `${list.jobs.length} of ${list.total}`;
  showSort();
}

// The heads of the columns sort. A screen reader hears by aria-sort how.
function showSort() {
  const q = query(), by = q.get("sort") || "id", order = q.get("order");
  for (const th of byId("jobs").tHead.rows[0].cells) {
    const key = th.dataset.sort;
    if (!key) continue;
    if (!th.firstElementChild) {
      const button = make("button", th.textContent, "head");
      button.type = "button";
      button.addEventListener("click", () => {
        const now = query();
        const turn = (now.get("sort") || "id") === key && now.get("order") === "asc" ? "desc" : (now.get("sort") || "id") === key ? "asc" : key === "id" || key.endsWith("_time") || key === "priority" ? "desc" : "asc";
        setQuery({ sort: key === "id" ? "" : key, order: turn === "desc" ? "" : turn, page_token: "" });
      });
      th.replaceChildren(button);
    }
    if (key === by) th.setAttribute("aria-sort", order === "desc" ? "descending" : "ascending");
    else th.removeAttribute("aria-sort");
  }
}

function showHosts(hosts) {
  fill("hosts", hosts.map((h) => [h.name, h.drained ? { text: "drained: " + (h.drain_reason || "no reason given"), className: "is-warn" } : stateCell(h.state),
    meter(h.used_cpus, h.cpus, `${h.used_cpus} of ${h.cpus}`),
    meter(h.used_memory_mb, h.memory_mb, `${memory(h.used_memory_mb)} of ${memory(h.memory_mb)}`), h.running_jobs, h.version]), "No host has joined. Start xcecd on a machine.");
  const up = hosts.filter((h) => h.state === "UP");
  const sum = (key) => up.reduce((total, h) => total + h[key], 0);
  byId("n-hosts").textContent = `${up.length} of ${hosts.length}`;
  byId("n-cpus").textContent = `${sum("used_cpus")} of ${sum("cpus")}`;
}

function showQueues(queues) {
  const limits = (q) => [q.max_time_s && "jobs up to " + span(q.max_time_s * 1000), q.max_running && q.max_running + " running",
    q.max_running_per_user && q.max_running_per_user + " running a user", q.max_cpus_per_user && count(q.max_cpus_per_user, "CPU") + " a user",
    q.max_pending_per_user && q.max_pending_per_user + " waiting a user", (q.allowed_users || []).length && "users " + q.allowed_users.join(", "),
    (q.allowed_groups || []).length && "groups " + q.allowed_groups.join(", "), q.preemptible && "makes room for others"].filter(Boolean).join("; ");
  fill("queues", queues.map((q) => [q.name + (q.default ? " (default)" : ""), q.priority, q.open ? "yes" : { text: "no, closed", className: "is-warn" },
    q.active ? "yes" : { text: "no, stopped", className: "is-warn" }, q.pending, q.running, limits(q)]), "No queues.");
}

function showCluster(c) {
  byId("n-pending").textContent = c.jobs_pending;
  byId("n-running").textContent = c.jobs_running;
  byId("n-finished").textContent = c.jobs_finished;
  fill("controllers", c.nodes.map((n) => {
    const leads = n.id === c.leader_id, me = n.id === c.answered_by;
    const index = me ? c.last_index : n.match_index;
    return [n.id, `${n.host}:${n.port}`, leads ? { text: "leads", className: "state is-good" } : stateCell(n.role === "follower" ? "standby" : n.role || "unknown"),
      me || n.connected ? "up" : { text: "down", className: "is-bad" }, index, Math.max(0, c.last_index - index),
      me ? "answers" : n.last_contact_ms === null ? "never" : span(n.last_contact_ms) + " ago"];
  }), "No controllers.");
  const parts = [`term ${c.term}`, `log ${c.commit} of ${c.last_index} committed`];
  if (c.last_election_time) parts.push(`last election ${ago(c.last_election_time)}, took ${c.last_election_took_ms} ms`);
  if (c.scheduler) parts.push(`scheduler ${c.scheduler}`);
  const wrong = [c.leader_id ? "" : "no controller leads: nothing can be changed", c.scheduler ? "" : "no scheduler is active: no job will start",
    c.disk && c.disk !== "ok" ? `disk of controller ${c.answered_by}: ${c.disk}` : "",
    ...c.nodes.filter((n) => c.leader_id === c.answered_by && n.id !== c.answered_by && n.connected === false).map((n) => `controller ${n.id} at ${n.host}:${n.port} is not reached`)].filter(Boolean);
  byId("warning").hidden = wrong.length === 0;
  byId("warning").textContent = wrong.join("; ");
  document.title = `${c.jobs_pending} waiting, ${c.jobs_running} running – XCE`;
  byId("controllers-note").textContent = parts.join(" · ");
  byId("connection-text").textContent = c.leader_id ? `controller ${c.leader_id} leads` : "no controller leads";
}

function showAge() {
  const age = state.lastOk ? Date.now() - state.lastOk : Infinity;
  byId("age").textContent = state.lastOk ? (age < 3000 ? "data: live" : `data: ${span(age)} old`) : "no data yet";
  const old = age > OLD_MS;
  document.body.classList.toggle("old", old && state.lastOk > 0);
  byId("dot").className = "dot " + (state.lastOk === 0 && byId("problem").hidden ? "" : old || !byId("problem").hidden ? "bad" : "good");
}

function showProblem(text) {
  byId("problem").hidden = !text;
  byId("problem").textContent = text ? `Not up to date: ${text}. This page tries again by itself.` : "";
  if (text) byId("connection-text").textContent = "not connected";
  if (text) document.title = "not up to date – XCE";
}

// ---- one job ----
async function openJob(id) {
  state.openJob = String(id);
  state.output = null;
  byId("job-title").textContent = "Job " + id;
  byId("job-facts").replaceChildren();
  byId("job-timeline").replaceChildren();
  byId("job-output").textContent = "";
  byId("output-note").textContent = "";
  if (!byId("job").open) byId("job").showModal();
  await refreshJob();
}

// What happened when, and how long each part took.
function timeline(job) {
  const points = [["submitted", job.submit_time], ["could start", job.eligible_time === job.submit_time ? null : job.eligible_time],
    ["started", job.start_time], [job.end_time ? job.state.toLowerCase() : "ended", job.end_time]].filter(([, time]) => time);
  const items = points.map(([word, time], i) => {
    const item = make("li");
    item.append(make("b", word), make("time", new Date(time).toLocaleString()));
    item.querySelector("time").dateTime = time;
    if (i > 0) item.append(make("span", "after " + span(Date.parse(time) - Date.parse(points[i - 1][1])), "quiet"));
    return item;
  });
  if (!job.end_time && points.length > 0) {
    const now = make("li");
    now.append(make("b", job.state.toLowerCase()), make("span", "for " + span(Date.now() - Date.parse(points[points.length - 1][1])), "quiet"));
    items.push(now);
  }
  if (job.state === "PENDING" && job.estimated_start_time) {
    const next = make("li");
    next.append(make("b", "may start"), make("span", soonWords(job.estimated_start_time), "quiet"));
    items.push(next);
  }
  return items;
}

async function refreshJob() {
  const id = state.openJob;
  if (id === null) return;
  let job;
  try {
    job = await get(`/api/v1/jobs/${id}`);
    if (state.openJob !== id) return;
    byId("job-title").textContent = `Job ${jobName(job)}  ${job.name}`;
    byId("job-timeline").replaceChildren(...timeline(job));
    const facts = [["State", job.state.toLowerCase()], [job.state === "PENDING" || job.state === "HELD" ? "Why it waits" : "Why", job.state === "PENDING" ? where(job) : job.reason],
      ["User", job.user], ["Queue", job.queue], ["Hosts", job.hosts.join(", ")],
      ["Asks for", `${count(job.nodes, "host")}, ${count(job.cpus, "CPU")}${job.memory_mb ? ", " + memory(job.memory_mb) : ""}${job.nodes > 1 ? " each" : ""}`], ["Priority", job.priority],
      ["Exit code", job.exit_code], ["Attempt", job.attempt > 1 ? job.attempt : ""], ["Command", job.script ? "a script " + job.args.join(" ") : job.args.join(" ")], ["Folder", job.work_dir],
      ["Output file", job.stdout_file], ["CPU time", job.usage.cpu_ms ? span(job.usage.cpu_ms) : ""],
      ["Peak memory", job.usage.peak_memory_kb ? memory(Math.ceil(job.usage.peak_memory_kb / 1024)) : ""]];
    byId("job-facts").replaceChildren(...facts.filter(([, value]) => value !== "" && value !== null && value !== undefined)
      .flatMap(([name, value]) => [make("dt", name), make("dd", value)]));
  } catch (error) {
    if (state.openJob === id) byId("job-facts").replaceChildren(make("dt", "Problem"), make("dd", error.message));
    return;
  }
  await refreshOutput(id, job);
}

// Takes what was written since the last time. A new attempt begins anew; what is far up is dropped.
async function refreshOutput(id, job) {
  const stream = byId("output-stream").value, pre = byId("job-output");
  let out = state.output;
  if (!out || out.id !== id || out.stream !== stream || out.attempt !== job.attempt) {
    out = state.output = { id, stream, attempt: job.attempt, offset: 0, text: "", done: false, decoder: new TextDecoder() };
    pre.textContent = "";
  }
  try {
    for (let pieces = 0; pieces < 16 && !out.done; pieces++) {
      const answer = await ask(`/api/v1/jobs/${id}/output?stream=${stream}&offset=${out.offset}&limit=${OUTPUT_BYTES}`);
      const bytes = new Uint8Array(await answer.arrayBuffer());
      if (state.output !== out) return;
      out.offset = Number(answer.headers.get("X-Next-Offset"));
      out.done = answer.headers.get("X-End-Of-Output") === "true";
      if (bytes.length === 0) break;
      out.text = (out.text + out.decoder.decode(bytes, { stream: true })).slice(-OUTPUT_SHOWN);
      const atEnd = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 8;
      pre.textContent = out.text;
      if (atEnd) pre.scrollTop = pre.scrollHeight; // follows, unless somebody has scrolled up
    }
    byId("output-note").textContent = out.done ? `${out.offset} bytes, complete` : out.offset ? `${out.offset} bytes so far` : "nothing yet";
  } catch (error) {
    if (state.output === out) byId("output-note").textContent = error.message;
  }
}

// ---- the round ----
async function refresh() {
  clearTimeout(state.timer);
  if (state.busy) { state.again = true; return; }
  state.busy = true;
  state.again = false;
  const began = Date.now();
  try {
    const asked = query().toString();
    const [jobs, hosts, queues, cluster] = await Promise.all([get("/api/v1/jobs?" + asked), get("/api/v1/hosts"), get("/api/v1/queues"), get("/api/v1/cluster")]);
    if (asked === query().toString()) showJobs(jobs); else state.again = true;
    showHosts(hosts.hosts);
    showQueues(queues.queues);
    showCluster(cluster);
    state.lastOk = Date.now();
    showProblem("");
    await refreshJob();
  } catch (error) {
    showProblem(error.status === 401 ? "" : error.message);
    if (error.status === 401) byId("connection-text").textContent = "a token is needed";
  }
  state.busy = false;
  showAge();
  if (!document.hidden) state.timer = setTimeout(refresh, Math.max(state.again ? SOONER_MS : EVERY_MS, REST * (Date.now() - began))); // what takes long is asked less often
}

// The filter lives in the address, so that a view can be bookmarked and sent.
function setQuery(changes) {
  const q = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) { if (value) q.set(name, value); else q.delete(name); }
  history.replaceState(null, "", q.size ? "?" + q : location.pathname);
  refresh();
}

function readQuery() {
  const q = new URLSearchParams(location.search);
  for (const field of byId("filter").elements) {
    if (!field.name) continue;
    const wanted = q.get(field.name) || "";
    field.value = wanted;
    if (field.value === wanted) continue;
    const option = make("option", wanted.toLowerCase()); // a choice that only the address can make
    option.value = wanted;
    field.append(option);
    field.value = wanted;
  }
}

byId("filter").addEventListener("submit", (event) => event.preventDefault());
byId("filter").addEventListener("input", () => setQuery({ ...Object.fromEntries(new FormData(byId("filter"))), page_token: "" }));
byId("older").addEventListener("click", () => setQuery({ page_token: state.older }));
byId("newest").addEventListener("click", () => setQuery({ page_token: "" }));
byId("jobs").addEventListener("click", (event) => { const id = event.target.dataset.job; if (id) { setQuery({ job: id }); openJob(id); } });
byId("job").addEventListener("close", () => { state.openJob = state.output = null; setQuery({ job: "" }); });
byId("output-stream").addEventListener("change", refreshJob);
byId("login-open").addEventListener("click", () => byId("login").showModal());
byId("login-form").addEventListener("submit", () => {
  sessionStorage.setItem(TOKEN_KEY, byId("login-token").value.trim());
  byId("login-token").value = "";
  showWho();
  refresh();
});
window.addEventListener("popstate", () => { readQuery(); refresh(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
setInterval(showAge, 1000);

async function showWho() {
  try {
    const who = await get("/api/v1/whoami");
    byId("who").textContent = who.authenticated ? `${who.user}, ${who.role}` : "";
  } catch { byId("who").textContent = ""; }
}

// ---- the stream of events: by fetch, because an EventSource sends no token ----
let soon = 0, lastEvent = "";
function somethingChanged() {
  if (soon || document.hidden) return;
  soon = setTimeout(() => { soon = 0; refresh(); }, SOONER_MS);
}

async function readEvents() {
  const more = lastEvent ? { "Last-Event-ID": lastEvent } : {};
  const answer = await fetch("/api/v1/events", { cache: "no-store", headers: { ...headers(), ...more } });
  if (answer.status === 410) { lastEvent = ""; somethingChanged(); return; } // too long away: all is asked anew
  if (!answer.ok) throw new Error(String(answer.status));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      for (const line of block.split("\n")) if (line.startsWith("id: ")) lastEvent = line.slice(4);
      if (block.includes("event: ")) somethingChanged();
    }
  }
}

async function follow() {
  for (let pause = 1000; ;) {
    const began = Date.now();
    try { await readEvents(); } catch { /* the next try tells */ }
    pause = Date.now() - began > 10000 ? 1000 : Math.min(30000, pause * 2);
    await new Promise((wake) => setTimeout(wake, pause));
  }
}

readQuery();
showSort();
showWho();
refresh();
follow();
const openAtFirst = new URLSearchParams(location.search).get("job");
if (openAtFirst) openJob(openAtFirst);
