package web

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func get(path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

func TestThePageAndWhatItNeeds(t *testing.T) {
	for path, kind := range map[string]string{"/": "text/html", "/assets/dashboard.js": "javascript", "/assets/dashboard.css": "text/css"} {
		w := get(path)
		require.Equal(t, 200, w.Code, path)
		require.Contains(t, w.Header().Get("Content-Type"), kind, path)
		require.NotEmpty(t, w.Body.String(), path)
	}
	for _, path := range []string{"/assets/web.go", "/assets/../web.go", "/assets/x"} {
		require.Contains(t, []int{400, 404}, get(path).Code, path)
	}
}

// The content security policy allows no inline script or style, and text from users must never become markup.
func TestNothingInlineAndNoMarkupFromText(t *testing.T) {
	page := get("/").Body.String()
	for _, bad := range []string{"style=", "onclick", "onload", "<style", "http://", "https://"} {
		require.NotContains(t, page, bad)
	}
	script := get("/assets/dashboard.js").Body.String()
	for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"} {
		require.NotContains(t, script, bad)
	}
}
