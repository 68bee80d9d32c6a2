// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// explain returns what is known of the object of the page.
func (v *viewing) explain(o journal.Object) (*explanation.Explanation, []journal.Entry) {
	x := &explanation.Explanation{Now: v.now, NoReport: v.server.options.NoJournal}
	obj, resource, err := v.server.options.Objects.Get(v.ctx, o)
	x.Object, x.Resource = obj, resource
	if err != nil {
		x.NoObject = err.Error()
	}
	var entries []journal.Entry
	if v.server.options.Entries != nil {
		if entries = v.server.options.Entries(o); len(entries) > 0 {
			report := explanation.FromEntries(o, entries)
			x.Report = &report
		}
	}
	return x, entries
}

// known reports whether the page about an object would say something.
func (v *viewing) known(o journal.Object) bool {
	if _, all := v.server.options.Objects.(Details); all {
		return true
	}
	v.table.mu.Lock()
	defer v.table.mu.Unlock()
	_, ok := v.table.rows[o]
	return ok || v.table.follows[schema.GroupKind{Group: o.Group, Kind: o.Kind}] != nil
}

// A headOf is the top of the page of an object.
type headOf struct {
	Title, Namespace, Kind, Group string
	State                         State  // empty if the object does not exist
	Since                         string // what the state is, and since when
	Headline                      string // why it is so, empty if that needs no words
	Lines                         []string
	Object, Kinds                 template.URL
	Owners                        []objectLine
}

// object is the page about one object.
func (v *viewing) object() block {
	o := objectOf(v.query)
	x, entries := v.explain(o)
	head := v.head(o, x)
	said := &said{head.Headline}
	content := append(v.notices(), render("head", "object-head", head))
	// Of an object that is ready without a condition Ready, an explanation does not know that.
	if x.Report != nil || x.Ready() || head.State != Ready {
		content = append(content, adviceOf(x, said)...)
	}
	content = append(content, v.steps(x, said)...)
	if conditions := x.Conditions(); len(conditions) > 0 {
		slices.SortStableFunc(conditions, func(a, b metav1.Condition) int { return cmp.Compare(rankOf(a.Type), rankOf(b.Type)) })
		content = append(content, render("conditions", "conditions", conditionLines(conditions, x.Report != nil, said)))
	}
	content = append(content, v.history(x.Conditions(), entries, x.Report != nil)...)
	content = append(content, v.details(x.Object, outsideOf(x.Object, x.Conditions(), entries))...)
	if all := reconcilesOf(entries); len(all) > 0 {
		content = append(content, v.strip(o, all))
		content = append(content, v.drawTimeline(o, all, 12)...)
	}
	if x.Object == nil {
		return render("content", "content", nil, content...)
	}
	if managers := managersOf(x.Object); len(managers) > 0 {
		content = append(content, render("managers", "managers", managers))
	}
	if len(x.Object.GetFinalizers()) > 0 {
		content = append(content, render("finalizers", "finalizers", finalizerLines(x)))
	}
	return render("content", "content", nil, content...)
}

// head returns the top of the page of an object.
func (v *viewing) head(o journal.Object, x *explanation.Explanation) headOf {
	head := headOf{Title: o.Name, Namespace: o.Namespace, Kind: o.Kind, Group: o.Group, Object: queryOf(o), Kinds: encode(url.Values{"kind": {o.Kind}})}
	if x.Object == nil && x.Report == nil && x.NoObject == "" {
		head.Since = "does not exist"
		return head
	}
	lines := x.Head()
	head.Since, lines = strings.TrimPrefix(lines[0], o.String()+" "), lines[1:]
	if x.Object == nil {
		if head.Lines = lines; !v.known(o) {
			head.Lines = append(head.Lines, "Where it has a kubeconfig, ctrlkit view shows it.")
		}
		return head
	}
	if !x.Ready() && len(lines) > 0 {
		head.Headline, lines = lines[0], lines[1:]
	}
	head.Lines = lines
	v.table.mu.Lock()
	if e := v.table.rows[o]; e != nil {
		head.State = e.state
	} else {
		head.State = rowOf(x.Object, x.Object.GroupVersionKind(), lastRun{}, false).state
	}
	v.table.mu.Unlock()
	for _, ref := range x.Object.GetOwnerReferences() {
		owner := journal.Object{Group: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group, Kind: ref.Kind, Namespace: o.Namespace, Name: ref.Name}
		head.Owners = append(head.Owners, v.linkTo(owner, ""))
	}
	return head
}

// adviceOf returns what a person can do, if anything.
func adviceOf(x *explanation.Explanation, said *said) []block {
	all, more := x.Advice()
	if len(all) == 0 {
		return nil
	}
	for i := range all {
		all[i].Text = said.once(all[i].Text)
		if all[i].Error = said.once(all[i].Error); all[i].Error == above {
			all[i].Error = ""
		}
	}
	return []block{render("advice", "advice", struct {
		All  []explanation.Advice
		More int
	}{all, more})}
}

func rankOf(name string) int { return -slices.Index([]string{"Stalled", "Reconciling", "Ready"}, name) }

// linkTo returns a line about an object, with a link if there is a page about it.
func (v *viewing) linkTo(o journal.Object, text string) objectLine {
	line := objectLine{Name: o.String(), Text: text}
	if v.known(o) {
		line.Query = queryOf(o)
	}
	return line
}

