// Command check reads a history of XCE's clients (e2e/checker/workload.h) and tells whether it could
// have come from one machine that does one thing at a time: each job for itself, and all listings
// together. Exit code 0: it could; 1: it could not, or that could not be decided; 2: bad input.
package main

import (
	"fmt"
	"os"
	"time"
)

const (
	limit  = 30 * time.Second
	shown  = 10 // violations that are printed
	usages = "usage: check HISTORY\n"
)

// check gives what is wrong with a history; nothing when it is linearizable.
func check(ops []Op) []string {
	ids, wrong := identities(ops)
	bounded := bound(ops)
	wrong = append(wrong, checkJobs(bounded, ids, limit)...)
	return append(wrong, checkSet(ops, limit)...)
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprint(os.Stderr, usages)
		os.Exit(2)
	}
	file, err := os.Open(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(2)
	}
	defer file.Close()
	ops, err := read(file)
	if err != nil {
		fmt.Fprintf(os.Stderr, "check: %s: %v\n", os.Args[1], err)
		os.Exit(2)
	}
	began := time.Now()
	wrong := check(ops)
	counts := map[string]int{}
	for _, op := range ops {
		counts[op.Op]++
	}
	fmt.Printf("check: %d operations %v in %.1f s\n", len(ops), counts, time.Since(began).Seconds())
	for i, text := range wrong {
		if i == shown {
			fmt.Printf("and %d more\n", len(wrong)-shown)
			break
		}
		fmt.Println("WRONG:", text)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
	fmt.Println("check: linearizable")
}
