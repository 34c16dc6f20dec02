package web

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/stretchr/testify/require"
)

// What a cluster answers. Names hold markup: it must stay text.
const answers = `
const job = (id, more) => Object.assign({ id, array_id: null, name: "<b>n" + id, user: "ann", queue: "q", state: "PENDING", reason: "waits for 2 CPUs", hosts: [], estimated_start_time: id === 7 ? "2026-01-01T01:10:00.000Z" : null,
  priority: 3, submit_time: "2026-01-01T00:00:00.000Z", eligible_time: "2026-01-01T00:00:00.000Z", start_time: null, end_time: null, exit_code: null, nodes: 1, cpus: 2,
  memory_mb: 0, args: ["x"], script: "", attempt: 1, usage: {} }, more);
const running = { state: "RUNNING", hosts: ["h1"], reason: "", start_time: "2026-01-01T00:00:05.000Z" };
let output = "hello <i>";
function cluster(path) {
  if (path.startsWith("/api/v1/jobs?")) return { jobs: [job(7), job(8, running)], total: 2, next_page_token: "tok" };
  if (path.startsWith("/api/v1/jobs/8")) return job(8, running);
  if (path === "/api/v1/hosts") return { hosts: [{ name: "h1", state: "UP", cpus: 4, used_cpus: 2, memory_mb: 100, used_memory_mb: 0, running_jobs: 1, version: "1" }] };
  if (path === "/api/v1/queues") return { queues: [{ name: "q", default: true, open: true, active: false, pending: 1, running: 1, priority: 0, max_time_s: 3600, max_cpus_per_user: 1, allowed_users: [], allowed_groups: ["lab"], preemptible: true }] };
  if (path === "/api/v1/cluster") return { leader_id: 1, answered_by: 1, last_index: 9, commit: 9, term: 3, jobs_pending: 1, jobs_running: 1, jobs_finished: 0,
    nodes: [{ id: 1, host: "a", port: 1, role: "leader", match_index: 9 }, { id: 2, host: "b", port: 2, role: "follower", connected: true, match_index: 5, last_contact_ms: 12 },
      { id: 3, host: "c", port: 3, role: "follower", connected: false, match_index: 5, last_contact_ms: null }],
    last_election_time: "2026-01-01T00:59:00.000Z", last_election_took_ms: 31, scheduler: "s", disk: "ok" };
  if (path === "/api/v1/whoami") return { user: "ann", role: "user", authenticated: true };
  throw new Error("the page asks for " + path);
}
let down = "", token = "";
function answer(path, authorization) {
  if (token && authorization !== "Bearer " + token) return [401, JSON.stringify({ detail: "send a token" })];
  if (down) return [503, JSON.stringify({ detail: down })];
  const offset = /output.*offset=(\d+)/.exec(path);
  if (offset) return [200, output.slice(Number(offset[1])), { "X-Next-Offset": String(output.length), "X-End-Of-Output": "false" }];
  return [200, JSON.stringify(cluster(path))];
}
`

type dashboard struct {
	t  *testing.T
	vm *goja.Runtime
}

func open(t *testing.T, search, before string) *dashboard {
	d := &dashboard{t, goja.New()}
	browser, err := os.ReadFile("testdata/dom.js")
	require.NoError(t, err)
	d.run(string(browser) + answers + before)
	require.NoError(t, d.vm.Set("page", get("/").Body.String()))
	d.run(fmt.Sprintf("load(page, %q)", search))
	d.run(strings.Replace(get("/assets/dashboard.js").Body.String(), `"use strict";`, "", 1))
	return d
}

func (d *dashboard) run(code string) goja.Value {
	d.t.Helper()
	value, err := d.vm.RunString(code)
	require.NoError(d.t, err, code[:min(len(code), 200)])
	return value
}

func (d *dashboard) text(expression string) string { d.t.Helper(); return d.run(expression).String() }
func (d *dashboard) shown(id string) string {
	d.t.Helper()
	return d.text(fmt.Sprintf("shown(%q)", id))
}

// pass lets time go by. Promises are settled between timers, as in a browser.
func (d *dashboard) pass(ms int) {
	d.t.Helper()
	d.run(fmt.Sprintf("end = now + %d", ms))
	for d.run("now < end && pass(end - now)").ToBoolean() {
	}
}