// A conditionLine is a condition of an object.
type conditionLine struct {
	Type, Status, Text string
	Since              time.Time
	Tone               string
}

// conditionLines returns what the page says of conditions. Those of an engine are True when all is
// well; of others only some names say so.
func conditionLines(conditions []metav1.Condition, ofEngine bool, said *said) []conditionLine {
	var all []conditionLine
	for _, c := range conditions {
		tone := toneOfCondition(c, ofEngine)
		text := c.Reason
		if c.Message != "" {
			text += ": " + c.Message
		}
		all = append(all, conditionLine{explanation.OneLine(c.Type), string(c.Status), said.once(explanation.OneLine(text)), c.LastTransitionTime.Time, tone})
	}
	return all
}

// abnormal are conditions that are False when all is well: those of the engine and of package
// external.
var abnormal = []string{"Stalled", "Reconciling", "Creating", "Updating", "Deleting", "Drifted", "Failed"}

func toneOfCondition(c metav1.Condition, ofEngine bool) string {
	isAbnormal := slices.Contains(abnormal, c.Type)
	switch {
	case c.Status == metav1.ConditionTrue && (c.Type == "Stalled" || c.Type == "Failed"):
		return "bad"
	case c.Type == "Managed": // it shows a policy
		return "faded"
	case (c.Status == metav1.ConditionTrue) != isAbnormal && c.Status != metav1.ConditionUnknown:
		return "good"
	case isAbnormal:
		return "waiting"
	case ofEngine, strings.HasSuffix(c.Type, "Ready"), slices.Contains([]string{"Available", "Healthy", "Synced"}, c.Type):
		return "unready"
	default:
		return "faded"
	}
}

func finalizerLines(x *explanation.Explanation) []objectLine {
	var all []objectLine
	for _, f := range x.Object.GetFinalizers() {
		whose := "of another controller"
		switch {
		case x.Ours(f):
			whose = "of this operator, which removes it when its cleanup is done"
		case x.Report == nil:
			whose = ""
		}
		all = append(all, objectLine{Name: explanation.OneLine(f), Text: whose})
	}
	return all
}

// A stepLine is a step, an action, or an object of a set.
type stepLine struct {
	Name, Mark, State, Text, Tone string
	Query                         template.URL
	Cleanup                       bool
	Within                        []stepLine
}

// steps draws the steps of each controller: a chain, with the actions of a workflow and the objects
// of a set below their step.
func (v *viewing) steps(x *explanation.Explanation, said *said) []block {
	if x.Report == nil {
		return nil
	}
	var all []block
	for i := range x.Report.Controllers {
		c := &x.Report.Controllers[i]
		data := struct {
			Name, Plans, Failure string
			Unwatched            []string
			Steps                []stepLine
			Picture              template.HTML
		}{Picture: v.picture(x, c), Name: c.Name, Plans: x.Plans(c), Steps: v.stepLines(x, c.Steps, said)}
		if c.Failure != "" {
			data.Failure = said.once(explanation.OneLine(c.Failure))
		}
		for j := range c.Unwatched {
			data.Unwatched = append(data.Unwatched, c.Unwatched[j].What(c))
		}
		all = append(all, render(idOf("s-", c.Name), "steps", data))
	}
	return all
}

func (v *viewing) stepLines(x *explanation.Explanation, steps []explanation.Step, said *said) []stepLine {
	var all []stepLine
	for i := range steps {
		s := &steps[i]
		line := stepLine{
			Name: explanation.OneLine(s.Name), Mark: s.Mark(), State: s.State, Text: x.StateOf(s, steps), Tone: tonesOfStates[s.State].Look().Class,
			Cleanup: s.Phase == journal.PhaseCleanup,
		}
		if s.State == explanation.StateFailed || s.State == explanation.StateStalled || s.State == explanation.StateNotReady || s.State == explanation.StateWaiting {
			line.Text = said.once(line.Text)
		}
		line.Within = v.stepLines(x, s.Actions, said)
		if s.Again {
			line.Tone = "active"
		}
		if s.Object.Name != "" {
			line.Query = queryOf(s.Object)
		}
		all = append(all, line)
	}
	return all
}

// A stripPart is a stretch of time with the same result.
type stripPart struct {
	Tone, Mark, Word string
	X, W             float64
	From             time.Time
	Count            int
}

// strip draws how the reconciles of an object ended over time.
func (v *viewing) strip(o journal.Object, all []*reconcile) block {
	from := all[0].began
	length := max(v.now.Sub(from), time.Second).Seconds()
	var parts []stripPart
	for _, r := range all {
		if r.result == journal.ResultConverged || r.result == journal.ResultStale {
			continue
		}
		tone, symbol, word := r.tone()
		x := 100 * r.began.Sub(from).Seconds() / length
		if n := len(parts); n > 0 {
			parts[n-1].W = x - parts[n-1].X
			if parts[n-1].Word == word {
				parts[n-1].Count++
				continue
			}
		}
		parts = append(parts, stripPart{Tone: tone, Mark: symbol, Word: word, X: x, From: r.began, Count: 1})
	}
	if n := len(parts); n > 0 {
		parts[n-1].W = 100 - parts[n-1].X
	}
	return render("strip", "strip", struct {
		From  time.Time
		Parts []stripPart
		Query template.URL
	}{from, parts, queryOf(o)})
}
