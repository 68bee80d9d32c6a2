// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
)

func TestOnceStories(t *testing.T) { playStories(t, "once.story") }

func TestReadyStories(t *testing.T) { playStories(t, "ready.story") }

func TestKeptStories(t *testing.T) { playStories(t, "kept.story") }

// playStories plays the stories of a file in testdata: what a set keeps. After "settle" a line shows
// the objects, each with its content and the number of its incarnation, and another the condition.
func playStories(t *testing.T, file string) {
	t.Helper()
	golden.Stories(t, file, func(story []string) []string {
		s := &setStory{known: make(map[string][]types.UID)}
		options := []apply.SetOption{apply.Owns(&corev1.ConfigMap{}, &batchv1.Job{}, &appsv1.Deployment{}, &corev1.Service{}), apply.Tracks(&corev1.ConfigMap{})}
		for _, line := range story {
			if limit, ok := strings.CutPrefix(line, "limit "); ok {
				options = append(options, apply.PruneLimit(s.number(limit)))
			}
		}
		s.operator, s.owner = testOperator(t, s.build, options...)
		return golden.Play(story, s.do)
	})
}

// A setStory is a set, and what it wants.
type setStory struct {
	*operator
	owner  *Shop
	wanted [][]string // the words after "want"
	known  map[string][]types.UID
	names  []string // of the objects in known, as "kind name"
}

func (s *setStory) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	return n
}

func (s *setStory) object(kind, name string) client.Object {
	if id := kind + " " + name; !slices.Contains(s.names, id) {
		s.names = append(s.names, id)
	}
	switch kind {
	case "map":
		return newConfigMap(name)
	case "job":
		return newJob(name, "")
	case "service":
		return newService(name)
	}
	return newDeployment(name, 2)
}

// build adds what is wanted: fields as name=value, policies as words.
func (s *setStory) build(_ *Shop, set *apply.Set) {
	for _, words := range s.wanted {
		obj := s.object(words[0], words[1])
		items := []any{obj}
		for _, word := range words[2:] {
			name, value, isField := strings.Cut(word, "=")
			switch {
			case !isField:
				items = append(items, apply.Policy(word))
			case name == "wave":
				items = append(items, apply.Wave(s.number(value)))
			default:
				s.setField(obj, name, value)
			}
		}
		set.Add(items...)
	}
}

func (s *setStory) setField(obj client.Object, name, value string) {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		obj.Data[name] = value
	case *batchv1.Job:
		switch name {
		case "image":
			obj.Spec.Template.Spec.Containers[0].Image = value
		case "ttl":
			obj.Spec.TTLSecondsAfterFinished = new(int32(s.number(value)))
		case "retries":
			obj.Spec.BackoffLimit = new(int32(s.number(value)))
		}
	}
}

// do does what a line says.
func (s *setStory) do(line string) []string {
	words := strings.SplitN(line, " ", 4)
	switch words[0] {
	case "want", "drop":
		words = strings.Fields(line)[1:]
		s.wanted = slices.DeleteFunc(s.wanted, func(w []string) bool { return w[0] == words[0] && w[1] == words[1] })
		if strings.HasPrefix(line, "want") {
			s.wanted = append(s.wanted, words)
		}
	case "limit": // an option of the set
	case "patch":
		s.patch(s.object(words[1], words[2]), words[3])
	case "status":
		status := words[3]
		if named := map[string]string{"complete": completeJob, "failed": failedJob}[status]; named != "" {
			status = named
		}
		s.setStatus(s.object(words[1], words[2]), status)
	case "delete":
		if words[1] == "owner" {
			s.delete(s.owner)
			break
		}
		obj := s.object(words[1], words[2])
		obj.SetNamespace(s.namespace)
		s.delete(obj)
	case "pod":
		s.addPod()
	case "end-pod":
		s.endPod()
	case "settle":
		return s.shown(s.settle(s.owner))
	case "restart":
		return s.restartedWrites(s.owner)
	default:
		s.t.Fatalf("unknown line %q", line)
	}
	return nil
}

func (s *setStory) shown(err error) []string {
	var texts []string
	for _, id := range s.names {
		kind, name, _ := strings.Cut(id, " ")
		obj := s.object(kind, name)
		if cm, ok := obj.(*corev1.ConfigMap); ok {
			cm.Data = nil
		}
		if !s.get(obj, name) {
			continue
		}
		if !slices.Contains(s.known[id], obj.GetUID()) {
			s.known[id] = append(s.known[id], obj.GetUID())
		}
		text := fmt.Sprintf("%s#%d", name, slices.Index(s.known[id], obj.GetUID())+1)
		switch obj := obj.(type) {
		case *corev1.ConfigMap:
			text += strings.TrimSuffix(" "+dataText(obj.Data), " ")
		case *batchv1.Job:
			text += " " + jobText(obj)
		}
		if metav1.GetControllerOf(obj) == nil {
			text += " (unowned)"
		}
		texts = append(texts, text)
	}
	shown := []string{strings.TrimSpace("- " + strings.Join(texts, "; ")), s.condition(s.owner)}
	if err != nil {
		classified := failure.Classify(err)
		shown = append(shown, fmt.Sprintf("error: %v %s", classified.Class, classified.Reason))
	}
	return slices.DeleteFunc(shown, func(line string) bool { return line == "" })
}
