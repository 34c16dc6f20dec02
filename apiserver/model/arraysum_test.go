package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func task(index uint32, state, start, end string, code int32) *Job {
	first := uint64(5)
	job := &Job{ID: 5 + uint64(index), ArrayID: &first, ArrayIndex: &index, Name: "n", State: state, ModifyIndex: uint64(index)}
	if start != "" {
		job.StartTime = &start
	}
	if end != "" {
		job.EndTime = &end
	}
	if start != "" && end != "" {
		job.ExitCode = &code
	}
	return job
}

func TestAnArrayIsTheSumOfItsTasks(t *testing.T) {
	sum := ArraySum{}
	sum.Add(task(0, "COMPLETED", "2026-01-01T00:00:02.000Z", "2026-01-01T00:00:03.000Z", 0), 10)
	sum.Add(task(1, "FAILED", "2026-01-01T00:00:01.000Z", "2026-01-01T00:00:09.000Z", 3), 10)
	got := sum.Result()
	require.Equal(t, "FAILED", got.State)
	require.Equal(t, "2026-01-01T00:00:01.000Z", *got.StartTime)
	require.Equal(t, "2026-01-01T00:00:09.000Z", *got.EndTime)
	require.Equal(t, []uint32{1}, got.Failed)
	require.Equal(t, map[string]int{"0": 1, "3": 1}, got.ExitCodes)
	sum.Add(task(2, "PENDING", "", "", 0), 10)
	sum.Add(task(3, "RUNNING", "2026-01-01T00:00:04.000Z", "", 0), 10)
	got = sum.Result()
	require.Equal(t, "RUNNING", got.State)
	require.Nil(t, got.EndTime, "it goes on")
	require.Equal(t, map[string]int{"COMPLETED": 1, "FAILED": 1, "PENDING": 1, "RUNNING": 1}, got.States)
	require.Equal(t, uint64(5), got.ID)
	require.Equal(t, uint64(3), got.Index)
	require.Equal(t, 4, got.Tasks)
	sum.Add(task(4, "LOST", "", "2026-01-01T00:00:04.000Z", -1), 1)
	require.Len(t, sum.Result().Failed, 1, "no more than asked for")
	require.Equal(t, map[string]int{"0": 1, "3": 1}, sum.Result().ExitCodes, "what never ran has none")
}

func TestAnArrayOfCompletedTasksIsCompleted(t *testing.T) {
	sum := ArraySum{}
	sum.Add(task(0, "COMPLETED", "a", "b", 0), 1)
	require.Equal(t, "COMPLETED", sum.Result().State)
}
