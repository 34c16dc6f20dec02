// Package web serves the dashboard: one page, built into the binary. It shows what the REST interface says and nothing else.
package web

import (
	"embed"
	"net/http"
	"strings"
)

//go:embed index.html dashboard.js dashboard.css
var files embed.FS

// Handler serves / and /assets/.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/assets/")
		if r.URL.Path == "/" {
			name = "index.html"
		}
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeFileFS(w, r, files, name)
	})
}
