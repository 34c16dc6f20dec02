package main

import (
	"strings"
	"testing"
)

// Histories by hand: time goes on by one with each number.
const made = `{"client":1,"op":"submit","key":"a","call":1,"return":2,"outcome":"ok","job":7}
`

func TestHistories(t *testing.T) {
	for name, c := range map[string]struct {
		history string
		wrong   string // "" when the history is good
	}{
		"nothing": {"", ""},
		"a whole life": {made +
			`{"client":1,"op":"hold","key":"a","job":7,"call":3,"return":4,"outcome":"ok","count":1}
{"client":1,"op":"info","key":"a","job":7,"state":"HELD","call":5,"return":6,"outcome":"ok"}
{"client":1,"op":"release","key":"a","job":7,"call":7,"return":8,"outcome":"ok","count":1}
{"client":1,"op":"kill","key":"a","job":7,"call":9,"return":10,"outcome":"ok","count":1}
{"client":1,"op":"hold","key":"a","job":7,"call":11,"return":12,"outcome":"refused"}
{"client":1,"op":"list","call":13,"return":14,"outcome":"ok","jobs":[[7,"a","KILLED"]]}`, ""},
		"concurrent answers in any order": {made +
			`{"client":1,"op":"kill","key":"a","job":7,"call":3,"return":9,"outcome":"ok","count":1}
{"client":2,"op":"info","key":"a","job":7,"state":"KILLED","call":4,"return":5,"outcome":"ok"}
{"client":3,"op":"info","key":"a","job":7,"state":"PENDING","call":4,"return":6,"outcome":"ok"}`, ""},
		"stale read": {made +
			`{"client":1,"op":"kill","key":"a","job":7,"call":3,"return":4,"outcome":"ok","count":1}
{"client":2,"op":"info","key":"a","job":7,"state":"PENDING","call":5,"return":6,"outcome":"ok"}`, "job 7 (key a)"},
		"a value that goes back": {made +
			`{"client":1,"op":"kill","key":"a","job":7,"call":3,"return":9,"outcome":"ok","count":1}
{"client":2,"op":"info","key":"a","job":7,"state":"KILLED","call":4,"return":5,"outcome":"ok"}
{"client":2,"op":"info","key":"a","job":7,"state":"PENDING","call":6,"return":7,"outcome":"ok"}`, "job 7 (key a)"},
		"lost write": {made +
			`{"client":2,"op":"list","call":3,"return":4,"outcome":"ok","jobs":[]}`, "has not got it"},
		"lost write, by id": {made +
			`{"client":2,"op":"info","key":"a","job":7,"state":"ABSENT","call":3,"return":4,"outcome":"ok"}`, "job 7 (key a)"},
		"lost control": {made +
			`{"client":1,"op":"hold","key":"a","job":7,"call":3,"return":4,"outcome":"ok","count":1}
{"client":1,"op":"hold","key":"a","job":7,"call":5,"return":6,"outcome":"ok","count":1}`, "job 7 (key a)"},
		"double apply: the answer of the second": {made +
			`{"client":1,"op":"kill","key":"a","job":7,"call":3,"return":4,"outcome":"ok","count":0}`, "job 7 (key a)"},
		"double apply: two jobs of a key": {made +
			`{"client":1,"op":"list","call":3,"return":4,"outcome":"ok","jobs":[[7,"a","PENDING"],[8,"a","PENDING"]]}`, "key a is both"},
		"double apply: undone and done again": {made +
			`{"client":1,"op":"hold","key":"a","job":7,"call":3,"return":4,"outcome":"ok","count":1}
{"client":2,"op":"release","key":"a","job":7,"call":5,"return":6,"outcome":"ok","count":1}
{"client":2,"op":"info","key":"a","job":7,"state":"HELD","call":7,"return":8,"outcome":"ok"}`, "job 7 (key a)"},
		"id reuse": {made +
			`{"client":2,"op":"submit","key":"b","call":3,"return":4,"outcome":"ok","job":7}`, "both key a and key b"},
		"two successes of one key": {made +
			`{"client":2,"op":"submit","key":"a","call":3,"return":4,"outcome":"ok","job":7}`, "job 7 (key a)"},
		"second submission named the first": {made +
			`{"client":2,"op":"submit","key":"a","call":3,"return":4,"outcome":"dup","job":7}`, ""},
		"a duplicate of nothing": {
			`{"client":2,"op":"submit","key":"a","call":1,"return":2,"outcome":"dup","job":7}
{"client":1,"op":"submit","key":"a","call":3,"return":4,"outcome":"ok","job":7}`, "job 7 (key a)"},
		"a job that nobody submitted": {made +
			`{"client":2,"op":"list","call":3,"return":4,"outcome":"ok","jobs":[[7,"a","PENDING"],[8,"z","PENDING"]]}`, "nobody had submitted"},
		"unknown and applied": {
			`{"client":1,"op":"submit","key":"a","call":1,"return":2,"outcome":"unknown"}
{"client":2,"op":"list","call":3,"return":4,"outcome":"ok","jobs":[]}
{"client":2,"op":"list","call":5,"return":6,"outcome":"ok","jobs":[[7,"a","PENDING"]]}`, ""},
		"unknown and not applied": {made +
			`{"client":1,"op":"kill","key":"a","job":7,"call":3,"return":4,"outcome":"unknown"}
{"client":2,"op":"list","call":5,"return":6,"outcome":"ok","jobs":[[7,"a","PENDING"]]}`, ""},
		"unknown, applied and gone again": {
			`{"client":1,"op":"submit","key":"a","call":1,"return":2,"outcome":"unknown"}
{"client":2,"op":"list","call":3,"return":4,"outcome":"ok","jobs":[[7,"a","PENDING"]]}
{"client":2,"op":"list","call":5,"return":6,"outcome":"ok","jobs":[]}`, "has not got it"},
		"unknown, then submitted again": {
			`{"client":1,"op":"submit","key":"a","call":1,"return":2,"outcome":"unknown"}
{"client":1,"op":"submit","key":"a","call":3,"return":4,"outcome":"ok","job":7}
{"client":2,"op":"info","key":"a","job":7,"state":"PENDING","call":5,"return":6,"outcome":"ok"}`, ""},
		"failed and not applied": {made +
			`{"client":1,"op":"hold","key":"a","job":7,"call":3,"return":4,"outcome":"failed"}
{"client":2,"op":"submit","key":"b","call":3,"return":4,"outcome":"failed"}
{"client":2,"op":"list","call":5,"return":6,"outcome":"ok","jobs":[[7,"a","PENDING"]]}`, ""},
		"failed and applied all the same": {made +
			`{"client":1,"op":"hold","key":"a","job":7,"call":3,"return":4,"outcome":"failed"}
{"client":2,"op":"list","call":5,"return":6,"outcome":"ok","jobs":[[7,"a","HELD"]]}`, "job 7 (key a)"},
		"failed to submit, and there all the same": {made +
			`{"client":2,"op":"submit","key":"b","call":3,"return":4,"outcome":"failed"}
{"client":2,"op":"list","call":5,"return":6,"outcome":"ok","jobs":[[7,"a","PENDING"],[8,"b","PENDING"]]}`, "nobody had submitted"},
		"listings that disagree on the order": {
			`{"client":1,"op":"submit","key":"a","call":1,"return":10,"outcome":"ok","job":7}
{"client":2,"op":"submit","key":"b","call":1,"return":10,"outcome":"ok","job":8}
{"client":3,"op":"list","call":2,"return":9,"outcome":"ok","jobs":[[7,"a","PENDING"]]}
{"client":4,"op":"list","call":2,"return":9,"outcome":"ok","jobs":[[8,"b","PENDING"]]}`, "no common order"},
		"a state of its own": {made +
			`{"client":1,"op":"info","key":"a","job":7,"state":"OTHER","call":3,"return":4,"outcome":"ok"}`, "job 7 (key a)"},
	} {
		t.Run(name, func(t *testing.T) {
			ops, err := read(strings.NewReader(c.history))
			if err != nil {
				t.Fatal(err)
			}
			wrong := strings.Join(check(ops), "\n")
			if c.wrong == "" && wrong != "" {
				t.Errorf("a good history is found wrong: %s", wrong)
			}
			if c.wrong != "" && !strings.Contains(wrong, c.wrong) {
				t.Errorf("%q is not found, but: %q", c.wrong, wrong)
			}
		})
	}
}

func TestBadInput(t *testing.T) {
	for _, text := range []string{"{", `{"call":2,"return":1}`, `{"jobs":[[1,"a"]]}`} {
		if _, err := read(strings.NewReader(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
