// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
)

// However a template reads a detail that is not known, the key keeps its value, and the failure names
// both.
func TestEachWayToADetail(t *testing.T) {
	for _, text := range []string{
		`{{.ca}}`,
		`{{index . "ca"}}`,
		`{{$all := .}}{{index $all "ca"}}`,
		`{{$name := "ca"}}{{index $ $name}}`,
		`{{index . (print "c" "a")}}`,
		`{{"ca" | index .}}`,
		`{{index . "ca" | urlquery}}`,
		`{{printf "%c" (index . "ca" 0)}}`,
		`{{printf "%c" (index .ca 0)}}`,
		`{{if .ca}}{{.ca}}{{end}}`,
		`{{if index . "ca"}}{{.ca}}{{else}}none{{end}}`,
		`{{with index . "ca"}}{{.}}{{end}}`,
		`{{with .ca}}{{.}}{{else}}none{{end}}`,
		`{{or (index . "ca") "none"}}`,
		`{{and .user (index . "ca")}}`,
		`{{define "t"}}{{index . "ca"}}{{end}}{{template "t" .}}`,
		`{{define "t"}}{{.}}{{end}}{{template "t" .ca}}`,
		`{{block "t" .}}{{index . "ca"}}{{end}}`,
		`{{range $k, $v := .}}{{if eq $k "ca"}}{{$v}}{{end}}{{end}}`,
		`{{len (index . "ca")}}`,
	} {
		w := newWorld(t, external.Target{Secret: "a", Keys: map[string]string{"k": text, "user": `{{index . "user"}}`}})
		w.must(w.publish(map[string]string{"ca": "CERT", "user": "u"}, nil))
		before := w.published()
		w.unpublished(text, w.publish(map[string]string{"user": "v"}, nil), "Secret default/a: key k needs ")
		w.expect(text, nil, strings.Replace(before, "user=u", "user=v", 1))
		c := newWorld(t, external.Target{ConfigMap: "c", Keys: map[string]string{"k": text}})
		c.public = []string{"user"}
		c.restart()
		err := c.publish(map[string]string{"ca": "CERT", "user": "u"}, nil)
		refused := err != nil && failure.Classify(err).Reason == "WrongTarget" && strings.Contains(err.Error(), "key k needs ca, which may not be in a ConfigMap")
		if ranges := strings.Contains(text, "{{range"); !refused && !ranges || strings.Contains(c.published(), "CERT") || ranges && err == nil {
			t.Errorf("%s in a ConfigMap: %v, %s", text, err, c.published())
		}
	}
}

// What a template does not read, it does not need; a range has what is known.
func TestWhatATemplateDoesNotRead(t *testing.T) {
	for text, want := range map[string]string{
		`{{if eq .user "x"}}{{.ca}}{{end}}`:              "",
		`{{or .user .ca}}`:                               "u",
		`{{range $k, $v := .}}{{$k}}={{$v}};{{end}}`:     "host=h;user=u;",
		`{{index . "user"}}@{{index .host 0 | print}}`:   "u@104",
		`{{with .user}}{{.}}{{end}}`:                     "u",
		`{{define "t"}}{{.ca}}{{end}}{{index . "host"}}`: "h",
		`literal`: "literal",
		`{{range $i, $c := slice .user 0 0}}{{$c}}{{end}}`: "?",
	} {
		w := newWorld(t, external.Target{Secret: "a", Keys: map[string]string{"k": text}})
		err := w.publish(map[string]string{"user": "u", "host": "h"}, nil)
		if want == "?" { // a string can't be gone over, or is empty: an error in any case
			if err == nil {
				t.Errorf("%s: no error", text)
			}
			continue
		}
		w.expect(text, err, "Secret default/a: k="+want)
	}
}
