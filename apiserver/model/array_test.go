package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseArray(t *testing.T) {
	for text, want := range map[string]struct {
		indices []uint32
		limit   uint32
	}{
		"0-3":        {[]uint32{0, 1, 2, 3}, 0},
		"5,1,3,1":    {[]uint32{1, 3, 5}, 0},
		"0-9:3":      {[]uint32{0, 3, 6, 9}, 0},
		"1-3%2":      {[]uint32{1, 2, 3}, 2},
		"7,0-2":      {[]uint32{0, 1, 2, 7}, 0},
		"4294967295": {[]uint32{4294967295}, 0},
	} {
		indices, limit, err := ParseArray(text)
		require.NoError(t, err, text)
		require.Equal(t, want.indices, indices, text)
		require.Equal(t, want.limit, limit, text)
	}
}

func TestParseArrayRefuses(t *testing.T) {
	for _, text := range []string{"", ",", "a", "3-1", "1-", "-1", "1:2", "0-9:0", "0-9%0", "0-9%", "0-100000", "4294967296", "0-4294967295", "1-2-3"} {
		_, _, err := ParseArray(text)
		require.Error(t, err, text)
		require.Contains(t, err.Error(), "E_XCE_INVALID", text)
	}
}

func TestWordOfUnknownValue(t *testing.T) {
	require.Equal(t, "LOST", Word(JobStates, 9))
	require.Equal(t, "UNKNOWN", Word(JobStates, 10))
	require.Equal(t, "COMPLETED", JobStates[FirstEndedState])
}
