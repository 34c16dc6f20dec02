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

func TestWhatIsForgottenCannotBeResumed(t *testing.T) {
	hub := &Hub{}
	require.Nil(t, hub.Subscribe(3), "nothing is known yet")
	for revision := uint64(10); revision < 10+2*kept; revision++ {
		hub.Publish(model.Event{Kind: "job", Revision: revision})
	}
	require.Nil(t, hub.Subscribe(10))
	require.Nil(t, hub.Subscribe(1<<40), "of another life of the cluster")
	require.NotNil(t, hub.Subscribe(10+2*kept-3))
	hub.Publish(model.Event{Kind: "gap", Revision: 10 + 2*kept})
	require.Nil(t, hub.Subscribe(10+2*kept-3), "what came before a gap is not whole")
	require.NotNil(t, hub.Subscribe(10+2*kept))
	require.Equal(t, uint64(10+2*kept), hub.Last())
}

func TestAWatchSeesWhatCameAfterARead(t *testing.T) {
	hub := &Hub{}
	require.Equal(t, []string{"gap"}, second(revisions(hub.Watch(5))), "nothing is known yet")
	hub.Publish(model.Event{Kind: "gap", Revision: 10}) // joined
	w := hub.Watch(12)                                  // a read may be newer than the newest event
	require.Empty(t, second(revisions(w)))
	hub.Publish(model.Event{Kind: "job", Revision: 12})
	hub.Publish(model.Event{Kind: "job", Revision: 13})
	got, _ := revisions(w)
	require.Equal(t, []uint64{12, 13}, got)
	got, kinds := revisions(hub.Watch(11))
	require.Equal(t, []uint64{12, 13}, got, "it came before the watch began")
	require.NotContains(t, kinds, "gap")
	require.Contains(t, second(revisions(hub.Watch(5))), "gap")
	hub.Close()
	_, open := <-hub.Watch(13).C
	require.False(t, open)
}

func TestSlowSubscriberIsToldOfAGap(t *testing.T) {
	hub := &Hub{}
	s := hub.Subscribe(0)
	for revision := uint64(1); revision <= 2*behind; revision++ {
		hub.Publish(model.Event{Kind: "job", Revision: revision})
	}
	got, kinds := revisions(s)
	require.Len(t, got, behind)
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
	_, open = <-hub.Subscribe(7).C
	require.False(t, open)
	_, open = <-hub.Subscribe(0).C
	require.False(t, open)
}

func second(_ []uint64, kinds []string) []string { return kinds }
