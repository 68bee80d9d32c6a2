// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

// Level says how good a state is. It determines the color.
type Level int

// The levels of a state.
const (
	LevelNone Level = iota // neither good nor bad
	LevelGood              // as desired
	LevelBusy              // in progress
	LevelBad               // needs attention
)

// State is the state of an object in one word, with a few fields that explain it.
type State struct {
	Word   string // empty if the object has no word for its state
	Level  Level
	Fields []Field
}

// String returns the state as text, such as "Running, ready 0/1". Times are absolute.
func (s State) String() string {
	return s.text(func(at time.Time) string { return at.UTC().Format(time.RFC3339) })
}

func (s State) text(moment func(time.Time) string) string {
	var b strings.Builder
	b.WriteString(s.Word)
	for _, field := range s.Fields {
		text := field.Text
		if !field.Time.IsZero() {
			text = moment(field.Time)
		}
		if text == "" {
			continue
		}
		switch {
		case b.Len() == 0:
		case field.Name == "":
			b.WriteString(": ")
		default:
			b.WriteString(", ")
		}
		if field.Name != "" {
			b.WriteString(field.Name + " ")
		}
		b.WriteString(text)
	}
	return b.String()
}

// Field is a detail of a state: a text or a point in time.
type Field struct {
	Name string // empty if the text explains the word
	Text string
	Time time.Time // zero if it is a text
}

// maxFields is how many fields of a status are shown.
const maxFields = 4

// Column is a printer column of a custom resource definition.
type Column struct {
	Name string
	Path string // JSONPath without braces, beginning with a dot
}

// stateOf returns the state of u: for a built-in kind by its own rules, and otherwise by the
// conventions of custom resources (conditions, then a phase, then fields of the status).
func stateOf(u *unstructured.Unstructured, columns []Column) State {
	if u.GetDeletionTimestamp() != nil {
		state := State{Word: "Terminating", Level: LevelBusy}
		if finalizers := u.GetFinalizers(); len(finalizers) > 0 {
			state.Fields = []Field{{Name: "held by", Text: strings.Join(finalizers, ", ")}}
		}
		return state
	}
	if builtin, ok := builtinStates[u.GroupVersionKind().GroupKind()]; ok {
		return builtin(u.Object)
	}
	return customState(u, columns)
}

var builtinStates = map[schema.GroupKind]func(map[string]any) State{
	{Kind: "Pod"}:                                      podState,
	{Kind: "PersistentVolumeClaim"}:                    phaseState,
	{Kind: "Namespace"}:                                phaseState,
	{Group: "batch", Kind: "Job"}:                      jobState,
	{Group: "batch", Kind: "CronJob"}:                  cronJobState,
	{Group: "apps", Kind: "Deployment"}:                replicas("availableReplicas", "available"),
	{Group: "apps", Kind: "ReplicaSet"}:                replicas("readyReplicas", "ready"),
	{Group: "apps", Kind: "StatefulSet"}:               replicas("readyReplicas", "ready"),
	{Kind: "ReplicationController"}:                    replicas("readyReplicas", "ready"),
	{Group: "apps", Kind: "DaemonSet"}:                 daemonSetState,
	{Group: "policy", Kind: "PodDisruptionBudget"}:     noState,
	{Group: "networking.k8s.io", Kind: "Ingress"}:      noState,
	{Kind: "Service"}:                                  noState,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: noState,
}

func noState(map[string]any) State { return State{} }

func phaseState(object map[string]any) State {
	phase, _, _ := unstructured.NestedString(object, "status", "phase")
	return State{Word: phase, Level: levelOfWord(phase)}
}

// podState returns the same word as "kubectl get pods": the phase, or the reason why a container is
// not running.
func podState(object map[string]any) State {
	phase, _, _ := unstructured.NestedString(object, "status", "phase")
	word := phase
	if reason, _, _ := unstructured.NestedString(object, "status", "reason"); reason != "" {
		word = reason
	}
	statuses, _, _ := unstructured.NestedSlice(object, "status", "containerStatuses")
	ready, restarts := 0, int64(0)
	for _, entry := range statuses {
		status, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		if isReady, _, _ := unstructured.NestedBool(status, "ready"); isReady {
			ready++
		}
		count, _, _ := unstructured.NestedInt64(status, "restartCount")
		restarts += count
		for _, where := range []string{"waiting", "terminated"} {
			reason, _, _ := unstructured.NestedString(status, "state", where, "reason")
			if reason != "" && phase != "Succeeded" {
				word = reason
			}
		}
	}
	state := State{Word: word, Level: levelOfWord(word)}
	if word == "Succeeded" {
		state.Word = "Completed"
	}
	if word == "Running" && ready < len(statuses) {
		state.Level = LevelBusy
		state.Fields = append(state.Fields, Field{Name: "ready", Text: fmt.Sprintf("%d/%d", ready, len(statuses))})
	}
	if restarts > 0 {
		state.Fields = append(state.Fields, Field{Name: "restarts", Text: strconv.FormatInt(restarts, 10)})
	}
	return state
}

