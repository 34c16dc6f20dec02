/* Status values of XCE. An operation returns >= 0 on success and -E_XCE_... (or -errno) on failure.
 * Each value says what a caller may believe of a write: see docs/semantics.md and xce_outcome(). */
#ifndef XCE_ERRNOX_H_
#define XCE_ERRNOX_H_

#define E_XCE_BASE 2000
#define E_XCE_REDIRECT 2001 /* not the primary, which is named in the reply: not applied */
#define E_XCE_NOMASTER 2002 /* not the primary, and none is known: not applied */
#define E_XCE_STANDBY 2003  /* lost the primary role before proposing: not applied */
#define E_XCE_NOT_READY \
  2004 /* the cluster has no primary now (starting, electing, majority lost) */
#define E_XCE_OUTCOME_UNKNOWN 2005 /* may or may not have been applied: ask before redoing it */
#define E_XCE_DUP_JOB 2006         /* a job with this submit key exists; its id is in the reply */
#define E_XCE_AUTH 2007            /* who you are could not be established */
#define E_XCE_PERM 2008            /* you may not do this */
#define E_XCE_INVALID 2009         /* the request makes no sense as it is; the message says why */
#define E_XCE_NOENT 2010           /* no such job, host or queue */
#define E_XCE_STALE 2011           /* overtaken: an old attempt, epoch or revision */
#define E_XCE_BUSY 2012            /* a limit was reached; try later */
#define E_XCE_FORKED 2013          /* this context was made in the parent process */
#define E_XCE_LAST 2013

#endif /* XCE_ERRNOX_H_ */
