// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"sync"
)

// mostNames is how many values a label has for one controller. An operator that makes names from
// what is in the cluster would have more of them than Prometheus can handle.
const mostNames = 200

// other stands for all names after the first mostNames.
const other = "other"

// names bound the labels whose values the operator chooses.
type names struct {
	mu    sync.RWMutex // for known
	known map[scope]map[name]struct{}
}

// A scope is where names are counted: one label of one controller.
type scope struct{ controller, label string }

// A name is one that has been used. For an action, step is its step: equal actions of two steps are
// two.
type name struct{ step, name string }

func newNames() *names { return &names{known: make(map[scope]map[name]struct{})} }

func (n *names) step(controller, step string) string {
	return n.bound(scope{controller, "step"}, name{"", step})
}

func (n *names) kind(controller, kind string) string {
	return n.bound(scope{controller, "kind"}, name{"", kind})
}

func (n *names) class(controller, class string) string {
	return n.bound(scope{controller, "class"}, name{"", class})
}

// action returns the labels for a step and its action. An action of a step that is counted as other
// is other, too.
func (n *names) action(controller, step, action string) (string, string) {
	label := n.step(controller, step)
	if label == other && step != other {
		return other, other
	}
	return label, n.bound(scope{controller, "action"}, name{step, action})
}

// bound returns the name, or other if there are too many. Invalid UTF-8, which Prometheus rejects,
// is replaced.
func (n *names) bound(s scope, wanted name) string {
	wanted.name = strings.ToValidUTF8(wanted.name, "\uFFFD")
	n.mu.RLock()
	_, known := n.known[s][wanted]
	full := len(n.known[s]) >= mostNames
	n.mu.RUnlock()
	if known || !full && n.add(s, wanted) {
		return wanted.name
	}
	return other
}

// add adds a name unless there are too many, and reports whether it is known now.
func (n *names) add(s scope, wanted name) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := n.known[s]
	if of == nil {
		of = make(map[name]struct{})
		n.known[s] = of
	}
	if len(of) < mostNames {
		of[wanted] = struct{}{}
	}
	_, known := of[wanted]
	return known
}