func jobState(object map[string]any) State {
	wanted, found, _ := unstructured.NestedInt64(object, "spec", "completions")
	if !found {
		wanted = 1
	}
	succeeded, _, _ := unstructured.NestedInt64(object, "status", "succeeded")
	active, _, _ := unstructured.NestedInt64(object, "status", "active")
	failed, _, _ := unstructured.NestedInt64(object, "status", "failed")

	conditions := conditionsOf(object)
	uncounted, _, _ := unstructured.NestedMap(object, "status", "uncountedTerminatedPods")
	state := State{Word: "Pending", Level: LevelBusy}
	// Between the end of its last Pod and its own end, a Job has no active Pods.
	if active+succeeded+failed > 0 || len(uncounted) > 0 || conditions["SuccessCriteriaMet"].status == "True" {
		state.Word = "Running"
	}
	for _, known := range []struct {
		condition string
		level     Level
	}{{"Suspended", LevelNone}, {"Complete", LevelGood}, {"Failed", LevelBad}} {
		if condition := conditions[known.condition]; condition.status == "True" {
			state.Word, state.Level = known.condition, known.level
			if known.level == LevelBad {
				state.Fields = append(state.Fields, Field{Text: condition.text()})
			}
		}
	}
	if wanted > 1 {
		state.Fields = append(state.Fields, Field{Name: "succeeded", Text: fmt.Sprintf("%d/%d", succeeded, wanted)})
	}
	if failed > 0 {
		state.Fields = append(state.Fields, Field{Name: "failed pods", Text: strconv.FormatInt(failed, 10)})
	}
	return state
}

func cronJobState(object map[string]any) State {
	if suspended, _, _ := unstructured.NestedBool(object, "spec", "suspend"); suspended {
		return State{Word: "Suspended"}
	}
	return State{Fields: statusFields(object)}
}

// replicas returns the rule for kinds that keep a number of Pods: "2/2 available".
func replicas(have, word string) func(map[string]any) State {
	return func(object map[string]any) State {
		wanted, found, _ := unstructured.NestedInt64(object, "spec", "replicas")
		if !found {
			wanted = 1
		}
		count, _, _ := unstructured.NestedInt64(object, "status", have)
		return counted(count, wanted, word)
	}
}

func daemonSetState(object map[string]any) State {
	wanted, _, _ := unstructured.NestedInt64(object, "status", "desiredNumberScheduled")
	ready, _, _ := unstructured.NestedInt64(object, "status", "numberReady")
	return counted(ready, wanted, "ready")
}

func counted(have, wanted int64, word string) State {
	state := State{Word: fmt.Sprintf("%d/%d %s", have, wanted, word), Level: LevelGood}
	if have < wanted {
		state.Level = LevelBusy
	}
	return state
}

// customState follows the conventions of custom resources.
func customState(u *unstructured.Unstructured, columns []Column) State {
	conditions := conditionsOf(u.Object)
	if stalled := conditions["Stalled"]; stalled.status == "True" {
		return State{Word: "Stalled", Level: LevelBad, Fields: []Field{{Text: stalled.text()}}}
	}
	for _, name := range []string{"Ready", "Available", "Healthy", "Succeeded", "Complete", "Synced"} {
		condition, ok := conditions[name]
		if !ok {
			continue
		}
		if condition.status == "True" {
			return State{Word: name, Level: LevelGood, Fields: fieldsOf(u.Object, columns)}
		}
		state := State{Word: "Not" + name, Level: LevelBusy, Fields: []Field{{Text: condition.text()}}}
		if condition.status == "False" && soundsBad(condition.reason) {
			state.Level = LevelBad
		}
		return state
	}
	for _, name := range []string{"Failed", "Degraded", "Reconciling", "Progressing"} {
		if condition := conditions[name]; condition.status == "True" {
			state := State{Word: name, Level: LevelBusy, Fields: []Field{{Text: condition.text()}}}
			if name == "Failed" || name == "Degraded" {
				state.Level = LevelBad
			}
			return state
		}
	}
	for _, name := range []string{"phase", "state"} {
		if word, _, _ := unstructured.NestedString(u.Object, "status", name); word != "" {
			return State{Word: word, Level: levelOfWord(word), Fields: fieldsOf(u.Object, columns)}
		}
	}
	return State{Fields: fieldsOf(u.Object, columns)}
}