func TestTheDashboardShowsTheCluster(t *testing.T) {
	d := open(t, "?state=PENDING&sort=name&order=asc&job=8", "")
	require.Contains(t, d.text("asked.map((a) => a[0]).join(' ')"), "/api/v1/jobs?order=asc&limit=50&state=PENDING&sort=name", "filter, sort and order are the address's")
	require.Equal(t, "2", d.text(`byId("jobs").tBodies[0].rows.length`))
	require.Contains(t, d.shown("jobs"), "<b>n7", "as text")
	require.Contains(t, d.shown("jobs"), "waits for 2 CPUs; may start in about 10 min")
	require.Contains(t, d.shown("hosts"), "2 of 4")
	require.Contains(t, d.shown("queues"), "no, stopped")
	require.Contains(t, d.shown("queues"), "jobs up to 1 h 0 min; 1 CPU a user; groups lab; makes room for others")
	require.Equal(t, "controller 3 at c:3 is not reached", d.shown("warning"))
	require.Equal(t, "1 waiting, 1 running – XCE", d.text("document.title"))
	require.Contains(t, d.shown("controllers"), "leads")
	require.Equal(t, "4", d.text(`byId("controllers").tBodies[0].rows[1].cells[5].textContent`), "how far it lags")
	require.Contains(t, d.shown("controllers-note"), "last election 1 min ago, took 31 ms")
	require.Equal(t, "data: live", d.shown("age"))
	require.Equal(t, "ann, user", d.shown("who"))
	require.Equal(t, "Name ascending", d.text(`(() => { const th = byId("jobs").tHead.rows[0].querySelector("th[aria-sort]"); return th.textContent + " " + th.getAttribute("aria-sort"); })()`))
	require.Equal(t, "PENDING", d.text(`byId("filter").elements[0].value`), "the form shows what the address says")

	require.Equal(t, "true", d.text(`byId("job").open`))
	require.Contains(t, d.shown("job-timeline"), "started")
	require.Contains(t, d.shown("job-timeline"), "after 5.0 s")
	require.Equal(t, "hello <i>", d.shown("job-output"))
	d.run(`output += " and more"`)
	d.pass(2100)
	require.Equal(t, "hello <i> and more", d.shown("job-output"), "only what is new is asked for, and appended")
	require.Contains(t, d.text("asked[asked.length - 1][0]"), "offset=")
	d.run(`byId("job").close()`)
	require.NotContains(t, d.text("location.search"), "job=")
}

func TestSortingAndPagingAreInTheAddress(t *testing.T) {
	d := open(t, "", "")
	head := func(key string) {
		d.run(fmt.Sprintf(`byId("jobs").tHead.rows[0].querySelector("th[data-sort=%s]").firstElementChild.click()`, key))
	}
	head("priority")
	require.Equal(t, "?sort=priority", d.text("location.search"), "highest first")
	head("priority")
	require.Equal(t, "?sort=priority&order=asc", d.text("location.search"))
	require.Equal(t, "ascending", d.text(`byId("jobs").tHead.rows[0].querySelector("th[aria-sort]").getAttribute("aria-sort")`))
	d.run(`byId("older").click()`)
	require.Contains(t, d.text("location.search"), "page_token=tok")
	require.Contains(t, d.text("asked.map((a) => a[0]).join(' ')"), "page_token=tok")
	require.Equal(t, "false", d.text(`byId("newest").disabled`))
	head("id")
	require.Equal(t, "", d.text("location.search"), "another order begins at its first page")
	d.run(`byId("jobs").tBodies[0].rows[0].querySelector("button").click()`)
	require.Equal(t, "?job=7", d.text("location.search"))
}

func TestOldDataSaysSo(t *testing.T) {
	d := open(t, "", "")
	d.run(`down = "the controllers do not answer"`)
	d.pass(9000)
	d.run("showAge()")
	require.Contains(t, d.shown("problem"), "the controllers do not answer")
	require.Contains(t, d.shown("age"), "old")
	require.Contains(t, d.text("document.body.className"), "old")
	require.Contains(t, d.shown("jobs"), "n7", "what was known stays")
	d.run(`down = ""`)
	d.pass(2100)
	require.Equal(t, "true", d.text(`byId("problem").hidden`))
}

func TestATokenIsAskedForAndSent(t *testing.T) {
	d := open(t, "", `token = "T";`)
	require.Equal(t, "true", d.text(`byId("login").open`))
	require.Equal(t, "true", d.text(`byId("problem").hidden`))
	d.run(`byId("login-token").value = " T "; byId("login").close(); byId("login-form").fire("submit")`)
	d.pass(500)
	require.Equal(t, "2", d.text(`byId("jobs").tBodies[0].rows.length`))
	require.Equal(t, "Bearer T", d.text("asked[asked.length - 1][1]"))
	require.Equal(t, "", d.text(`byId("login-token").value`), "it does not stay in the page")
}

// Every table has heads with a scope and a name, every field a label, every button words.
func TestAccessibilityBasics(t *testing.T) {
	d := open(t, "", "")
	require.Equal(t, "", d.text(`document.body.all().filter((e) => e.tagName === "th" && e.getAttribute("scope") !== "col").map((e) => e.textContent).join()`))
	require.Equal(t, "", d.text(`document.body.all().filter((e) => e.tagName === "table" && !document.byId[e.getAttribute("aria-labelledby")]).map((e) => e.id).join()`))
	require.Equal(t, "", d.text(`document.body.all().filter((e) => ["input", "select"].includes(e.tagName) && e.parent.tagName !== "label").map((e) => e.id).join()`))
	require.Equal(t, "", d.text(`document.body.all().filter((e) => e.tagName === "button" && !e.textContent.trim()).map((e) => e.id).join()`))
	require.Contains(t, get("/").Body.String(), `<html lang="en">`)
}
