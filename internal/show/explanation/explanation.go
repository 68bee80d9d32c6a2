// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

// An Explanation is what is known about an object, from the API server and from its operator. At
// least one of Object and Report is set.
type Explanation struct {
	// Object is the object as the API server has it; nil if it does not exist, or could not be
	// read, and then NoObject says why.
	Object   *unstructured.Unstructured `json:"object,omitempty"`
	NoObject string                     `json:"noObject,omitempty"`
	// Resource is its name for kubectl, for the commands that are proposed:
	// "rwexternals.demo.ctrlkit.dev".
	Resource string `json:"resource"`
	// OtherResources are those of other groups that the user may have meant by the same name. Of
	// several the API server's preferred one is taken.
	OtherResources []string `json:"otherResources,omitempty"`
	// Report is what the operator knows; nil if it could not be asked, and then NoReport says why.
	Report   *Report `json:"report,omitempty"`
	NoReport string  `json:"noReport,omitempty"`
	// Asked is the shard that was asked; nil where replicas do not share the objects.
	Asked *Asked `json:"asked,omitempty"`
	// Now is the time that ages and delays are relative to.
	Now time.Time `json:"now"`
}

// Write writes the explanation as text for people:
//
//   - It contains no control characters, whatever the object or the operator says.
//   - Of many or long things it shows those that matter, and counts the others.
func (x *Explanation) Write(w io.Writer) error {
	p := &page{x: x}
	p.head()
	p.todo()
	for _, c := range p.controllersOf() {
		p.steps(c)
	}
	p.conditions()
	p.finalizers()
	for _, c := range p.controllersOf() {
		p.runs(c)
	}
	if x.Report == nil && x.NoReport != "" {
		p.line("")
		p.line("Steps and causes are not known: %s", short(x.NoReport))
	}
	if p.leftOut || strings.Contains(p.text.String(), printable.MoreCharacters) {
		p.line("")
		p.line("Not everything is shown; -o json shows it")
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}

// Ambiguity says which of several kinds of a name was taken, and how to name another one; it is empty
// if there is only one.
func (x *Explanation) Ambiguity(name string) string {
	if len(x.OtherResources) == 0 {
		return ""
	}
	return fmt.Sprintf("It was looked for among %s; for another kind of this name: ctrlkit explain %s/%s", x.Resource, strings.Join(x.OtherResources, " or "), name)
}

// Ready reports whether the object exists, is ready as its spec is now, and is not being deleted.
// An object of a built-in kind without conditions, such as a Secret, is ready if no controller of
// the operator that was asked fails or waits for it.
func (x *Explanation) Ready() bool {
	if x.Object == nil || x.Object.GetDeletionTimestamp() != nil {
		return false
	}
	ready := meta.FindStatusCondition(x.objectConditions(), condition.Ready)
	if ready == nil && kindOf(x.Object) == bare {
		return x.Report == nil || !slices.ContainsFunc(x.Report.Controllers, func(c Controller) bool {
			return len(stuck(c.Steps)) > 0 || c.Failure != "" || c.Gated != ""
		})
	}
	return ready != nil && ready.Status == metav1.ConditionTrue && x.current(ready)
}

// current reports whether a condition is about the spec as it is now, as far as the condition says.
func (x *Explanation) current(c *metav1.Condition) bool {
	return c.ObservedGeneration == 0 || c.ObservedGeneration == x.Object.GetGeneration()
}

// objectConditions returns the conditions of the object.
func (x *Explanation) objectConditions() []metav1.Condition {
	if x.Object == nil {
		return nil
	}
	items, _, _ := unstructured.NestedSlice(x.Object.Object, "status", "conditions") //nolint:errcheck // another type has no conditions
	var all []metav1.Condition
	for _, item := range items {
		var c metav1.Condition
		if m, ok := item.(map[string]any); ok && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c) == nil {
			all = append(all, c)
		}
	}
	return all
}
