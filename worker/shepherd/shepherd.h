// The shepherd: one small single-threaded process a job, which starts it, enforces its limits,
// carries out orders and writes down what became of it. It outlives the worker daemon; the job does
// not outlive it.
//
// It is the subreaper of all that the job starts, so that also processes which daemonized are
// found, counted and killed. Standard library only, so that a fork of it is cheap.
#ifndef XCE_WORKER_SHEPHERD_SHEPHERD_H_
#define XCE_WORKER_SHEPHERD_SHEPHERD_H_

#include <string>

namespace xce::worker {

// Runs the job of DATA/jobs/<dir_name> to its end and returns the process's exit status (0: the end
// is written down). `status_fd`: the open, locked status file. The calling process must be a
// session leader with no other descriptors of worth.
int shepherd_main(const std::string& data_dir, const std::string& dir_name, int status_fd);

// Makes the status file of a job directory, locked, with room set aside; its existence means
// "launched". Returns the descriptor; -EEXIST when it was there (the attempt was launched before),
// or another -errno.
int create_status_file(const std::string& job_dir);

// Whether a shepherd lives for this job directory: whether somebody holds the lock of its status
// file.
bool shepherd_alive(const std::string& job_dir);

// The launcher: forks a shepherd for each request on `socket` (SOCK_SEQPACKET; a request is a
// directory's name), answers
// "<name> ok <pid>", "<name> again" or "<name> error <words>", and ends when the other side closes.
// Returns an exit status.
int launcher_main(const std::string& data_dir, int socket);

}  // namespace xce::worker

#endif  // XCE_WORKER_SHEPHERD_SHEPHERD_H_
