// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/cluster/rbac"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
)

// story plays requests to a server of its own. A line of it is one of
//
//	POST pods {spec: {}} > a.b c.*.d  a request, of which the code, the message and these fields are shown
//	TABLE pods                        a request of "kubectl get"
//	keep x a.b                        $x stands for a field of the last answer from here on
//	accept TYPES, content TYPE        the headers of the requests that follow
//	as USER                           the user of the requests that follow
//	policy FILE                       lets users do only what this file allows
//	watch pods?QUERY, events > a.b    opens a watch, and shows what it has sent since
//	left                              does the work in the background, and shows the ConfigMaps
//	install FILE                      installs a definition
//	sleep DURATION                    lets time pass
//	history N, expire N               limits the history, forgets changes
type story struct {
	world
	accept, content, user string
	kept                  []string
	answer                any
	watch                 *apiserver.Watch
}

// Stories of one file are about one part of the server.
func TestStories(t *testing.T) {
	for _, name := range []string{"admission", "certificates", "deletion", "definitions", "encoding", "events", "lists", "permissions", "pods", "repeats", "scales", "services", "tokens", "watches"} {
		t.Run(name, func(t *testing.T) {
			golden.Stories(t, name+".txt", func(lines []string) (played []string) {
				synctest.Test(t, func(t *testing.T) {
					s := &story{world: newWorld(t)}
					played = golden.Play(lines, s.play)
					if s.watch != nil {
						s.watch.Stop()
					}
				})
				return played
			})
		})
	}
}

func (s *story) play(line string) []string {
	line = strings.NewReplacer(s.kept...).Replace(line)
	line, fields, _ := strings.Cut(line, " > ")
	words := append(strings.SplitN(line, " ", 3), "", "")
	switch words[0] {
	case "accept":
		s.accept = words[1]
	case "content":
		s.content = words[1]
	case "as":
		s.user = words[1]
	case "policy":
		policy, err := rbac.Read("testdata/" + words[1])
		must(s.t, err)
		s.Server = apiserver.New(apiserver.Options{Authorizer: policy})
	case "keep":
		s.kept = append(s.kept, "$"+words[1], fmt.Sprint(at(s.answer, strings.Split(words[2], "."))))
	case "left":
		return []string{cmp.Or(strings.Join(s.names(), " "), "nothing")}
	case "install":
		must(s.t, s.Install(definition(s.t, words[1])))
	case "history", "expire":
		n, err := strconv.Atoi(words[1])
		must(s.t, err)
		if words[0] == "expire" {
			s.Expire(uint64(n))
		} else {
			s.Server = apiserver.New(apiserver.Options{History: n})
		}
	case "sleep":
		d, err := time.ParseDuration(words[1])
		must(s.t, err)
		time.Sleep(d)
	case "watch":
		return s.open(words[1])
	case "events":
		return s.events(fields)
	case "TABLE":
		return s.table(words[1])
	default:
		return []string{strings.TrimSpace(s.send(words[0], words[1], s.accept, words[2]) + show(s.answer, fields))}
	}
	return nil
}

// roots are the paths of the kinds in stories, but for those of the core group.
var roots = map[string]string{
	"deployments":          "/apis/apps/v1/namespaces/default/",
	"jobs":                 "/apis/batch/v1/namespaces/default/",
	"poddisruptionbudgets": "/apis/policy/v1/namespaces/default/",
	"widgets":              "/apis/example.com/v1/namespaces/default/",
}

func pathOf(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	resource, _, _ := strings.Cut(strings.ReplaceAll(name, "?", "/"), "/")
	if root, ok := roots[resource]; ok {
		return root + name
	}
	return "/api/v1/namespaces/default/" + name
}

// send sends a request, and returns what is said of the answer.
func (s *story) send(method, path, accept, body string) string {
	content := s.content
	if content == "" {
		document, err := yaml.YAMLToJSON([]byte(body))
		must(s.t, err)
		content = map[bool]string{true: "application/merge-patch+json", false: "application/json"}[method == "PATCH"]
		if body != "" {
			body = string(document)
		}
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://x"+pathOf(path), strings.NewReader(body))
	must(s.t, err)
	request.Header.Set("Accept", accept)
	request.Header.Set("Content-Type", content)
	if s.user != "" {
		request.Header.Set("Impersonate-User", s.user)
	}
	response, err := s.RoundTrip(request)
	must(s.t, err)
	data, err := io.ReadAll(response.Body)
	must(s.t, err)
	said := fmt.Sprint(response.StatusCode, " ")
	if s.accept+s.content != "" {
		said += response.Header.Get("Content-Type") + " "
	}
	s.answer = nil
	if err := json.Unmarshal(data, &s.answer); err != nil && s.accept == "" {
		s.t.Fatalf("%s %s: %s", method, path, data)
	}
	if answer, _ := s.answer.(map[string]any); answer["kind"] == "Status" && answer["status"] != "Success" {
		said += strings.Join(strings.Fields(fmt.Sprint(answer["message"])), " ") + " "
	}
	return said
}

// at returns a field: "*" stands for all elements of a list.
func at(value any, path []string) any {
	for i, name := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			if n, err := strconv.Atoi(name); err == nil && n < len(v) {
				value = v[n]
				continue
			}
			all := []any{}
			for _, element := range v {
				all = append(all, at(element, path[i+1:]))
			}
			return all
		default:
			return nil
		}
	}
	return value
}

func show(answer any, fields string) (shown string) {
	for _, field := range strings.Fields(fields) {
		value := &strings.Builder{}
		encoder := json.NewEncoder(value)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(at(answer, strings.Split(field, "."))); err != nil {
			return err.Error()
		}
		shown += field + "=" + strings.TrimSpace(value.String()) + " "
	}
	return shown
}

func (s *story) table(path string) []string {
	said := s.send("GET", path, asTable, "")
	if at(s.answer, []string{"kind"}) != "Table" {
		return []string{said + fmt.Sprint(at(s.answer, []string{"kind"}))}
	}
	lines := []string{strings.TrimSpace(show(s.answer, "columnDefinitions.*.name columnDefinitions.*.priority"))}
	for _, row := range at(s.answer, []string{"rows"}).([]any) {
		lines = append(lines, strings.TrimSpace(show(row, "cells object.kind object.metadata.name object.spec.containers.*.name")))
	}
	return lines
}

func (s *story) open(path string) []string {
	request, err := apiserver.NewRequest("GET", pathOf(path), "", nil)
	must(s.t, err)
	watch, refused := s.Watch(request)
	if refused != nil {
		return []string{string(refused.Body)}
	}
	s.watch = watch
	return nil
}

func (s *story) events(fields string) (lines []string) {
	for e, ok := s.watch.Next(); ok; e, ok = s.watch.Next() {
		var object any
		must(s.t, json.Unmarshal(e.Object, &object))
		lines = append(lines, strings.TrimSpace(e.Type+" "+e.Name+" "+show(object, fields)))
	}
	return lines
}

// definition returns a definition in testdata.
func definition(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	must(t, err)
	d := &apiextensionsv1.CustomResourceDefinition{}
	must(t, yaml.UnmarshalStrict(text, d))
	return d
}