type condition struct{ status, reason, message string }

// text returns the message, or the reason if there is none, on one line.
func (c condition) text() string {
	if c.message == "" {
		return c.reason
	}
	return oneLine(c.message)
}

func conditionsOf(object map[string]any) map[string]condition {
	entries, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	conditions := make(map[string]condition, len(entries))
	for _, entry := range entries {
		fields, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		name, _ := fields["type"].(string)
		var c condition
		c.status, _ = fields["status"].(string)
		c.reason, _ = fields["reason"].(string)
		c.message, _ = fields["message"].(string)
		conditions[name] = c
	}
	return conditions
}

// fieldsOf returns the fields that explain a state: those of the printer columns that show the
// status, or else the plain fields of the status.
func fieldsOf(object map[string]any, columns []Column) []Field {
	var fields []Field
	for _, column := range columns {
		path, ok := strings.CutPrefix(column.Path, ".status.")
		if !ok || strings.ContainsAny(path, "[]()'\"\\") || path == "phase" || path == "state" {
			continue
		}
		value, found, err := unstructured.NestedFieldNoCopy(object, append([]string{"status"}, strings.Split(path, ".")...)...)
		if !found || err != nil {
			continue
		}
		if field, ok := newField(strings.ToLower(column.Name), value); ok {
			fields = append(fields, field)
		}
	}
	if len(fields) == 0 {
		fields = statusFields(object)
	}
	return fields[:min(len(fields), maxFields)]
}

// statusFields returns the scalars and the lengths of the lists of the status, by name.
func statusFields(object map[string]any) []Field {
	status, _, _ := unstructured.NestedMap(object, "status")
	var fields []Field
	for _, name := range slices.Sorted(maps.Keys(status)) {
		switch name {
		case "conditions", "observedGeneration", "phase", "state":
			continue
		}
		if field, ok := newField(words(name), status[name]); ok {
			fields = append(fields, field)
		}
	}
	return fields[:min(len(fields), maxFields)]
}

// newField converts a value to a field. It reports false for maps and empty texts.
func newField(name string, value any) (Field, bool) {
	switch value := value.(type) {
	case string:
		if value == "" {
			return Field{}, false
		}
		if at, err := time.Parse(time.RFC3339, value); err == nil {
			return Field{Name: strings.TrimSuffix(name, " time"), Time: at}, true
		}
		return Field{Name: name, Text: oneLine(value)}, true
	case bool, int64, float64:
		return Field{Name: name, Text: fmt.Sprint(value)}, true
	case []any:
		return Field{Name: name, Text: strconv.Itoa(len(value))}, true
	default:
		return Field{}, false
	}
}

// words splits a name in camel case: lastScheduleTime becomes "last schedule time".
func words(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) {
			if i > 0 && unicode.IsLower(runes[i-1]) {
				b.WriteByte(' ')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

func levelOfWord(word string) Level {
	switch word {
	case "Running", "Ready", "Active", "Bound", "Succeeded", "Completed", "Complete", "Available", "Healthy":
		return LevelGood
	case "Pending", "Creating", "ContainerCreating", "PodInitializing", "Provisioning", "Updating", "Deleting", "Terminating", "Progressing":
		return LevelBusy
	}
	if soundsBad(word) {
		return LevelBad
	}
	return LevelNone
}

func soundsBad(word string) bool {
	lower := strings.ToLower(word)
	for _, bad := range []string{"error", "fail", "backoff", "evicted", "invalid", "degraded", "lost", "killed"} {
		if strings.Contains(lower, bad) {
			return true
		}
	}
	return false
}

// oneLine makes text safe to show within a line: white space becomes one space, and what acts on a
// terminal is escaped.
func oneLine(text string) string {
	return printable.Line(strings.Join(strings.Fields(text), " "))
}
