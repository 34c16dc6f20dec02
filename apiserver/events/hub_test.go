package events

import (
	"testing"

	"github.com/stretchr/testify/require"

	"xce.example/apiserver/model"
)

func revisions(s *Subscription) (list []uint64, kinds []string) {
	for {
		select {
		case event, open := <-s.C:
			if !open {
				return
			}
			list, kinds = append(list, event.Revision), append(kinds, event.Kind)
		default:
			return
		}
	}
}

func TestSubscriberGetsWhatComesAfterIt(t *testing.T) {
	hub := &Hub{}
	hub.Publish(model.Event{Kind: "job", Revision: 1})
	s := hub.Subscribe(0)
	hub.Publish(model.Event{Kind: "job", Revision: 2})
	hub.Publish(model.Event{Kind: "host", Revision: 2})
	got, kinds := revisions(s)
	require.Equal(t, []uint64{2, 2}, got)
	require.Equal(t, []string{"job", "host"}, kinds)
	s.Close()
	s.Close()
	require.Zero(t, hub.Subscribers())
}

func TestResumeRepeatsTheRevisionThatMayHaveBeenCut(t *testing.T) {
	hub := &Hub{}
	for _, revision := range []uint64{5, 6, 6, 7} {
		hub.Publish(model.Event{Kind: "job", Revision: revision})
	}
	got, kinds := revisions(hub.Subscribe(6))
	require.Equal(t, []uint64{6, 6, 7}, got)
	require.NotContains(t, kinds, "gap")
}

func TestResumeOfWhatIsForgottenIsAGap(t *testing.T) {
	hub := &Hub{}
	require.Equal(t, []string{"gap"}, second(revisions(hub.Subscribe(3))), "nothing is known yet")
	for revision := uint64(10); revision < 10+2*kept; revision++ {
		hub.Publish(model.Event{Kind: "job", Revision: revision})
	}
	require.Equal(t, "gap", second(revisions(hub.Subscribe(10)))[0])
	require.Equal(t, "gap", second(revisions(hub.Subscribe(1 << 40)))[0], "of another life of the cluster")
	require.NotContains(t, second(revisions(hub.Subscribe(10+2*kept-3))), "gap")
}

func TestSlowSubscriberIsToldOfAGap(t *testing.T) {
	hub := &Hub{}
	s := hub.Subscribe(0)
	for revision := uint64(1); revision <= 2*(behind+kept); revision++ {
		hub.Publish(model.Event{Kind: "job", Revision: revision})
	}
	got, kinds := revisions(s)
	require.Len(t, got, behind+kept+1)
	require.NotContains(t, kinds, "gap")
	hub.Publish(model.Event{Kind: "job", Revision: 9999})
	got, kinds = revisions(s)
	require.Equal(t, []string{"gap", "job"}, kinds)
	require.Equal(t, []uint64{9999, 9999}, got)
}

func TestCloseEndsStreams(t *testing.T) {
	hub := &Hub{}
	s := hub.Subscribe(0)
	hub.Close()
	_, open := <-s.C
	require.False(t, open)
	s.Close()
	hub.Publish(model.Event{Kind: "job", Revision: 1})
	_, open = <-hub.Subscribe(0).C
	require.False(t, open)
}

func second(_ []uint64, kinds []string) []string { return kinds }
