package model

import (
	"fmt"
	"time"
)

// Status values of libxce that the apiserver treats by name; the same as in xce/errnox.h, which a test of package backend checks.
const (
	StatusRedirect       = 2001
	StatusNoMaster       = 2002
	StatusStandby        = 2003
	StatusNotReady       = 2004
	StatusOutcomeUnknown = 2005
	StatusDupJob         = 2006
	StatusAuth           = 2007
	StatusPerm           = 2008
	StatusInvalid        = 2009
	StatusNoEnt          = 2010
	StatusStale          = 2011
	StatusBusy           = 2012
	StatusForked         = 2013
)

// Outcome of a write that failed.
type Outcome int

// As xce_outcome_t.
const (
	Applied Outcome = iota
	NotApplied
	Maybe
)

// Error is what a backend call failed with.
type Error struct {
	Status     int    // positive: an E_XCE_ value or an errno
	Code       string // its name: "E_XCE_NOT_READY", "ETIMEDOUT"
	Message    string // for people
	Outcome    Outcome
	JobID      uint64        // of E_XCE_DUP_JOB
	KeyReused  bool          // the key of the operation was used for another request
	SameBody   bool          // of E_XCE_DUP_JOB: that job was submitted with the same body
	Trail      string        // attempts, for logs
	RetryAfter time.Duration // 0: nothing known
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// NotReady is the error of a call that the apiserver refuses without asking the controllers.
func NotReady(message string, retryAfter time.Duration) *Error {
	return &Error{Status: StatusNotReady, Code: "E_XCE_NOT_READY", Message: message, Outcome: NotApplied, RetryAfter: retryAfter}
}

// Invalid is the error of a request that makes no sense as it is.
func Invalid(format string, args ...any) *Error {
	return &Error{Status: StatusInvalid, Code: "E_XCE_INVALID", Message: fmt.Sprintf(format, args...), Outcome: NotApplied}
}
