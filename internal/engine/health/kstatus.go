// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// byKstatus judges a built-in kind by the rules of kstatus.
func byKstatus(d *document) Health {
	content := map[string]any{
		"apiVersion": d.gvk.GroupVersion().String(), "kind": d.gvk.Kind,
		"metadata": map[string]any{"name": d.text("metadata", "name"), "generation": d.generation},
		"spec":     decoded(d.content["spec"]), "status": ordered(decoded(d.content["status"])),
	}
	computed, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		return unknown(ReasonUnreadableStatus, "its status: "+err.Error())
	}
	s := Health{Message: lacksOf(computed.Message)}
	if len(computed.Conditions) > 0 {
		s.Reason = computed.Conditions[0].Reason
	}
	switch computed.Status {
	case status.CurrentStatus:
		return Health{State: StateReady}
	case status.FailedStatus:
		s.State = StateFailed
		if more := computed.Conditions; len(more) > 0 && more[0].Message != "" {
			s.Message = more[0].Message
		}
	case status.InProgressStatus:
		s.State = StateProgressing
	default:
		s.State = StateUnknown
	}
	return s
}

// ordered returns a status with its conditions in one order, the gravest first: kstatus decides by
// the first of Reconciling and Stalled that it finds.
func ordered(value any) any {
	status, ok := value.(map[string]any)
	if !ok {
		return value
	}
	conditions, ok := status["conditions"].([]any)
	if !ok {
		return value
	}
	rank := func(c any) string {
		kind, _, _ := unstructured.NestedString(asMap(c), "type")
		if i := slices.Index(first, kind); i >= 0 {
			return string(rune('0' + i))
		}
		return kind
	}
	status = maps.Clone(status)
	status["conditions"] = slices.SortedStableFunc(slices.Values(conditions), func(a, b any) int { return strings.Compare(rank(a), rank(b)) })
	return status
}

// first are the conditions that come before all others. A CustomResourceDefinition whose names are
// taken is not established because of that.
var first = []string{"Stalled", "NamesAccepted"}

func asMap(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}

// decoded returns a value with integers as the decoders of Kubernetes have them, which kstatus
// expects. What has them already is not copied.
func decoded(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if !foreign(value) {
			return value
		}
		fields := make(map[string]any, len(value))
		for key, field := range value {
			fields[key] = decoded(field)
		}
		return fields
	case []any:
		if !foreign(value) {
			return value
		}
		items := make([]any, len(value))
		for i, item := range value {
			items[i] = decoded(item)
		}
		return items
	}
	if isForeign(value) {
		n, _ := numberOf(value)
		return n
	}
	return value
}

// foreign reports whether a value has integers of other decoders.
func foreign(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			if foreign(field) {
				return true
			}
		}
	case []any:
		for _, item := range value {
			if foreign(item) {
				return true
			}
		}
	}
	return isForeign(value)
}

func isForeign(value any) bool {
	switch value := value.(type) {
	case int, int32:
		return true
	case float64:
		return value == math.Trunc(value) && math.Abs(value) < 1<<53
	case interface{ Int64() (int64, error) }: // json.Number
		_, err := value.Int64()
		return err == nil
	}
	return false
}

// lacksOf makes a message of kstatus a part of a sentence: "Updated: 1/2" is "1 of 2 replicas
// updated". What it says only for programs, such as generations, is left out.
func lacksOf(message string) string {
	if m := counts.FindStringSubmatch(message); m != nil {
		what := strings.ToLower(m[1])
		if what == "replicas" {
			what = "created"
		}
		return fmt.Sprintf("%s of %s replicas %s", m[2], m[3], what)
	}
	if m := surplus.FindStringSubmatch(message); m != nil {
		n, _ := numberOf(m[1])
		return surplusText(n)
	}
	if unobserved.MatchString(message) {
		return "its controller has not seen the last change"
	}
	return message
}

var (
	counts     = regexp.MustCompile(`^(Replicas|Labelled|Updated|Available|Ready|[Cc]urrent|updated): (\d+)/(\d+)$`)
	surplus    = regexp.MustCompile(`^Pending termination: (\d+)$`)
	unobserved = regexp.MustCompile(`^\w+ (generation is \d+, but latest observed generation is \d+|status\.observedGeneration not found)$`)
)
