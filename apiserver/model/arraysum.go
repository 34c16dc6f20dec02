package model

import "strconv"

// Array is an array job as one thing. Its tasks are jobs.
type Array struct {
	ID         uint64         `json:"id" doc:"of its first task"`
	Name       string         `json:"name"`
	User       string         `json:"user"`
	Queue      string         `json:"queue"`
	State      string         `json:"state" doc:"that of the liveliest task: RUNNING, STARTING, SUSPENDED, PENDING, HELD; of an ended array COMPLETED when all tasks did, else the worst end"`
	Tasks      int            `json:"tasks" doc:"that the cluster still knows"`
	Limit      uint32         `json:"limit" doc:"tasks that may run at once; 0: any"`
	States     map[string]int `json:"states" doc:"tasks by state; states without tasks are left out"`
	SubmitTime *string        `json:"submit_time"`
	StartTime  *string        `json:"start_time" doc:"of the first task that started"`
	EndTime    *string        `json:"end_time" doc:"of the last task, when all have ended"`
	ExitCodes  map[string]int `json:"exit_codes" doc:"tasks that ran and ended, by exit code"`
	Failed     []uint32       `json:"failed" doc:"indices of the tasks that ended badly, at most 1000"`
	Index      uint64         `json:"modify_index" doc:"highest of its tasks"`
}

// ArraySum sums an array's tasks up, one by one in ascending order. The zero value is ready.
type ArraySum struct {
	Array Array
	first string // earliest start
	last  string // latest end
	ended int
}

// Add takes a task in; at most maxFailed failed ones are named.
func (s *ArraySum) Add(task *Job, maxFailed int) {
	a := &s.Array
	if a.Tasks == 0 {
		*a = Array{Name: task.Name, User: task.User, Queue: task.Queue, Limit: task.ArrayLimit, SubmitTime: task.SubmitTime, States: map[string]int{},
			ExitCodes: map[string]int{}, Failed: []uint32{}}
		if task.ArrayID != nil {
			a.ID = *task.ArrayID
		}
	}
	a.Tasks++
	a.States[task.State]++
	a.Index = max(a.Index, task.ModifyIndex)
	if task.StartTime != nil && (s.first == "" || *task.StartTime < s.first) { // of one format: as text they sort as times
		s.first = *task.StartTime
	}
	if task.EndTime == nil {
		return
	}
	s.ended++
	if task.ExitCode != nil {
		a.ExitCodes[strconv.Itoa(int(*task.ExitCode))]++
	}
	if *task.EndTime > s.last {
		s.last = *task.EndTime
	}
	if task.State != "COMPLETED" && task.ArrayIndex != nil && len(a.Failed) < maxFailed {
		a.Failed = append(a.Failed, *task.ArrayIndex)
	}
}

// stateOrder: the first of these that any task is in, is the array's.
var stateOrder = []string{"RUNNING", "STARTING", "SUSPENDED", "PENDING", "HELD", "LOST", "TIMEOUT", "FAILED", "KILLED", "COMPLETED"}

// Result gives the sum.
func (s *ArraySum) Result() Array {
	a := s.Array
	for i := len(stateOrder) - 1; i >= 0; i-- {
		if a.States[stateOrder[i]] > 0 {
			a.State = stateOrder[i]
		}
	}
	if s.first != "" {
		a.StartTime = &s.first
	}
	if s.ended == a.Tasks && s.last != "" {
		a.EndTime = &s.last
	}
	return a
}
